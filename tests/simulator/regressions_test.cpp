// What seeds have found, each reduced to the calls that it takes.
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

// Fails each call that wants to know whether the cgroup is there, and the opening of memory.high.
int short_of_memory(const Call& call) {
  if (call.kind == Call::Kind::look) return ENOMEM;
  return call.kind == Call::Kind::open && call.file == "memory.high" ? EMFILE : 0;
}

// Lets the opening of one directory fail, by the number of the attempt.
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

// Told twice it was vanished once, and its next sample belonged to nobody.
TEST_CASE("a container that the tree lost while it waited to be opened is told of once") {
  CgroupKernel kernel{CgroupKernel::Machine{}};
  REQUIRE(kernel.make("/box") == 0);
  const std::uint64_t inode = *kernel.find("/box");
  REQUIRE(kernel.spawn(inode) > 0);
  // The second is the sampler's own, the third the tree's at the next walk.
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

TEST_CASE("a look that fails for want of memory costs no lease") {
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

TEST_CASE("a restore that cannot look at the cgroup does not call it gone") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_high, "536870912").written);
  bench.writer->detach(bench.id());
  bench.on_call = [](const Call& call) { return call.kind == Call::Kind::look ? ENOMEM : 0; };
  CHECK(bench.writer->restore_all().failures.size() == 1);
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.high") == "max");
}

TEST_CASE("what somebody writes between the plan and the write stays") {
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
TEST_CASE("what somebody writes right after us is no success, and stays") {
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

TEST_CASE("a raise does not lower what the guard has raised meanwhile") {
  Bench bench;
  REQUIRE(bench.change(Knob::cpu_max, "100000 100000").written);
  const int record = bench.leases->find(bench.id(), Knob::cpu_max).value();
  const auto text = [](const char* value) { return KnobText::from(value).value(); };
  int opened = 0;
  bench.on_call = [&](const Call& call) {
    // The plan reads cpu.max once; the guard comes between that and the next look.
    if (call.kind != Call::Kind::open || call.file != "cpu.max" || ++opened != 2) return 0;
    bench.leases->guard_hold(record, bench.id(), Knob::cpu_max, text("100000 100000"),
                             text("180000 100000"));
    bench.put("cpu.max", "180000 100000");
    return 0;
  };
  CHECK(bench.change(Knob::cpu_max, "150000 100000", true).written);
  CHECK(bench.get("cpu.max") == "180000 100000");
}

TEST_CASE("a text that was cut short is not somebody else's value") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_high, "536870912").written);
  bench.on_call = [](const Call& call) { return call.kind == Call::Kind::read ? kShortRead : 0; };
  CHECK(bench.writer->restore_all().foreign == 0);
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.high") == "max");
}
