// The features by name, and the schemas that cgphase trains. The default is log_schema().
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/feature_vector.h"

namespace cgphase {

// Names the version of all Feature definitions except `column`. A model file contains it. If a
// definition changes, the name must change.
inline constexpr std::string_view kSchemaName = "cgphase.1";

// The features that are derived from samples, in the order of enum Feature. Ratios are linear.
FeatureSchema plain_schema();
// The same features in the same order, with the logarithm of the two ratios to the limit.
FeatureSchema log_schema();

std::string_view feature_name(Feature feature);
std::optional<Feature> feature_by_name(std::string_view name);
std::vector<std::string_view> feature_names();
// A schema of named features, at least one and none twice. Errors: invalid, with the nearest known
// name.
Result<FeatureSchema> named_schema(std::span<const std::string> names);

// True for features that only BPF programs or GPU drivers count. A model uses one only if it was
// trained with that name.
bool is_optional(Feature feature);

// True if a step cannot have a phase, so that it ends the history as a gap does. Either nothing was
// measured in it, or an optional feature was not. If a host does not count an optional feature, a
// model that uses it recognises no phases: the training mean would be a permanent guess.
bool lacks_input(const FeatureSchema& schema, const FeatureVector& vector);

}  // namespace cgphase
