// The calls that create, open and map the lease file fail one after the other.
#include <doctest/doctest.h>
#include <stdlib.h>

#include <array>
#include <cerrno>
#include <filesystem>

#include "control/lease/lease_table.h"
#include "tests/simulator/system_calls.h"

using namespace cgphase;
using namespace cgphase::simulator;

namespace {

class RuntimeDirectory {
 public:
  RuntimeDirectory() {
    char name[] = "/tmp/cgphase-simulator-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~RuntimeDirectory() { std::filesystem::remove_all(path_); }
  LeaseTable::Options options(const char* boot) const {
    return {.runtime_dir = path_ + "/run", .records = 4, .boot_id = boot};
  }

 private:
  std::string path_;
};

KnobText text_of(const char* text) { return KnobText::from(text).value(); }

void hold_one(LeaseTable& leases) {
  REQUIRE(leases.record({1, 2}, "/a", Knob::memory_max, text_of("8192"), text_of("4096"), "test"));
}

// Opens with the n-th call failing, then without a failure, for each n until no call fails. `check`
// receives the table of the second attempt.
template <class Prepare, class Check>
int fail_each_call(const char* boot, Prepare prepare, Check check) {
  for (int n = 1;; ++n) {
    const RuntimeDirectory directory;
    prepare(directory);
    CAPTURE(n);
    // EAGAIN of flock would mean that another process owns the file.
    fail_host_call(n, n % 2 == 0 ? ENOSPC : EIO);
    const bool opened = LeaseTable::open(directory.options(boot)).has_value();
    const int calls = host_calls();
    fail_host_call(0, 0);
    auto again = LeaseTable::open(directory.options(boot));
    REQUIRE_MESSAGE(again, again.error().text);
    check(**again);
    hold_one(**again);
    CHECK((*again)->leased_records().size() == 1);
    if (calls < n) {
      CHECK(opened);
      return calls;
    }
  }
}

}  // namespace

TEST_CASE("a lease file that could not be created is created in the next attempt") {
  const int calls = fail_each_call(
      "b", [](const RuntimeDirectory&) {},
      [](LeaseTable& leases) { CHECK(leases.leased_records().empty()); });
  CHECK(calls >= 7);
}

TEST_CASE("leases survive a failed attempt to open them") {
  const int calls = fail_each_call(
      "b",
      [](const RuntimeDirectory& directory) {
        hold_one(**LeaseTable::open(directory.options("b")));
      },
      [](LeaseTable& leases) {
        REQUIRE(leases.leased_records().size() == 1);
        CHECK(leases.read(leases.leased_records()[0])->values.original == text_of("8192"));
      });
  CHECK(calls >= 4);
}

TEST_CASE("a lease file of an earlier boot is replaced completely or not at all") {
  const int calls = fail_each_call(
      "c",
      [](const RuntimeDirectory& directory) {
        hold_one(**LeaseTable::open(directory.options("b")));
      },
      [](LeaseTable& leases) { CHECK(leases.leased_records().empty()); });
  CHECK(calls >= 8);
}
