#include "policy/phase/learned_usage.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace cgphase {
namespace {

constexpr int kUsageSchema = 1;
constexpr int kMostUsageRuns = 1'000'000;
constexpr double kMaxHalfLifeSeconds = 1e9;

std::optional<int> usage_integer_at(const nlohmann::json& json, const char* key, int most) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  const double value = found->get<double>();
  if (!(value >= 0 && value <= most)) return std::nullopt;
  return static_cast<int>(value);
}

std::optional<double> half_life_of(const nlohmann::json& usage, const char* key) {
  const auto histogram = usage.find(key);
  if (histogram == usage.end() || !histogram->is_object()) return std::nullopt;
  const auto found = histogram->find("half_life_seconds");
  if (found == histogram->end() || !found->is_number()) return std::nullopt;
  const double value = found->get<double>();
  if (!(value > 0 && value <= kMaxHalfLifeSeconds)) return std::nullopt;
  return value;
}

Result<DecayingHistogram> usage_histogram_at(const nlohmann::json& json, const char* key,
                                       const DecayingHistogram::Shape& shape) {
  if (!half_life_of(json, key))
    return failure(ErrorKind::invalid,
                   std::string("learned usage: no histogram with a half-life in \"") + key + '"');
  nlohmann::json histogram = json[key];
  histogram["half_life_seconds"] = shape.half_life_seconds;
  return DecayingHistogram::from_json(histogram, shape);
}

}  // namespace

double bounded_half_life(double seconds) {
  constexpr double kLeast = 1, kMost = 1e8;
  return seconds >= kLeast ? std::min(seconds, kMost) : kLeast;
}

nlohmann::json usage_to_json(const LearnedUsage& usage, std::string_view policy) {
  return {{"schema", kUsageSchema},
          {"policy", policy},
          {"runs", usage.runs},
          {"cpu_cores", usage.cpu_cores.to_json()},
          {"memory_bytes", usage.memory_bytes.to_json()}};
}

Result<LearnedUsage> usage_from_json(const nlohmann::json& json, std::string_view policy,
                                     const UsageShapes& shapes) {
  if (!json.is_object() || usage_integer_at(json, "schema", kUsageSchema) != kUsageSchema)
    return failure(ErrorKind::invalid, "learned usage: the schema is not 1");
  const auto name = json.find("policy");
  if (name == json.end() || *name != policy)
    return failure(ErrorKind::invalid, "learned usage: written by another policy");
  const auto runs = usage_integer_at(json, "runs", kMostUsageRuns);
  if (!runs) return failure(ErrorKind::invalid, "learned usage: \"runs\" is not a count");
  auto cpu = usage_histogram_at(json, "cpu_cores", shapes.cpu);
  if (!cpu) return std::unexpected(cpu.error());
  auto memory = usage_histogram_at(json, "memory_bytes", shapes.memory);
  if (!memory) return std::unexpected(memory.error());
  LearnedUsage usage(shapes);
  usage.cpu_cores = std::move(*cpu);
  usage.memory_bytes = std::move(*memory);
  usage.runs = *runs;
  return usage;
}

nlohmann::json merge_usage(const nlohmann::json& earlier, const nlohmann::json& run,
                           double first_cpu, double first_memory) {
  const auto cpu_half_life = half_life_of(run, "cpu_cores");
  const auto memory_half_life = half_life_of(run, "memory_bytes");
  if (!cpu_half_life || !memory_half_life) return earlier;
  const UsageShapes shapes{{first_cpu, *cpu_half_life}, {first_memory, *memory_half_life}};
  const auto name = run.find("policy");
  if (name == run.end() || !name->is_string()) return earlier;
  const auto& policy = name->get_ref<const std::string&>();
  auto added = usage_from_json(run, policy, shapes);
  if (!added) return earlier;
  LearnedUsage merged(shapes);
  if (const auto before = usage_from_json(earlier, policy, shapes)) {
    merged.cpu_cores.merge(before->cpu_cores, kRunDecay);
    merged.memory_bytes.merge(before->memory_bytes, kRunDecay);
    merged.runs = before->runs;
  }
  merged.cpu_cores.merge(added->cpu_cores, 1);
  merged.memory_bytes.merge(added->memory_bytes, 1);
  merged.runs = std::min(merged.runs + added->runs, kMostUsageRuns);
  return usage_to_json(merged, policy);
}

}  // namespace cgphase
