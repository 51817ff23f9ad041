// The plan of a run, made before it starts: the stages with their lengths, and every arriving
// request. Pure: the same seed and length give the same plan.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace cgphase::workloads {

using Milliseconds = std::chrono::milliseconds;

inline constexpr double kMinSeconds = 2;
inline constexpr double kMaxSeconds = 24 * 3600;
inline constexpr double kMinSize = 0.01;
inline constexpr double kMaxSize = 16;
inline constexpr double kMinArithmetic = 0.001;

// One stage of a workload; the label file has its phase name.
struct Stage {
  std::string phase;
  Milliseconds length;
};

// The stages sum up to `seconds`, to 100 ms per stage; each varies by a fifth with the seed.
// Longer runs have more epochs, bursts and cycles, not longer ones.
std::vector<Stage> train_plan(std::uint64_t seed, double seconds);
std::vector<Stage> serve_plan(std::uint64_t seed, double seconds);
std::vector<Stage> batch_plan(std::uint64_t seed, double seconds, double wait = 0);

// A request for the inference service.
struct Arrival {
  double offset_seconds = 0;  // since the start of the run
  int model = 0;              // 0, or 1 for the model that is loaded at its first request
  std::uint32_t key = 0;      // few keys are requested often
};

// Ascending. None in the stage "start". 5 per second in a lull, 80 in a burst, as a Poisson
// process. Model 1 from the second burst on, for three requests in ten.
std::vector<Arrival> arrivals(std::uint64_t seed, const std::vector<Stage>& stages);

}  // namespace cgphase::workloads
