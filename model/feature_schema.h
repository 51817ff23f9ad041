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

// What BPF programs and GPU drivers count and no file tells: no model looks at it unless it was
// trained to, by name.
bool is_optional(Feature feature);

// True when no phase can be told from a step, so that it ends the history as a gap does: nothing
// was measured in it, or an optional feature was not. On a host that does not count one, a model
// that looks at it knows no phases: the training mean in its place would be a guess that lasts.
bool lacks_input(const FeatureSchema& schema, const FeatureVector& vector);

// True when some entry is a trace column: such a model reads traces, never live samples.
bool has_columns(const FeatureSchema& schema);

}  // namespace cgphase
