// One container and the real writer on the simulated kernel, for tests with few system calls.
#pragma once

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "control/lease/restore.h"
#include "control/writer/kernel_limit_writer.h"
#include "tests/simulator/lanes.h"
#include "tests/simulator/system_calls.h"

namespace cgphase::simulator {

// One container of 2 cores and 1 GiB with little need, and the real writer.
class Bench final : private CallObserver {
 public:
  Bench() {
    char name[] = "/tmp/cgphase-simulator-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    runtime_ = name;
    inode = make("/box");
    set_time_ns(1'000'000'000);
    install(&kernel, this);
    leases = LeaseTable::open({.runtime_dir = runtime_, .records = 8, .boot_id = "b"}).value();
    writer = KernelLimitWriter::create({.cgroup_root = root(), .leases = leases.get()}).value();
    lanes().watch(writer->result_fd());
    attach(id(), "/box");
  }
  ~Bench() override {
    on_call = nullptr;
    on_return = nullptr;
    lanes().resume(true);
    writer.reset();
    uninstall();
    std::filesystem::remove_all(runtime_);
  }

  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // Creates another such container.
  std::uint64_t make(const std::string& path) {
    REQUIRE(kernel.make(path) == 0);
    const std::uint64_t made = *kernel.find(path);
    for (const auto& [file, text] : {std::pair("cpu.max", "200000 100000"),
                                     std::pair("cpu.max.burst", "50000"),
                                     std::pair("memory.max", "1073741824")})
      REQUIRE(kernel.write(made, file, text) == 0);
    return made;
  }
  void attach(CgroupId which, const std::string& path) const {
    REQUIRE(writer->attach(which, path, open_path(root() + path, 0).value()));
  }
  // The leases as the companion opens them.
  std::unique_ptr<LeaseTable> other_leases() const {
    return LeaseTable::open_existing({.runtime_dir = runtime_, .boot_id = "b"}).value();
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
    submit(id(), "/box", knob, text, raise);
    return writer->drain_results().at(0);
  }
  // Submits a change of any container with the same limits as the first. The write may then be
  // parked.
  void submit(CgroupId which, const char* path, Knob knob, const char* text, bool raise = false) {
    LimitChange change{.id = which, .path = path, .old_limits = limits(), .raise = raise};
    change.new_limits = change.old_limits;
    REQUIRE(parse_knob(knob, text, change.new_limits));
    lanes().submitted(raise);
    writer->submit(change);
    lanes().settle();
  }

  CgroupKernel kernel{CgroupKernel::Machine{}};
  std::uint64_t inode = 0;
  std::function<int(const Call&)> on_call;  // before each call: 0 or an errno
  std::function<void(const Call&)> on_return;  // after each call
  std::function<void()> on_wait;            // while a thread waits for the end of a lowering
  bool parks = false;                       // whether a write that reclaims is parked
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<KernelLimitWriter> writer;

 private:
  static constexpr std::int64_t kParked = 1'000'000'000;  // ns
  int before(const Call& call) override { return on_call ? on_call(call) : 0; }
  void after(const Call& call, int) override {
    if (on_return) on_return(call);
  }
  bool blocked(const Call&) override { return parks && lanes().park(time_ns() + kParked); }
  void wait_a_little() override {
    if (on_wait) on_wait();
  }
  std::string runtime_;
};

}  // namespace cgphase::simulator
