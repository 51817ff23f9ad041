#include "policy/safety/live_runs.h"

#include <doctest/doctest.h>

#include <string>

#include "base/units.h"

using namespace cgphase;

namespace {

constexpr CgroupId kRun{7, 42};
constexpr double kMany = 600.0 * kMiB;

LiveRuns one_run() {
  LiveRuns runs;
  runs.keep(kRun, "trainer", kMany);
  return runs;
}

}  // namespace

TEST_CASE("the peak of a run belongs to its cgroup and name and never falls") {
  LiveRuns runs = one_run();
  runs.keep(kRun, "trainer", kMany / 2);
  CHECK(runs.peak_bytes(kRun, "trainer") == kMany);
  CHECK_FALSE(runs.peak_bytes(kRun, "another").has_value());
  CHECK_FALSE(runs.peak_bytes({7, 43}, "trainer").has_value());
  runs.keep(kRun, "another", kMiB);  // another cgroup with the same id
  CHECK(runs.peak_bytes(kRun, "another") == kMiB);
}

TEST_CASE("growth by more than 2 % is reported once") {
  LiveRuns runs = one_run();
  CHECK(runs.take_news());
  CHECK_FALSE(runs.take_news());
  runs.keep(kRun, "trainer", 1.02 * kMany);
  CHECK_FALSE(runs.take_news());
  runs.keep(kRun, "trainer", 1.021 * kMany);
  CHECK(runs.take_news());
}

TEST_CASE("1024 runs are stored, a further one is not") {
  LiveRuns runs;
  for (std::uint64_t inode = 0; inode <= LiveRuns::kRuns; ++inode)
    runs.keep({1, inode}, "c", kMiB);
  CHECK(runs.size() == LiveRuns::kRuns);
  CHECK_FALSE(runs.peak_bytes({1, LiveRuns::kRuns}, "c").has_value());
  runs.retain([](CgroupId id) { return id.inode == 3; });
  CHECK(runs.size() == 1);
}

TEST_CASE("a name that is too long and a need of zero are not stored") {
  LiveRuns runs;
  runs.keep(kRun, std::string(LiveRuns::kMostNameBytes + 1, 'n'), kMiB);
  runs.keep(kRun, "none", 0);
  CHECK(runs.size() == 0);
  runs.keep(kRun, std::string(LiveRuns::kMostNameBytes, 'n'), kMiB);
  CHECK(runs.size() == 1);
}
