// Values of the counting programs on a real kernel with cgroup v2 alone, which a developer's
// machine may not have. Cases named bpf: need BPF and type information.
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "collectors/ebpf/counters.h"
#include "collectors/ebpf/probe.h"
#include "collectors/ebpf/rare_event_counters.h"
#include "tests/kernel/control_fixture.h"

namespace cgphase {
namespace {

constexpr std::uint32_t kBlockRoom = 256;
constexpr std::size_t kFileBytes = 8U << 20;

// Bytes read and written, summed over all devices.
std::uint64_t io_stat_bytes(const TestCgroup& cgroup) {
  const std::string text = cgroup.get("io.stat");
  std::string_view rest = text, word;
  std::uint64_t sum = 0;
  while (next_word(rest, word))
    if (word.starts_with("rbytes=") || word.starts_with("wbytes="))
      sum += parse_u64(word.substr(7)).value_or(0);
  return sum;
}

// Writes through the cache to the disk, and reads past the cache.
void write_and_read(const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  const std::string text(kFileBytes, 'b');
  if (!write_all(file.get(), text) || ::fsync(file.get()) != 0) ::_exit(1);
  const Fd direct(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  void* page = nullptr;
  if (::posix_memalign(&page, 4096, kFileBytes) != 0) ::_exit(2);
  if (::pread(direct.get(), page, kFileBytes, 0) <= 0) ::_exit(3);
  ::unlink(path.c_str());
}

}  // namespace

TEST_CASE("bpf: bytes of completed requests equal those of io.stat, in each tier") {
  REQUIRE(try_write(cgroup_root() + "/cgroup.subtree_control", "+io") == 0);
  const TestCgroup cgroup;
  CgroupOwners owners(cgroup_root());
  NodeSample tick;
  tick.appeared.resize(1);
  tick.appeared[0].id = cgroup.id();
  tick.appeared[0].path = cgroup.path();
  owners.follow(tick);
  const CgroupPaths paths(cgroup_root());
  std::vector<std::unique_ptr<CgroupCounter>> counters;
  for (const char* tier : {"tp_btf", "raw_tp"}) {
    auto counter = start_block_counter(paths, kBlockRoom, tier);
    REQUIRE_MESSAGE(counter.has_value(), (counter ? "" : counter.error().text));
    CHECK((*counter)->tier() == std::string(tier));
    counters.push_back(std::move(*counter));
  }
  Child child(cgroup, [](int ready) {
    write_and_read("block-test-file");
    say_ready(ready);
  });
  child.wait();
  for (const auto& counter : counters) {
    Sample sample;
    sample.id = cgroup.id();
    CHECK(eventually([&] {
      REQUIRE(counter->read(owners, false));
      counter->fill(sample);
      return sample.block.bytes >= 2 * kFileBytes && sample.block.bytes == io_stat_bytes(cgroup);
    }));
    CAPTURE(*sample.block.bytes);
    CAPTURE(io_stat_bytes(cgroup));
    CHECK(*sample.block.requests > 0);
    CHECK(*sample.block.latency_usec > 0);
    CHECK(counter->lost() == 0);
  }
}

TEST_CASE("without type information traffic is counted, and other signals say what is missing") {
  REQUIRE_FALSE(check_types());
  KernelCounters counters(cgroup_root(), 1);
  NodeSample tick;
  tick.containers.resize(1);
  counters.fill(tick);
  CHECK(tick.containers[0].network.transmit_bytes == 0);
  CHECK_FALSE(tick.containers[0].run_queue.waits);
  for (const Source& source : counters.sources()) {
    CAPTURE(source.name);
    CAPTURE(source.detail);
    const bool network = source.name == "eBPF: network";
    CHECK(source.present == network);
    CHECK(source.detail.contains(network ? "cgroup_skb" : "CONFIG_DEBUG_INFO_BTF"));
  }
}

TEST_CASE("bpf: every signal is counted, in the first way that works") {
  KernelCounters counters(cgroup_root(), 1);
  NodeSample tick;
  counters.fill(tick);
  const std::vector<Source> sources = counters.sources();
  REQUIRE(sources.size() == 4);
  for (const Source& source : sources) {
    CAPTURE(source.name);
    CAPTURE(source.detail);
    CHECK(source.present);
    CHECK(source.detail == (source.name == "eBPF: network" ? "cgroup_skb" : "tp_btf"));
  }
}

}  // namespace cgphase
