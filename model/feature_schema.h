// The features by name, and the schemas that cgphase trains: log_schema() by default.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/feature_vector.h"

namespace cgphase {

// Names the definition of every Feature but `column`: a model file states it, and a change of what
// any of them means takes a new name.
inline constexpr std::string_view kSchemaName = "cgphase.1";

// The features that are derived from samples, in the order of enum Feature: ratios as they are.
FeatureSchema plain_schema();
// The same with the two ratios to the limit in the logarithm, in the same order.
FeatureSchema log_schema();

std::string_view feature_name(Feature feature);
std::optional<Feature> feature_by_name(std::string_view name);
std::vector<std::string_view> feature_names();
// Features by their names, at least one and none twice. Errors: invalid, naming the nearest one.
Result<FeatureSchema> named_schema(std::span<const std::string> names);

// True when some entry is a trace column: such a model reads traces, never live samples.
bool has_columns(const FeatureSchema& schema);

}  // namespace cgphase
