// What seeds have found, each reduced to the calls that it takes.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>

#include "control/kernel_limit_writer.h"
#include "control/restore.h"
#include "tests/simulator/lanes.h"
#include "tests/simulator/system_calls.h"

using namespace cgphase;
using namespace cgphase::simulator;

namespace {

// One container of 2 cores and 1 GiB that needs little, and the real writer.
class Bench final : private CallObserver {
 public:
  Bench() {
    char name[] = "/tmp/cgphase-simulator-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    runtime_ = name;
    REQUIRE(kernel.make("/box") == 0);
    inode = *kernel.find("/box");
    put("cpu.max", "200000 100000");
    put("cpu.max.burst", "50000");
    put("memory.max", "1073741824");
    set_time_ns(1'000'000'000);
    install(&kernel, this);
    leases = LeaseTable::open({.runtime_dir = runtime_, .records = 8, .boot_id = "b"}).value();
    writer = KernelLimitWriter::create({.cgroup_root = root(), .leases = leases.get()}).value();
    lanes().watch(writer->result_fd());
    REQUIRE(writer->attach(id(), "/box", open_path(root() + "/box", 0).value()));
  }
  ~Bench() override {
    on_call = nullptr;
    on_return = nullptr;
    writer.reset();
    uninstall();
    std::filesystem::remove_all(runtime_);
  }

  static std::string root() { return std::string(kSimulatedRoot); }
  CgroupId id() const { return {kSimulatedDevice, inode}; }
  void put(const char* file, const char* text) {
    REQUIRE(kernel.write(inode, file, text) == 0);
  }
  std::string get(const char* file) const {
    std::string text;
    REQUIRE(kernel.read(inode, file, text) == 0);
    return text.substr(0, text.size() - 1);
  }
  Limits limits() const {
    Limits now;
    for (const Knob knob : kKnobs) REQUIRE(parse_knob(knob, get(file_name(knob)), now));
    return now;
  }
  LimitResult change(Knob knob, const char* text, bool raise = false) {
    LimitChange change{.id = id(), .path = "/box", .old_limits = limits(), .raise = raise};
    change.new_limits = change.old_limits;
    REQUIRE(parse_knob(knob, text, change.new_limits));
    lanes().submitted(raise);
    writer->submit(change);
    lanes().settle();
    return writer->take_results().at(0);
  }

  CgroupKernel kernel{CgroupKernel::Machine{}};
  std::uint64_t inode = 0;
  std::function<int(const Call&)> on_call;    // before each call: 0 or an errno
  std::function<void(const Call&)> on_return;  // after each call
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<KernelLimitWriter> writer;

 private:
  int before(const Call& call) override { return on_call ? on_call(call) : 0; }
  void after(const Call& call, int) override {
    if (on_return) on_return(call);
  }
  bool blocked(const Call&) override { return false; }
  void wait_a_little() override {}
  std::string runtime_;
};

// Fails each call that wants to know whether the cgroup is there, and the opening of memory.max.
int short_of_memory(const Call& call) {
  if (call.kind == Call::Kind::look) return ENOMEM;
  return call.kind == Call::Kind::open && call.file == "memory.max" ? EMFILE : 0;
}

}  // namespace

TEST_CASE("a look that fails for want of memory costs no lease") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_max, "536870912").written);
  bench.on_call = short_of_memory;
  (void)bench.change(Knob::cpu_max, "100000 100000");
  bench.on_call = nullptr;
  REQUIRE(bench.get("memory.max") == "536870912");
  CHECK(bench.leases->find(bench.id(), Knob::memory_max).has_value());
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.max") == "1073741824");
}

TEST_CASE("a restore that cannot look at the cgroup does not call it gone") {
  Bench bench;
  REQUIRE(bench.change(Knob::memory_max, "536870912").written);
  bench.writer->detach(bench.id());
  bench.on_call = [](const Call& call) { return call.kind == Call::Kind::look ? ENOMEM : 0; };
  CHECK(bench.writer->restore_all().failures.size() == 1);
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.max") == "1073741824");
}

TEST_CASE("what somebody writes between the plan and the write stays") {
  Bench bench;
  bench.on_call = [&](const Call& call) {
    if (call.kind == Call::Kind::read && call.file == "memory.stat")
      bench.put("memory.max", "805306368");
    return 0;
  };
  const LimitResult result = bench.change(Knob::memory_max, "536870912");
  CHECK_FALSE(result.written);
  CHECK(result.failed_as == ErrorKind::invalid);
  CHECK(bench.get("memory.max") == "805306368");
  CHECK(bench.writer->restore_all().restored == 0);
  CHECK(bench.get("memory.max") == "805306368");
}

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
  REQUIRE(bench.change(Knob::memory_max, "536870912").written);
  bench.on_call = [](const Call& call) { return call.kind == Call::Kind::read ? kShortRead : 0; };
  CHECK(bench.writer->restore_all().foreign == 0);
  bench.on_call = nullptr;
  CHECK(bench.writer->restore_all().restored == 1);
  CHECK(bench.get("memory.max") == "1073741824");
}
