#include "model/feature_schema.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::array<std::pair<Feature, std::string_view>, 8> kNames{{
    {Feature::cpu_usage_ratio, "cpu_usage_ratio"},
    {Feature::memory_need_ratio, "memory_need_ratio"},
    {Feature::memory_growth_per_sec, "memory_growth_per_sec"},
    {Feature::page_fault_log_rate, "page_fault_log_rate"},
    {Feature::disk_read_log_rate, "disk_read_log_rate"},
    {Feature::disk_write_log_rate, "disk_write_log_rate"},
    {Feature::cpu_usage_log_ratio, "cpu_usage_log_ratio"},
    {Feature::memory_need_log_ratio, "memory_need_log_ratio"},
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

bool has_columns(const FeatureSchema& schema) {
  return std::ranges::any_of(schema.entries, [](const FeatureSchema::Entry& entry) {
    return entry.feature == Feature::column;
  });
}

}  // namespace cgphase
