// Bugs found by seeds, each reduced to the calls that matter.
#include <doctest/doctest.h>

#include <cerrno>
#include <chrono>
#include <set>
#include <utility>

#include "base/clock.h"
#include "collectors/node_sampler.h"
#include "tests/simulator/bench.h"

using namespace cgphase;
using namespace cgphase::simulator;

namespace {

// Fails each call that checks whether the cgroup exists, and the opening of memory.high.
int short_of_memory(const Call& call) {
  if (call.kind == Call::Kind::look) return ENOMEM;
  return call.kind == Call::Kind::open && call.file == "memory.high" ? EMFILE : 0;
}

// Fails the opening of one directory at the given attempts.
class FailingOpens final : public CallObserver {
 public:
  FailingOpens(std::uint64_t inode, std::set<int> failing)
      : inode_(inode), failing_(std::move(failing)) {}
  int opens = 0;

 private:
  int before(const Call& call) override {
    const bool counts =
        call.kind == Call::Kind::open && call.inode == inode_ && call.file.empty();
    return counts && failing_.contains(++opens) ? EMFILE : 0;
  }
  void after(const Call&, int) override {}
  bool blocked(const Call&) override { return false; }
  void wait_a_little() override {}
  std::uint64_t inode_;
  std::set<int> failing_;
};

}  // namespace

// It was reported twice and removed once, and its next sample had no container.
TEST_CASE("a container that disappears from the tree before it is opened is reported once") {
  CgroupKernel kernel{CgroupKernel::Machine{}};
  REQUIRE(kernel.make("/box") == 0);
  const std::uint64_t inode = *kernel.find("/box");
  REQUIRE(kernel.spawn(inode) > 0);
  // The second attempt is the sampler's own, the third is by the tree in its next walk.
  FailingOpens observer(inode, {2, 3});
  install(&kernel, &observer);
  {
    const TestedScope tested;
    auto sampler = NodeSampler::open({.cgroup_root = Bench::root(), .include = {"/box"},
                                      .sweep = std::chrono::seconds(1)});
    REQUIRE(sampler.has_value());
    ManualClock clock;
    NodeSample tick;
    std::size_t appeared = 0;
    for (int i = 0; i < 6; ++i) {
      clock.advance(std::chrono::seconds(2));
      sampler->sample(clock, tick);
      appeared += tick.appeared.size();
      CHECK(tick.vanished.empty());
      CHECK(tick.containers.size() == appeared);
    }
    CHECK(appeared == 1);
  }
  CHECK(observer.opens > 4);
  uninstall();
}

TEST_CASE("a check that fails for lack of memory releases no lease") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_high, "536870912").written);
  bench.on_call = short_of_memory;
  (void)bench.change(Knob::cpu_max, "100000 100000");
  bench.on_call = nullptr;
  REQUIRE(bench.get("memory.high") == "536870912");
  CHECK(bench.leases->find(bench.id(), Knob::memory_high).has_value());
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.high") == "max");
}

TEST_CASE("a restore that cannot check the cgroup does not count it as gone") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_high, "536870912").written);
  bench.writer->detach(bench.id());
  bench.on_call = [](const Call& call) { return call.kind == Call::Kind::look ? ENOMEM : 0; };
  CHECK(bench.writer->restore_all().failures.size() == 1);
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.high") == "max");
}

TEST_CASE("a foreign write between plan and write stays") {
  Bench bench;
  bench.on_call = [&](const Call& call) {
    if (call.kind == Call::Kind::read && call.file == "memory.stat")
      bench.put("memory.high", "805306368");
    return 0;
  };
  const LimitResult result = bench.change(Knob::memory_high, "536870912");
  CHECK_FALSE(result.written);
  CHECK(result.failed_as == ErrorKind::invalid);
  CHECK(bench.get("memory.high") == "805306368");
  CHECK(bench.writer->restore_all().restored == 0);
  CHECK(bench.get("memory.high") == "805306368");
}

// rule: S-06
TEST_CASE("a foreign write right after ours is a failure, and the foreign value stays") {
  Bench bench;
  for (const bool raise : {false, true}) {
    CAPTURE(raise);
    const char* const ours = raise ? "150000 100000" : "100000 100000";
    bench.on_return = [&](const Call& call) {
      if (call.kind == Call::Kind::write && call.file == "cpu.max")
        bench.put("cpu.max", "180000 100000");
    };
    const LimitResult result = bench.change(Knob::cpu_max, ours, raise);
    bench.on_return = nullptr;
    CHECK_FALSE(result.written);
    CHECK(result.failed_as == ErrorKind::invalid);
    CHECK(result.error.find("'180000 100000' is in force") != std::string::npos);
    CHECK(result.in_force.cpu_max->quota->value == 180'000);
    CHECK(bench.get("cpu.max") == "180000 100000");
    CHECK(bench.writer->restore_all().restored == 0);
    CHECK(bench.get("cpu.max") == "180000 100000");
    bench.put("cpu.max", "200000 100000");
    REQUIRE(bench.change(Knob::cpu_max, "120000 100000").written);
  }
}

TEST_CASE("a raise does not lower a limit that the fast path has raised meanwhile") {
  Bench bench;
  REQUIRE(bench.change(Knob::cpu_max, "100000 100000").written);
  const int record = bench.leases->find(bench.id(), Knob::cpu_max).value();
  const auto text = [](const char* value) { return KnobText::from(value).value(); };
  int opened = 0;
  bench.on_call = [&](const Call& call) {
    // The plan reads cpu.max once. The fast path raises between that and the recheck.
    if (call.kind != Call::Kind::open || call.file != "cpu.max" || ++opened != 2) return 0;
    bench.leases->lease_for_fast_path(record, bench.id(), Knob::cpu_max, text("100000 100000"),
                             text("180000 100000"));
    bench.put("cpu.max", "180000 100000");
    return 0;
  };
  CHECK(bench.change(Knob::cpu_max, "150000 100000", true).written);
  CHECK(bench.get("cpu.max") == "180000 100000");
}

TEST_CASE("a truncated text is not a foreign value") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_high, "536870912").written);
  bench.on_call = [](const Call& call) { return call.kind == Call::Kind::read ? kShortRead : 0; };
  CHECK(bench.writer->restore_all().foreign == 0);
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.high") == "max");
}
