// What policies with one histogram per resource pass from run to run, like VPA's checkpoints:
// `{"schema":1,"policy":NAME,"runs":N,"cpu_cores":{..},"memory_bytes":{..}}`.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "base/result.h"
#include "policy/phase/histogram.h"

namespace cgphase {

// Weight of all earlier runs relative to the newest. After three runs half of it is left.
inline constexpr double kRunDecay = 0.8;

struct UsageShapes {
  DecayingHistogram::Shape cpu, memory;
};

// A half-life from a job's length, limited to 1 s ... 3 years. 1 s if it is not a number.
double bounded_half_life(double seconds);

struct LearnedUsage {
  explicit LearnedUsage(const UsageShapes& shapes)
      : cpu_cores(shapes.cpu), memory_bytes(shapes.memory) {}
  DecayingHistogram cpu_cores, memory_bytes;
  int runs = 0;
};

nlohmann::json usage_to_json(const LearnedUsage& usage, std::string_view policy);
// The half-lives may differ from the stored ones, because they depend on the length of the job. The
// weights are not changed. Errors: invalid, with the reason.
Result<LearnedUsage> usage_from_json(const nlohmann::json& json, std::string_view policy,
                                     const UsageShapes& shapes);
// Merge function of these policies. Earlier runs are weighted by kRunDecay. `first_cpu`,
// `first_memory`: those of the policy's shapes, whatever their half-lives.
nlohmann::json merge_usage(const nlohmann::json& earlier, const nlohmann::json& run,
                           double first_cpu, double first_memory);

}  // namespace cgphase
