// A container with lowered limits, and a guard that the test steps.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "control/fast_path/guard.h"
#include "tests/cgroupfs/fake_cgroup.h"
#include "tests/collectors/allocation_count.h"

namespace cgphase {

// The guard has no thread, and the clock moves only when the test moves it. The guard never
// allocates in a check.
class Guarded {
 public:
  explicit Guarded(Guard::Options options = {.containers = 4}) : box(root_.path()) {
    auto table = LeaseTable::open({.runtime_dir = runtime_.path(), .records = 16, .boot_id = "b"});
    REQUIRE_MESSAGE(table, table.error().text);
    leases = std::move(*table);
    options.leases = leases.get();
    options.clock = &clock;
    guard = std::move(*Guard::create(options));
  }
  ~Guarded() { CHECK(allocations_ == 0); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;

  void lower(Knob knob, std::string_view to) { lower(box, knob, to); }
  void lower(const FakeCgroup& group, Knob knob, std::string_view to) {
    const KnobText before = text_of(group.get(file_name(knob)));
    const auto record = leases->record(group.id(), group.path(), knob, before, text_of(to), "test");
    group.put(file_name(knob), std::string(to) + "\n");
    REQUIRE(guard->cover(group.id(), group.open().get(), knob, record.value()));
  }
  std::chrono::milliseconds look(
      std::chrono::milliseconds later = std::chrono::milliseconds(150)) {
    clock.advance(later);
    const long before = allocation_count();
    const auto next = guard->poll_once();
    allocations_ += allocation_count() - before;
    return next;
  }
  void throttle(std::uint64_t usec) {
    box.put("cpu.stat", "usage_usec 1\nthrottled_usec " + std::to_string(usec) + "\n");
  }
  const std::string& root() const { return root_.path(); }

 private:
  TemporaryDirectory root_, runtime_;
  long allocations_ = 0;

 public:
  FakeCgroup box;
  ManualClock clock;
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<Guard> guard;
};

}  // namespace cgphase
