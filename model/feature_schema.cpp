#include "model/feature_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::array<std::pair<Feature, std::string_view>, 16> kNames{{
    {Feature::cpu_usage_ratio, "cpu_usage_ratio"},
    {Feature::memory_need_ratio, "memory_need_ratio"},
    {Feature::memory_growth_per_sec, "memory_growth_per_sec"},
    {Feature::page_fault_log_rate, "page_fault_log_rate"},
    {Feature::disk_read_log_rate, "disk_read_log_rate"},
    {Feature::disk_write_log_rate, "disk_write_log_rate"},
    {Feature::cpu_usage_log_ratio, "cpu_usage_log_ratio"},
    {Feature::memory_need_log_ratio, "memory_need_log_ratio"},
    {Feature::run_queue_wait_ratio, "run_queue_wait_ratio"},
    {Feature::voluntary_switch_log_rate, "voluntary_switch_log_rate"},
    {Feature::involuntary_switch_log_rate, "involuntary_switch_log_rate"},
    {Feature::network_receive_log_rate, "network_receive_log_rate"},
    {Feature::network_transmit_log_rate, "network_transmit_log_rate"},
    {Feature::block_latency_log_usec, "block_latency_log_usec"},
    {Feature::gpu_utilisation_ratio, "gpu_utilisation_ratio"},
    {Feature::gpu_memory_utilisation_ratio, "gpu_memory_utilisation_ratio"},
}};

FeatureSchema schema_of(std::initializer_list<Feature> features) {
  FeatureSchema schema;
  for (const Feature feature : features)
    schema.entries.push_back({feature, std::string(feature_name(feature))});
  return schema;
}

}  // namespace

FeatureSchema plain_schema() {
  return schema_of({Feature::cpu_usage_ratio, Feature::memory_need_ratio,
                    Feature::memory_growth_per_sec, Feature::page_fault_log_rate,
                    Feature::disk_read_log_rate, Feature::disk_write_log_rate});
}

FeatureSchema log_schema() {
  return schema_of({Feature::cpu_usage_log_ratio, Feature::memory_need_log_ratio,
                    Feature::memory_growth_per_sec, Feature::page_fault_log_rate,
                    Feature::disk_read_log_rate, Feature::disk_write_log_rate});
}

std::string_view feature_name(Feature feature) {
  for (const auto& [known, name] : kNames)
    if (known == feature) return name;
  return "column";
}

std::optional<Feature> feature_by_name(std::string_view name) {
  for (const auto& [feature, known] : kNames)
    if (known == name) return feature;
  return std::nullopt;
}

std::vector<std::string_view> feature_names() {
  std::vector<std::string_view> names;
  for (const auto& [feature, name] : kNames) names.push_back(name);
  return names;
}

Result<FeatureSchema> named_schema(std::span<const std::string> names) {
  const auto refuse = [](const std::string& what) { return failure(ErrorKind::invalid, what); };
  if (names.empty()) return refuse("no feature is named");
  FeatureSchema schema;
  for (const std::string& name : names) {
    const std::optional<Feature> feature = feature_by_name(name);
    if (!feature) {
      const std::string_view close = nearest(name, feature_names());
      return refuse("there is no feature \"" + escape_name(name) + "\"" +
                    (close.empty() ? "" : ", did you mean \"" + std::string(close) + "\"?"));
    }
    if (std::ranges::find(schema.entries, name, &FeatureSchema::Entry::name) !=
        schema.entries.end())
      return refuse("feature " + name + " is named twice");
    schema.entries.push_back({*feature, name});
  }
  return schema;
}

bool is_optional(Feature feature) { return feature >= Feature::run_queue_wait_ratio; }

bool lacks_input(const FeatureSchema& schema, const FeatureVector& vector) {
  bool measured = false;
  for (std::size_t i = 0; i < vector.values.size(); ++i) {
    const std::optional<double>& value = vector.values[i];
    if (value && std::isfinite(*value)) measured = true;
    else if (is_optional(schema.entries[i].feature)) return true;
  }
  return !measured;
}

}  // namespace cgphase
