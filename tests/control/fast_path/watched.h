// A container with lowered limits, and a fast path that the test steps.
#pragma once

#include <doctest/doctest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "base/clock.h"
#include "control/fast_path/fast_path.h"
#include "tests/cgroupfs/fake_cgroup.h"
#include "tests/collectors/allocation_count.h"

namespace cgphase {

// The fast path has no thread, and the clock moves only when the test moves it. The fast path never
// allocates in a check.
class Watched {
 public:
  explicit Watched(FastPath::Options options = {.containers = 4}) : box(root_.path()) {
    auto table = LeaseTable::open({.runtime_dir = runtime_.path(), .records = 16, .boot_id = "b"});
    REQUIRE_MESSAGE(table, table.error().text);
    leases = std::move(*table);
    options.leases = leases.get();
    options.clock = &clock;
    fast_path = std::move(*FastPath::create(options));
  }
  ~Watched() { CHECK(allocations_ == 0); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  void lower(Knob knob, std::string_view to) { lower(box, knob, to); }
  void lower(const FakeCgroup& group, Knob knob, std::string_view to) {
    const KnobText before = text_of(group.get(file_name(knob)));
    const auto record = leases->record(group.id(), group.path(), knob, before, text_of(to), "test");
    group.put(file_name(knob), std::string(to) + "\n");
    REQUIRE(fast_path->cover(group.id(), group.open().get(), knob, record.value()));
  }
  std::chrono::milliseconds look(
      std::chrono::milliseconds later = std::chrono::milliseconds(150)) {
    clock.advance(later);
    const long before = allocation_count();
    const auto next = fast_path->poll_once();
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
  std::unique_ptr<FastPath> fast_path;
};

}  // namespace cgphase
