#include "tests/workloads/demo_host.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

using namespace cgphase::workloads;

namespace {

struct Lines {
  double alone = 150, p99 = 187.5, batch = 17, makespan = 65;  // each at its bound
  int kills = 0;

  DemoHost host() const {
    DemoHost host;
    for (const std::string& line :
         {fmt::format(R"({{"arm": "alone", "seed": 1, "p99_ms": {}, "batch_cpu_seconds": 0}})",
                      alone),
          std::string(R"({"arm": "free", "seed": 1, "p99_ms": 900, "batch_cpu_seconds": 20})"),
          fmt::format(R"({{"arm": "cgphase", "seed": 1, "p99_ms": {}, "batch_cpu_seconds": {}}})",
                      p99, batch),
          std::string(R"({"arm": "cgphase", "runs": 1, "p99_ms": 1, "batch_cpu_seconds": 1})"),
          std::string(
              R"({"arm": "limits", "seed": 1, "makespan_s": 100, "most_at_once": 3, "kills": 0})"),
          fmt::format(R"({{"arm": "cgphase", "seed": 1, "makespan_s": {}, "most_at_once": 7, )"
                      R"("kills": {}}})",
                      makespan, kills)})
      REQUIRE(host.add(line).has_value());
    return host;
  }
  bool held() const { return all_held(host().requirements()); }
};

}  // namespace

TEST_CASE("demo: part 1 and 2 pass at their bounds and fail beyond") {
  CHECK(Lines{}.held());
  CHECK_FALSE(Lines{.alone = 150.1}.held());
  CHECK_FALSE(Lines{.p99 = 187.6}.held());
  CHECK_FALSE(Lines{.batch = 16.9}.held());
  CHECK_FALSE(Lines{.makespan = 65.1}.held());
  CHECK_FALSE(Lines{.kills = 1}.held());
}

TEST_CASE("demo: runs that are missing fail it") {
  CHECK_FALSE(all_held(DemoHost{}.requirements()));
  CHECK(DemoHost{}.numbers().empty());
}

TEST_CASE("demo: each run has a sentence with its ratios, and medians have none") {
  DemoHost host = Lines{}.host();
  CHECK(host.add(R"({"arm": "cgphase", "seed": 1, "p99_ms": 180, "batch_cpu_seconds": 19})")
            .value() ==
        "  beside the job, with cgphase: p99 180 ms, 1.20 of alone; the job gets 19.0 s, 95 %\n");
  CHECK(host.add(R"({"arm": "limits", "runs": 1, "makespan_s": 100})").value().empty());
  CHECK(Lines{}.host().numbers() ==
        "the service's p99 was 1.25 of alone beside a job that did 85 % of its work; twelve jobs "
        "took 0.65 of the time, 0 killed");
}

TEST_CASE("demo: what bench/host/run does not print is invalid") {
  for (const char* line : {"", "error", "[]", R"({"seed": 1})", R"({"arm": "alone", "seed": 1})"})
    CHECK_FALSE(DemoHost{}.add(line).has_value());
}
