#include "collectors/pulled.h"

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <string>

#include "collectors/node_sampler.h"
#include "tests/collectors/allocation_count.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

pull_record cpu_record(std::uint64_t usage, std::uint64_t user, std::uint64_t system) {
  pull_record record{};
  record.usage_ns = usage;
  record.user_ns = user;
  record.system_ns = system;
  return record;
}

CpuStat adjusted(AdjustedCpuTime& time, const pull_record& record) {
  CpuStat cpu;
  time.fill(record, cpu);
  return cpu;
}

// The record that the test provides.
using ToldRecords = std::map<std::uint64_t, pull_record>;
struct ToldPull final : CgroupPull {
  const ToldRecords& by_inode;
  std::map<std::uint32_t, std::uint64_t> places;
  std::size_t room;
  bool works = true;

  ToldPull(const ToldRecords& records, std::size_t for_so_many)
      : by_inode(records), room(for_so_many) {}
  const char* name() const override { return "told"; }
  std::optional<std::uint32_t> add(std::uint64_t inode) override {
    for (std::uint32_t place = 0; place < room; ++place)
      if (places.try_emplace(place, inode).second) return place;
    return std::nullopt;
  }
  void remove(std::uint64_t, std::uint32_t place) override { places.erase(place); }
  void choose(const MemoryChoice&) override {}
  bool walk(std::uint64_t) override { return works; }
  const pull_record* record(std::uint32_t place) const override {
    const auto reported = by_inode.find(places.at(place));
    return works && reported != by_inode.end() ? &reported->second : nullptr;
  }
  std::span<const std::uint64_t> raw() const override { return {}; }
};

struct PulledNode : FakeTree {
  ManualClock clock;
  NodeSample tick;
  ToldRecords records;
  ToldPull* pull = nullptr;
  int opened = 0;
  std::string refusal;

  PulledNode() {
    put("cpu.stat", "usage_usec 100\nnr_periods 1\nnr_throttled 1\nthrottled_usec 1\n");
    put("memory.current", "4096\n");
    put("io.stat", "");
    put("cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
  }
  void put(const std::string& file, std::string_view text) const {
    write("/cg/jobs/0/" + file, text);
  }
  NodeSampler open() {
    auto sampler = NodeSampler::open(
        {.cgroup_root = root() + "/cg", .include = {"/jobs/*"},
         .open_pull = [this](std::size_t room) -> Result<std::unique_ptr<CgroupPull>> {
           ++opened;
           if (!refusal.empty()) return failure(ErrorKind::unsupported, refusal);
           auto made = std::make_unique<ToldPull>(records, room);
           pull = made.get();
           return made;
         }});
    REQUIRE(sampler.has_value());
    return std::move(*sampler);
  }
  const Sample& sample(NodeSampler& sampler) {
    clock.advance(std::chrono::seconds(2));
    sampler.sample(clock, tick);
    REQUIRE_FALSE(tick.containers.empty());
    return tick.containers[0];
  }
  pull_record& reported() { return records[tick.containers[0].id.inode]; }
};

Source sampling(const NodeSampler& sampler) {
  for (const Source& source : sampler.sources())
    if (source.name == "sampling") return source;
  FAIL("no such source");
  return {};
}

constexpr std::uint64_t kEverything = PULL_CPU | PULL_BANDWIDTH | PULL_MEMORY | PULL_IO |
                                      PULL_PIDS | PULL_PRESSURE;

}  // namespace

TEST_CASE("user and system time split the exact sum in the ratio of ticks, and neither falls") {
  AdjustedCpuTime time;
  CpuStat cpu = adjusted(time, cpu_record(1'000'000, 3, 1));
  CHECK(cpu.user_usec == 750);
  CHECK(cpu.system_usec == 250);
  cpu = adjusted(time, cpu_record(1'100'000, 100, 1));  // would be 10 of system
  CHECK(cpu.system_usec == 250);
  CHECK(cpu.user_usec == 850);
  cpu = adjusted(time, cpu_record(1'200'000, 1, 100));  // would be 11 of user
  CHECK(cpu.user_usec == 850);
  CHECK(cpu.system_usec == 350);
  cpu = adjusted(time, cpu_record(1'200'000, 100, 1));  // nothing was used meanwhile
  CHECK(cpu.user_usec == 850);
}

TEST_CASE("user and system time continue from another process's reading of the file") {
  AdjustedCpuTime time;
  pull_record record = cpu_record(1'000'000, 1, 1);
  record.printed_user_ns = 600'000;
  record.printed_system_ns = 400'000;
  CHECK(adjusted(time, record).user_usec == 600);
}

TEST_CASE("all time is user time if no tick saw system time, and the reverse") {
  AdjustedCpuTime all_user, all_system;
  CHECK(adjusted(all_user, cpu_record(5'000, 9, 0)).user_usec == 5);
  CHECK(adjusted(all_system, cpu_record(5'000, 0, 9)).system_usec == 5);
}

TEST_CASE("averages are kept while the kernel may update them, and then age as in the kernel") {
  AgingStalls stalls;
  pull_record record{};
  record.stall_updated = 5;
  record.stall_avg[2][0] = record.stall_avg[2][1] = 50 << 11;  // 50 % of memory some
  record.stall_ns[2] = 7'000;
  stalls.take(record);
  CHECK(stalls.pressure(1).some.avg10_ratio == 0.5);
  CHECK(stalls.pressure(1).some.total_usec == 7);
  CHECK(stalls.pressure(0).some.avg10_ratio == 0.0);
  stalls.take(record);
  CHECK(stalls.pressure(1).some.avg10_ratio == 0.5);
  stalls.take(record);
  CHECK(stalls.pressure(1).some.avg10_ratio == 0.4094);  // 50 % * 1677 / 2048
  CHECK(stalls.pressure(1).some.avg60_ratio == 0.4836);
  for (int i = 0; i < 600; ++i) stalls.take(record);
  CHECK(stalls.pressure(1).some.avg60_ratio == 0.0);
  record.stall_updated = 6;
  stalls.take(record);
  CHECK(stalls.pressure(1).some.avg10_ratio == 0.5);
}

TEST_CASE("values that a file had once come from the walk, and other values stay absent") {
  PulledNode node;
  NodeSampler sampler = node.open();
  CHECK(node.sample(sampler).cpu.usage_usec == 100);
  CHECK(sampling(sampler).detail == "told");
  pull_record& reported = node.reported();
  reported.parts = kEverything;
  reported.usage_ns = 5'000'000;
  reported.nr_throttled = 3;
  reported.memory_pages = 2;
  reported.pids = 9;
  reported.read_bytes = 11;
  reported.stall_updated = 1;
  reported.stall_ns[4] = 2'000;
  const Sample& sample = node.sample(sampler);
  CHECK(sample.cpu.usage_usec == 5'000);
  CHECK(sample.cpu.nr_throttled == 3);
  CHECK(sample.memory_current->value == 2 * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)));
  CHECK(sample.io.read_bytes == 11);
  CHECK(sample.cpu_pressure.some.total_usec == 2);
  CHECK_FALSE(sample.pids_current.has_value());
  CHECK_FALSE(sample.memory_peak.has_value());
  CHECK_FALSE(sample.memory_events.max.has_value());
  CHECK_FALSE(sample.memory_pressure.some.total_usec.has_value());
}

TEST_CASE("values without a walk are read from their file") {
  PulledNode node;
  NodeSampler sampler = node.open();
  node.sample(sampler);
  node.reported() = {};
  node.reported().parts = PULL_CPU | PULL_MEMORY;  // the quota's lines are missing
  node.reported().memory_pages = 3;
  node.put("memory.current", "5\n");
  node.put("cpu.stat", "usage_usec 200\nnr_periods 1\nnr_throttled 1\nthrottled_usec 1\n");
  CHECK(node.sample(sampler).cpu.usage_usec == 200);
  CHECK(node.tick.containers[0].memory_current != Bytes{5});
  node.pull->works = false;
  CHECK(node.sample(sampler).memory_current == Bytes{5});
}

TEST_CASE("quota lines that appear later are found in the file, then walked over") {
  PulledNode node;
  node.put("cpu.stat", "usage_usec 100\n");
  NodeSampler sampler = node.open();
  node.sample(sampler);
  node.reported().parts = PULL_CPU;
  node.reported().usage_ns = 5'000'000;
  CHECK(node.sample(sampler).cpu.usage_usec == 5'000);
  CHECK_FALSE(node.tick.containers[0].cpu.nr_throttled.has_value());
  node.put("cpu.stat", "usage_usec 6000\nnr_periods 1\nnr_throttled 1\nthrottled_usec 1\n");
  node.reported().parts |= PULL_BANDWIDTH;
  node.reported().nr_throttled = 3;
  CHECK(node.sample(sampler).cpu.nr_throttled == 1);
  CHECK(node.sample(sampler).cpu.nr_throttled == 3);
  CHECK(node.tick.containers[0].cpu.usage_usec == 5'000);
}

TEST_CASE("a file without quota lines is read once a minute for any walk") {
  PulledNode node;
  node.put("cpu.stat", "usage_usec 100\n");
  NodeSampler sampler = node.open();
  node.sample(sampler);
  node.reported().parts = PULL_CPU | PULL_BANDWIDTH;
  node.reported().usage_ns = 5'000'000;
  CHECK(node.sample(sampler).cpu.usage_usec == 100);
  for (int second = 2; second < 60; second += 2) {
    CHECK(node.sample(sampler).cpu.usage_usec == 5'000);
    CHECK_FALSE(node.tick.containers[0].cpu.nr_throttled.has_value());
  }
  CHECK(node.sample(sampler).cpu.usage_usec == 100);
}

TEST_CASE("without a walk all values come from files, and the source has the reason") {
  PulledNode node;
  node.refusal = "no such thing here";
  NodeSampler sampler = node.open();
  for (int i = 0; i < 3; ++i) CHECK(node.sample(sampler).cpu.usage_usec == 100);
  CHECK(node.opened == 1);
  CHECK(sampling(sampler).present);
  CHECK(sampling(sampler).detail ==
        "files, because no BPF program can walk over cgroups here: no such thing here");
}

TEST_CASE("room is made when needed, and places are assigned again") {
  PulledNode node;
  NodeSampler sampler = node.open();
  node.sample(sampler);
  CHECK(node.pull->room == 64);
  for (int i = 1; i <= 64; ++i)
    node.write("/cg/jobs/" + std::to_string(i) + "/cpu.stat", "usage_usec 1\n");
  node.sample(sampler);
  CHECK(node.opened == 2);
  CHECK(node.pull->room == 128);
  CHECK(node.pull->places.size() == 65);
  node.remove("/cg/jobs/7");
  node.sample(sampler);
  CHECK(node.pull->places.size() == 64);
  CHECK(node.opened == 2);
}

TEST_CASE("a steady tick by walks allocates nothing") {
  PulledNode node;
  NodeSampler sampler = node.open();
  node.sample(sampler);
  node.reported().parts = kEverything;
  for (int i = 0; i < 5; ++i) node.sample(sampler);
  const long before = allocation_count();
  for (int i = 0; i < 20; ++i) node.sample(sampler);
  CHECK(allocation_count() == before);
}
