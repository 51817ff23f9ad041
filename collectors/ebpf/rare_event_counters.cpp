#include "collectors/ebpf/rare_event_counters.h"

#include <bpf/libbpf.h>
#include <skeletons/block.skel.h>
#include <skeletons/tcp.skel.h>

#include <bit>

#include "base/file.h"
#include "base/parse.h"
#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/tiers.h"

namespace cgphase {
namespace {

constexpr std::uint64_t kNsInUsec = 1000;

struct BlockRequests {
  using Skeleton = block;
  using Record = block_counts;
  static constexpr const char* kName = "block devices";
  static constexpr double kAssumedNs = 400;
  static std::uint64_t events(const Record& counts) { return counts.requests; }
  static void fill(const Record& counts, Sample& sample) {
    sample.block = {counts.bytes, counts.requests, counts.latency_ns / kNsInUsec};
  }
};

struct TcpRetransmits {
  using Skeleton = tcp;
  using Record = tcp_counts;
  static constexpr const char* kName = "TCP retransmits";
  static constexpr double kAssumedNs = 200;
  static std::uint64_t events(const Record& counts) { return counts.retransmits; }
  static void fill(const Record& counts, Sample& sample) {
    sample.network.tcp_retransmits = counts.retransmits;
  }
};

// `Of` is one of the two structs above.
template <class Of>
class RareEventCounter final : public CgroupCounter {
 public:
  using Skeleton = typename Of::Skeleton;
  using Record = typename Of::Record;

  RareEventCounter(Started<Skeleton> started, std::uint32_t room)
      : started_(std::move(started)),
        table_(bpf_map__fd(started_.probe->maps.counted), room, started_.probe->bss->entered,
               started_.probe->bss->lost, places_of(*started_.probe, room, sizeof(Record))) {}

  static Result<std::unique_ptr<CgroupCounter>> start(std::uint32_t room, std::string_view tier) {
    if (Status able = check_types(); !able) return std::unexpected(able.error());
    constexpr Tier<Skeleton> kTiers[] = {
        {"tp_btf", ProbeKind::typed,
         [](Skeleton& one) { (void)bpf_program__set_autoload(one.progs.count_copied, false); }},
        {"raw_tp", ProbeKind::copying,
         [](Skeleton& one) { (void)bpf_program__set_autoload(one.progs.count_typed, false); }}};
    auto started = start_first<Skeleton>(Of::kName, tiers_named<Skeleton>(kTiers, tier),
                                         [&](Skeleton& one) {
                                           (void)bpf_map__set_max_entries(one.maps.counted, room);
                                           size_places(one, room, sizeof(Record));
                                         });
    if (!started) return std::unexpected(started.error());
    return std::make_unique<RareEventCounter>(std::move(*started), room);
  }

  const char* name() const override { return Of::kName; }
  const char* tier() const override { return started_.tier; }
  Status read(CgroupOwners& owners, bool sweep) override { return table_.read(owners, sweep); }
  void fill_all(std::span<Sample> samples) const override {
    table_.for_each(samples, [](Sample& sample, const auto& container) {
      Of::fill(std::bit_cast<Record>(container.sum), sample);
    });
  }
  void forget(CgroupId container) override { table_.forget(container); }
  ContainerSums container_sums() const override { return table_.container_sums(); }
  void continue_from(const ContainerSums& previous) override { table_.continue_from(previous); }
  std::uint64_t lost() const override {
    return __atomic_load_n(&started_.probe->bss->lost, __ATOMIC_RELAXED);
  }
  std::uint64_t memory_bytes() const override { return table_.memory_bytes(); }
  std::vector<int> programs() const override {
    const int typed = bpf_program__fd(started_.probe->progs.count_typed);
    return {typed >= 0 ? typed : bpf_program__fd(started_.probe->progs.count_copied)};
  }
  void count_one_of(std::uint32_t every) override {
    __atomic_store_n(&started_.probe->bss->sampling_mask, every - 1, __ATOMIC_RELAXED);
  }
  double assumed_ns() const override { return Of::kAssumedNs; }
  std::uint64_t events() const override { return Of::events(std::bit_cast<Record>(table_.all())); }

 private:
  Started<Skeleton> started_;
  CounterTable<Record> table_;
};

bool has_io_controller(const CgroupPaths& paths) {
  const auto controllers = read_file_at(paths.root_fd(), "cgroup.controllers", 4096);
  if (!controllers) return false;
  std::string_view rest = *controllers, word;
  while (next_word(rest, word))
    if (word == "io") return true;
  return false;
}

}  // namespace

Result<std::unique_ptr<CgroupCounter>> start_block_counter(const CgroupPaths& paths,
                                                           std::uint32_t room,
                                                           std::string_view tier) {
  if (!has_io_controller(paths))
    return failure(ErrorKind::unsupported,
                   "the io controller is not in cgroup v2 here, so requests belong to cgroups of "
                   "v1");
  return RareEventCounter<BlockRequests>::start(room, tier);
}

Result<std::unique_ptr<CgroupCounter>> start_tcp_counter(std::uint32_t room,
                                                         std::string_view tier) {
  return RareEventCounter<TcpRetransmits>::start(room, tier);
}

}  // namespace cgphase
