#include "tests/workloads/demo_raise.h"

#include <doctest/doctest.h>

using namespace cgphase::workloads;
using nlohmann::json;

namespace {

json limits(double mib) { return {{"memory_bytes", mib * 1048576}, {"cpu_cores", 0.7}}; }

json raised(double time, double from, double to) {
  return {{"event", "decision"},
          {"name", "batch"},
          {"decision",
           {{"time", time},
            {"direction", "raise"},
            {"verdict", "allowed"},
            {"reason", "phase_changed"},
            {"resource", "memory"},
            {"old_limits", limits(from)},
            {"new_limits", limits(to)}}}};
}

json point(double time, double mib, double limit, const char* letter) {
  return {{"time", time},
          {"cpu_cores", 0.1},
          {"memory_need_bytes", mib * 1048576},
          {"limits", limits(limit)},
          {"phase", {{"state", "known"}, {"letter", letter}}}};
}

// Use passes 8 MiB at 140, in phase E. The limit rose at 105, in phase A.
struct Recorded {
  std::vector<json> events = {raised(105, 8, 35)};
  std::vector<json> points = {point(90, 30, 35, "E"), point(101, 1, 8, "A"), point(104, 1, 8, "A"),
                              point(106, 1, 35, "A"), point(140, 9, 35, "E")};

  std::vector<Raise> found() const { return raises_before_phases("batch", 100, events, points); }
};

}  // namespace

TEST_CASE_FIXTURE(Recorded, "raise: a limit that rose in one phase, and use in a later one") {
  REQUIRE(found().size() == 1);
  const Raise raise = found()[0];
  CHECK(raise.second == 5);
  CHECK(raise.seconds_before == 35);
  CHECK(raise.phase_then == 'A');
  CHECK(raise.phase == 'E');
  CHECK(to_text(raise) ==
        "batch: memory.high rose from 8.0 MiB to 35.0 MiB at second 5, in phase A, while 1.0 MiB "
        "were in use; 35 s later, in phase E, 9.0 MiB were");
}

TEST_CASE_FIXTURE(Recorded, "raise: use that never passed the earlier limit does not count") {
  points.back() = point(140, 7, 35, "E");
  CHECK(found().empty());
}

TEST_CASE_FIXTURE(Recorded, "raise: use in the same phase or an unknown one does not count") {
  points.back() = point(140, 9, 35, "A");
  CHECK(found().empty());
  points.back()["phase"] = {{"state", "unknown"}, {"letter", "E"}};
  CHECK(found().empty());
}

TEST_CASE_FIXTURE(Recorded, "raise: a limit that was lowered before use rose does not count") {
  points.insert(points.end() - 1, point(120, 1, 8, "A"));
  CHECK(found().empty());
}

TEST_CASE_FIXTURE(Recorded, "raise: what answered use, or came after it, does not count") {
  events[0]["decision"]["reason"] = "headroom";
  CHECK(found().empty());
  events[0]["decision"]["reason"] = "phase_statistics";
  CHECK(found().size() == 1);
  points[2] = point(104, 9, 8, "A");
  CHECK(found().empty());
}

TEST_CASE_FIXTURE(Recorded, "raise: other containers, runs and blocked changes do not count") {
  CHECK(raises_before_phases("serve", 100, events, points).empty());
  CHECK(raises_before_phases("batch", 110, events, points).empty());
  events[0]["decision"]["verdict"] = "cool_down";
  CHECK(found().empty());
}

TEST_CASE_FIXTURE(Recorded, "raise: of several before one rise of use, the highest counts") {
  events = {raised(105, 8, 10), raised(107, 8, 35), raised(109, 8, 9)};
  REQUIRE(found().size() == 1);
  CHECK(found()[0].second == 7);
}

TEST_CASE_FIXTURE(Recorded, "raise: a quota rises before CPU use") {
  json& decision = events[0]["decision"];
  decision["resource"] = "cpu";
  decision["old_limits"]["cpu_cores"] = 0.3;
  points.back()["cpu_cores"] = 0.5;
  REQUIRE(found().size() == 1);
  CHECK(to_text(found()[0]).find("cpu.max rose from 0.30 cores to 0.70 cores") !=
        std::string::npos);
}
