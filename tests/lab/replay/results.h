// Replay results made by hand.
#pragma once

#include <string>

#include "lab/replay/report.h"

namespace cgphase::test {

// 100 samples of 1 s in four windows, with a limit of `original`; `over` samples exceed the
// allocation.
inline ReplaySums sums(double allocated, std::int64_t over, double original = 10,
                       double oracle = 2) {
  return {.seconds = 100, .allocated = 100 * allocated, .original = 100 * original,
          .oracle = 100 * oracle, .demanded = 150, .slack_seconds = 50,
          .overrun = static_cast<double>(over), .wastage = 0.25, .samples = 100,
          .samples_over = over, .windows = 4, .windows_clean = over > 0 ? 3 : 4,
          .writes_up = 2, .writes_down = 1};
}

inline ContenderResult result(const std::string& policy, double margin,
                              const std::vector<ReplaySums>& cpu,
                              const std::vector<ReplaySums>& memory = {}) {
  ContenderResult made{.contender = {{policy, {}}, margin}, .safety = false, .executions = {}};
  for (std::size_t i = 0; i < cpu.size(); ++i)
    made.executions.push_back({.id = "run-" + std::to_string(i), .service = "job", .cpu = cpu[i],
                               .memory = i < memory.size() ? memory[i] : ReplaySums{},
                               .limits = {}, .crc = static_cast<std::uint32_t>(i + 1)});
  return made;
}

inline ReplayReport report() {
  ReplayReport made;
  made.traces = {{"a.csv", 0x1234}};
  made.model_crc = 0xabcd;
  made.played_seconds = 200;
  made.bootstrap = {1, 200};
  ReplaySums memory = sums(8, 0);
  memory.would_oom = 2;
  memory.samples_censored = 5;
  made.results = {result("phase", 0, {sums(4, 0), sums(5, 2)}, {sums(5, 0), memory}),
                  result("static", 0, {sums(10, 0), sums(10, 0)}, {sums(10, 0), sums(10, 0)})};
  return made;
}

}  // namespace cgphase::test
