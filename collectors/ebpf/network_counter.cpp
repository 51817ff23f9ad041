#include "collectors/ebpf/network_counter.h"

#include <bpf/libbpf.h>
#include <skeletons/network.skel.h>

#include <bit>

#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/probe.h"

namespace cgphase {
namespace {

class NetworkCounter final : public CgroupCounter {
 public:
  NetworkCounter(Probe<network> probe, std::uint32_t room)
      : probe_(std::move(probe)),
        table_(bpf_map__fd(probe_->maps.counted), room, probe_->bss->entered, probe_->bss->lost,
               places_of(*probe_, room, sizeof(network_counts))) {}

  const char* name() const override { return "network"; }
  const char* tier() const override { return "cgroup_skb"; }

  Status read(CgroupOwners& owners, bool sweep) override { return table_.read(owners, sweep); }

  void fill_all(std::span<Sample> samples) const override {
    table_.for_each(samples, [](Sample& sample, const Table::Container& container) {
      const auto counts = std::bit_cast<network_counts>(container.sum);
      sample.network.receive_bytes = counts.receive_bytes;
      sample.network.receive_packets = counts.receive_packets;
      sample.network.transmit_bytes = counts.transmit_bytes;
      sample.network.transmit_packets = counts.transmit_packets;
    });
  }
  void forget(CgroupId container) override { table_.forget(container); }
  ContainerSums container_sums() const override { return table_.container_sums(); }
  void continue_from(const ContainerSums& previous) override { table_.continue_from(previous); }

  std::uint64_t lost() const override {
    return __atomic_load_n(&probe_->bss->lost, __ATOMIC_RELAXED);
  }
  std::uint64_t memory_bytes() const override { return table_.memory_bytes(); }

  std::vector<int> programs() const override {
    return {bpf_program__fd(probe_->progs.count_transmit),
            bpf_program__fd(probe_->progs.count_receive)};
  }
  void count_one_of(std::uint32_t every) override {
    __atomic_store_n(&probe_->bss->sampling_mask, every - 1, __ATOMIC_RELAXED);
  }
  // docs/internals/ebpf.md
  double assumed_ns() const override { return 150; }
  std::uint64_t events() const override {
    const auto all = std::bit_cast<network_counts>(table_.all());
    return all.receive_packets + all.transmit_packets + 2 * all.loopback_packets;
  }

 private:
  using Table = CounterTable<network_counts>;
  Probe<network> probe_;
  Table table_;
};

}  // namespace

Result<std::unique_ptr<CgroupCounter>> start_network_counter(const CgroupPaths& paths,
                                                             std::uint32_t room) {
  listen_to_libbpf();
  Probe<network> probe(network::open());
  const auto refused = [](const char* step, int error) {
    return probe_failure(step, "network", ProbeKind::packets, error);
  };
  if (!probe) return refused("opening", errno);
  (void)bpf_map__set_max_entries(probe->maps.counted, room);
  size_places(*probe, room, sizeof(network_counts));
  if (const int error = network::load(probe.get())) return refused("loading", -error);
  const auto attach = [&](bpf_program* program, bpf_link*& link) {
    link = bpf_program__attach_cgroup(program, paths.root_fd());
    return link == nullptr ? errno : 0;
  };
  int error = attach(probe->progs.count_transmit, probe->links.count_transmit);
  if (error == 0) error = attach(probe->progs.count_receive, probe->links.count_receive);
  if (error != 0) return refused("attaching", error);
  return std::make_unique<NetworkCounter>(std::move(probe), room);
}

}  // namespace cgphase
