#include "policy/phase/run_peaks.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

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

TEST_CASE("runs are read back from JSON as written") {
  const RunPeaks runs = {{10, 1.5, 200, 5}, {20, 3, 100, 9}};
  CHECK(run_peaks_from_json(run_peaks_to_json(runs)).value() == runs);
}

TEST_CASE("runs in a foreign format are refused") {
  const auto good = run_peaks_to_json({{10, 1.5, 200, 5}});
  auto bad = good;
  bad[0]["samples"] = -1;
  CHECK_FALSE(run_peaks_from_json(bad).has_value());
  bad = good;
  bad[0].erase("cpu_cores");
  CHECK_FALSE(run_peaks_from_json(bad).has_value());
  bad = good;
  for (std::size_t i = 0; i < kRunsKept; ++i) bad.push_back(good[0]);
  CHECK_FALSE(run_peaks_from_json(bad).has_value());
  CHECK_FALSE(run_peaks_from_json(nullptr).has_value());
  CHECK_FALSE(run_peaks_from_json(nlohmann::json{1}).has_value());
}
