#include "policy/phase/run_peaks.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("the highest of several runs is computed per measure") {
  const RunPeak highest = highest_of({{10, 1, 200, 5}, {20, 3, 100, 9}});
  CHECK(highest == RunPeak{30, 3, 200, 9});
}

TEST_CASE("the ninth run drops the first") {
  RunPeaks runs;
  add_runs(runs, {{10, 99, 1, 1}});
  for (int i = 0; i < 7; ++i) add_runs(runs, {{10, 1, 1, 1}});
  CHECK(highest_of(runs).cpu_cores == 99);
  add_runs(runs, {{10, 1, 1, 1}});
  CHECK(runs.size() == kRunsKept);
  CHECK(highest_of(runs).cpu_cores == 1);
}

TEST_CASE("peaks of runs are checked at their bounds and one past them") {
  const RunPeak run{10, 1.5, 200, 5};
  CHECK(check_run_peaks(RunPeaks(kRunsKept, run)).has_value());
  CHECK_FALSE(check_run_peaks(RunPeaks(kRunsKept + 1, run)).has_value());
  for (double RunPeak::* number : {&RunPeak::samples, &RunPeak::cpu_cores, &RunPeak::memory_bytes,
                                   &RunPeak::memory_rise_bytes_per_sec}) {
    RunPeak bad = run;
    bad.*number = 1e18;
    CHECK(check_run_peaks({bad}).has_value());
    for (const double value : {-1.0, 1.1e18}) {
      bad.*number = value;
      CHECK_FALSE(check_run_peaks({bad}).has_value());
    }
  }
}
