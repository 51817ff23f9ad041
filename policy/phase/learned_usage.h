// What the policies that keep one histogram per resource hand on from run to run, as VPA does with
// its checkpoints: `{"schema":1,"policy":NAME,"runs":N,"cpu_cores":{..},"memory_bytes":{..}}`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "policy/phase/histogram.h"

namespace cgphase {

// Weight of all earlier runs against the newest: half is forgotten after three.
inline constexpr double kRunDecay = 0.8;

struct UsageShapes {
  DecayingHistogram::Shape cpu, memory;
};

// What a job's length gives, within 1 s and 3 years; 1 s where it is not a number.
double bounded_half_life(double seconds);

struct LearnedUsage {
  explicit LearnedUsage(const UsageShapes& shapes)
      : cpu_cores(shapes.cpu), memory_bytes(shapes.memory) {}
  DecayingHistogram cpu_cores, memory_bytes;
  int runs = 0;
};

nlohmann::json usage_to_json(const LearnedUsage& usage, std::string_view policy);
// Half-lives may differ from those it was made with, which change with the length of the job:
// weights stay as they were. Errors: invalid, naming what is wrong.
Result<LearnedUsage> usage_from_json(const nlohmann::json& json, std::string_view policy,
                                     const UsageShapes& shapes);
// The merge_learned of these policies. What earlier runs taught counts 0.8 of what it did, so that
// half is forgotten after three. `first`: of the policy's shapes, whatever their half-lives.
nlohmann::json merge_usage(const nlohmann::json& earlier, const nlohmann::json& run,
                           double first_cpu, double first_memory);

}  // namespace cgphase
