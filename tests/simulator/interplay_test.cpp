// Two simultaneous actions, each reduced to the calls that matter.
#include <doctest/doctest.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "tests/simulator/bench.h"
#include "tests/simulator/laws.h"

using namespace cgphase;
using namespace cgphase::simulator;

namespace {

constexpr const char* kLoweredMemory = "536870912";

// Adds page cache that a lowering of memory.high to one half must drop first.
void fill_with_cache(Bench& bench) {
  const int pid = bench.kernel.spawn(bench.inode);
  REQUIRE(bench.kernel.allocate(pid, MemoryKind::file_inactive, 800 * kMiB));
}

// A lowering of the first container blocks in the kernel, and one of the second waits for it.
CgroupId lower_one_behind_another(Bench& bench) {
  fill_with_cache(bench);
  const CgroupId second{kSimulatedDevice, bench.make("/second")};
  bench.attach(second, "/second");
  bench.parks = true;
  bench.submit(bench.id(), "/box", Knob::memory_high, kLoweredMemory);
  REQUIRE(lanes().parked());
  bench.submit(second, "/second", Knob::cpu_max, "100000 100000");
  return second;
}

bool writes_knob(const Call& call) {
  return call.kind == Call::Kind::write && knob_of(call.file).has_value();
}

}  // namespace

TEST_CASE("a restore voids a lowering that waits for another one") {
  Bench bench;
  const CgroupId second = lower_one_behind_another(bench);
  REQUIRE(lanes().parked());
  CHECK(bench.writer->restore(second).failures.empty());  // as a pause does; nothing is leased yet
  bench.parks = false;
  lanes().resume(false);
  const auto results = bench.writer->drain_results();
  const auto found = std::find_if(results.begin(), results.end(),
                                  [&](const LimitResult& one) { return one.id == second; });
  REQUIRE(found != results.end());
  CHECK_FALSE(found->written);
  CHECK(found->overtaken);
  CHECK(found->in_force.cpu_max == CpuMax{Microseconds{200'000}, Microseconds{100'000}});
  std::string text;
  CHECK(bench.kernel.read(second.inode, "cpu.max", text) == 0);
  CHECK(text == "200000 100000\n");
  CHECK(bench.get("memory.high") == kLoweredMemory);  // its original was not requested
}

// The restore had found records that by then belonged to the next lowering.
TEST_CASE("a restore that waits for a lowering does not touch the next one") {
  Bench bench;
  const CgroupId second = lower_one_behind_another(bench);
  REQUIRE(bench.leases->leased_records().size() == 1);
  bench.on_wait = [] { lanes().resume(true); };
  CHECK(bench.writer->restore(bench.id()).failures.empty());
  CHECK(bench.get("memory.high") == "max");
  CHECK(bench.leases->find(second, Knob::cpu_max).has_value());
  std::string text;
  CHECK(bench.kernel.read(second.inode, "cpu.max", text) == 0);
  CHECK(text == "100000 100000\n");
}

TEST_CASE("after a revocation nothing is written, not even a rollback") {
  Bench bench;
  const auto companion = bench.other_leases();
  int writes = 0;
  bench.on_call = [&](const Call& call) {
    if (writes_knob(call)) ++writes;
    return 0;
  };
  companion->revoke();
  CHECK(bench.change(Knob::memory_high, kLoweredMemory).failed_as == ErrorKind::denied);
  CHECK(bench.change(Knob::cpu_max, "100000 100000").failed_as == ErrorKind::denied);
  CHECK(writes == 0);
  bench.writer->acknowledge_revocation();
  CHECK(bench.change(Knob::memory_high, kLoweredMemory).written);
  CHECK(writes == 1);
}

TEST_CASE("a lowering during which the companion restores ends at the original") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_high, "805306368").written);
  const auto companion = bench.other_leases();
  bool revoked = false;
  bench.on_call = [&](const Call& call) {
    if (!writes_knob(call) || std::exchange(revoked, true)) return 0;
    // Between the last check and the write, which no check can exclude.
    companion->revoke();
    bench.put("memory.high", "max");
    return 0;
  };
  const LimitResult result = bench.change(Knob::memory_high, kLoweredMemory);
  CHECK(revoked);
  CHECK_FALSE(result.written);
  CHECK(bench.get("memory.high") == "max");
}

TEST_CASE("a raise by the fast path during a lowering's reclaim stays and ends the lowering") {
  Bench bench;
  fill_with_cache(bench);
  REQUIRE(bench.change(Knob::memory_high, "805306368").written);
  const int record = bench.leases->find(bench.id(), Knob::memory_high).value();
  bench.parks = true;
  bench.submit(bench.id(), "/box", Knob::memory_high, kLoweredMemory);
  REQUIRE(lanes().parked());
  const auto text = [](const char* value) { return KnobText::from(value).value(); };
  bench.writer->interrupt_lowering(bench.id());
  REQUIRE(bench.leases->lease_for_fast_path(record, bench.id(), Knob::memory_high,
                                            text("805306368"), text("1073741824")));
  bench.put("memory.high", "max");
  bench.parks = false;
  lanes().resume(true);
  const auto results = bench.writer->drain_results();
  REQUIRE(results.size() == 1);
  CHECK_FALSE(results[0].written);
  CHECK(bench.get("memory.high") == "max");
}

TEST_CASE("a burst above a foreign quota becomes that quota and counts as restored") {
  Bench bench;
  REQUIRE(bench.change(Knob::cpu_max, "30000 100000").written);
  REQUIRE(bench.get("cpu.max.burst") == "30000");
  bench.put("cpu.max", "40000 100000");
  const LimitWriter::RestoreReport report = bench.writer->restore_all();
  CHECK(report.failures.empty());
  CHECK(report.restored == 1);
  CHECK(report.foreign == 1);
  CHECK(bench.get("cpu.max") == "40000 100000");
  CHECK(bench.get("cpu.max.burst") == "40000");  // instead of 50000
  CHECK(bench.leases->leased_records().empty());
}

TEST_CASE("a burst waits while a quota of ours cannot be restored yet") {
  Bench bench;
  REQUIRE(bench.change(Knob::cpu_max, "30000 100000").written);
  bench.on_call = [](const Call& call) {
    return call.kind == Call::Kind::write && call.file == "cpu.max" ? EIO : 0;
  };
  CHECK(bench.writer->restore_all().failures.size() == 2);
  CHECK(bench.get("cpu.max.burst") == "30000");
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 2);
  CHECK(bench.get("cpu.max") == "200000 100000");
  CHECK(bench.get("cpu.max.burst") == "50000");
}
