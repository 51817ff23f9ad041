#include "model/model.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>

#include "base/crc32.h"
#include "base/file.h"
#include "base/text.h"
#include "model/crbm_fixed.h"
#include "model/feature_schema.h"
#include "model/foreign_json.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::string_view kFormat = "cgphase-model";
constexpr int kVersion = 1;

// The keys of each object of the file. All must exist and no other may, except for the optional
// keys at the top.
constexpr std::array<std::string_view, 12> kTopKeys{
    "format", "version", "schema",    "features", "step_seconds", "scaler",
    "crbm",   "fixed",   "centroids", "phases",   "provenance",   "checksum"};
constexpr std::string_view kParents = "parents";         // only where a phase was split
constexpr std::string_view kSwitchCost = "switch_cost";  // only where it is above 0
constexpr std::array<std::string_view, 2> kOptionalKeys{kParents, kSwitchCost};
constexpr std::array<std::string_view, 2> kScalerKeys{"mean", "scale"};
constexpr std::array<std::string_view, 8> kCrbmKeys{
    "visible", "hidden", "history", "W", "A", "B", "visible_bias", "hidden_bias"};
constexpr std::array<std::string_view, 2> kFixedKeys{"input_shift", "weight_shift"};
constexpr std::array<std::string_view, 6> kPhaseKeys{
    "count", "cpu_mean_ratio", "cpu_m2", "memory_mean_ratio", "memory_m2", "novelty_distance"};

// Thrown only inside parse_model, which turns it into an Error. It has the key and the reason.
struct Refusal {
  std::string key, what;
};

std::string joined(const std::string& path, std::string_view key) {
  return path.empty() ? std::string(key) : path + "." + std::string(key);
}

// Makes a foreign key or name printable. A name that is longer than any valid one is cut.
std::string shown(const std::string& name) {
  constexpr std::size_t kShownBytes = 64;
  if (name.size() <= kMaxTextBytes) return escape_name(name);
  return escape_name(name.substr(0, kShownBytes)) + "...";
}

// ", did you mean ..." if a known name is close. Very long names are skipped, because the
// comparison costs their length times the length of each known name.
std::string suggestion(const std::string& name, std::span<const std::string_view> known) {
  if (name.size() > kMaxTextBytes) return "";
  const std::string_view near = nearest(name, known);
  return near.empty() ? "" : ", did you mean \"" + std::string(near) + "\"?";
}

void require_keys(const json& object, const std::string& path,
                  std::span<const std::string_view> known,
                  std::span<const std::string_view> optional = {}) {
  if (!object.is_object()) throw Refusal{path, "must be an object"};
  std::vector<std::string_view> allowed(known.begin(), known.end());
  allowed.insert(allowed.end(), optional.begin(), optional.end());
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(allowed, key) != allowed.end()) continue;
    throw Refusal{joined(path, shown(key)), "unknown key" + suggestion(key, allowed)};
  }
  for (const std::string_view key : known)
    if (!object.contains(key)) throw Refusal{joined(path, key), "is missing"};
}

double number(const json& value, const std::string& path) {
  if (!value.is_number()) throw Refusal{path, "must be a number"};
  return value.get<double>();
}

int integer(const json& value, const std::string& path) {
  constexpr std::int64_t kBound = 1'000'000;
  // Numbers above the range of int64 are unsigned in the parser.
  const bool huge = value.is_number_unsigned() && value.get<std::uint64_t>() > kBound;
  if (!value.is_number_integer() || huge || value.get<std::int64_t>() < -kBound)
    throw Refusal{path, "must be an integer of at most 1000000"};
  return value.get<int>();
}

std::string text(const json& value, const std::string& path) {
  if (!value.is_string()) throw Refusal{path, "must be a string"};
  return value.get<std::string>();
}

std::vector<double> numbers(const json& value, const std::string& path) {
  if (!value.is_array()) throw Refusal{path, "must be an array of numbers"};
  std::vector<double> result;
  for (const json& element : value) result.push_back(number(element, path));
  return result;
}

// Reads an array of rows, each of `columns` numbers.
std::vector<double> matrix(const json& value, const std::string& path, int rows, int columns) {
  if (!value.is_array() || value.size() != static_cast<std::size_t>(rows))
    throw Refusal{path, "must be an array of " + std::to_string(rows) + " rows"};
  std::vector<double> result;
  for (const json& row : value) {
    const std::vector<double> line = numbers(row, path);
    if (line.size() != static_cast<std::size_t>(columns))
      throw Refusal{path, "a row must have " + std::to_string(columns) + " numbers"};
    result.insert(result.end(), line.begin(), line.end());
  }
  return result;
}

json rows_of(const std::vector<double>& values, int rows) {
  json result = json::array();
  const std::size_t columns = rows > 0 ? values.size() / static_cast<std::size_t>(rows) : 0;
  for (std::size_t begin = 0; begin + columns <= values.size() && columns > 0; begin += columns)
    result.push_back(json(std::vector<double>(&values[begin], &values[begin] + columns)));
  // A matrix without columns (no history) still has its rows.
  while (result.size() < static_cast<std::size_t>(rows)) result.push_back(json::array());
  return result;
}

// Invalid UTF-8 in foreign strings is replaced and never makes this fail.
std::string compact(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string checksum_of(json document) {
  document.erase("checksum");
  char printed[16];
  std::snprintf(printed, sizeof printed, "%08x", crc32c(std::string_view(compact(document))));
  return printed;
}

// ---- reading, one object of the file each ----

FeatureSchema parse_features(const json& features) {
  if (!features.is_array()) throw Refusal{"features", "must be an array"};
  FeatureSchema schema;
  for (const json& entry : features) {
    if (entry.is_object()) {
      constexpr std::array<std::string_view, 1> kKeys{"column"};
      require_keys(entry, "features", kKeys);
      schema.entries.push_back({Feature::column, text(entry["column"], "features.column")});
      continue;
    }
    const std::string name = text(entry, "features");
    const std::optional<Feature> feature = feature_by_name(name);
    if (!feature) {
      const std::vector<std::string_view> names = feature_names();
      throw Refusal{"features",
                    "unknown feature \"" + shown(name) + "\"" + suggestion(name, names)};
    }
    schema.entries.push_back({*feature, name});
  }
  return schema;
}

CrbmParameters parse_crbm(const json& object) {
  require_keys(object, "crbm", kCrbmKeys);
  CrbmParameters crbm;
  crbm.n_vis = integer(object["visible"], "crbm.visible");
  crbm.n_hid = integer(object["hidden"], "crbm.hidden");
  crbm.n_his = integer(object["history"], "crbm.history");
  if (crbm.n_vis < 1 || crbm.n_vis > kMaxFeatures) throw Refusal{"crbm.visible", "out of bounds"};
  if (crbm.n_hid < 1 || crbm.n_hid > kMaxHidden) throw Refusal{"crbm.hidden", "out of bounds"};
  if (crbm.n_his < 0 || crbm.n_his > kMaxHistory) throw Refusal{"crbm.history", "out of bounds"};
  crbm.w = matrix(object["W"], "crbm.W", crbm.n_hid, crbm.n_vis);
  crbm.a = matrix(object["A"], "crbm.A", crbm.n_vis, crbm.n_vis * crbm.n_his);
  crbm.b = matrix(object["B"], "crbm.B", crbm.n_hid, crbm.n_vis * crbm.n_his);
  crbm.visible_bias = numbers(object["visible_bias"], "crbm.visible_bias");
  crbm.hidden_bias = numbers(object["hidden_bias"], "crbm.hidden_bias");
  return crbm;
}

std::vector<int> parse_parents(const json& document) {
  std::vector<int> parents;
  const auto found = document.find(kParents);
  if (found == document.end()) return parents;
  if (!found->is_array() || found->empty()) throw Refusal{"parents", "must be one per centroid"};
  for (const json& value : *found) parents.push_back(integer(value, "parents"));
  return parents;
}

Centroids parse_centroids(const json& rows, int dimension) {
  if (!rows.is_array() || rows.empty() || rows.size() > std::size_t{kMaxPhases})
    throw Refusal{"centroids", "must be 1.." + std::to_string(kMaxPhases) + " rows"};
  Centroids centroids;
  centroids.count = static_cast<int>(rows.size());
  centroids.dimension = dimension;
  centroids.values = matrix(rows, "centroids", centroids.count, dimension);
  return centroids;
}

std::vector<PhaseSummary> parse_phases(const json& array) {
  if (!array.is_array()) throw Refusal{"phases", "must be an array"};
  std::vector<PhaseSummary> phases;
  for (const json& object : array) {
    require_keys(object, "phases", kPhaseKeys);
    PhaseSummary phase;
    phase.count = number(object["count"], "phases.count");
    phase.cpu_mean_ratio = number(object["cpu_mean_ratio"], "phases.cpu_mean_ratio");
    phase.cpu_m2 = number(object["cpu_m2"], "phases.cpu_m2");
    phase.memory_mean_ratio = number(object["memory_mean_ratio"], "phases.memory_mean_ratio");
    phase.memory_m2 = number(object["memory_m2"], "phases.memory_m2");
    phase.novelty_distance = number(object["novelty_distance"], "phases.novelty_distance");
    phases.push_back(phase);
  }
  return phases;
}

void require_fixed(const json& object, const CrbmParameters& crbm) {
  require_keys(object, "fixed", kFixedKeys);
  if (integer(object["input_shift"], "fixed.input_shift") != kInputShift)
    throw Refusal{"fixed.input_shift", "must be " + std::to_string(kInputShift)};
  if (object["weight_shift"] != json(weight_shifts(crbm)))
    throw Refusal{"fixed.weight_shift", "does not match the weights"};
}

void require_header(const json& document) {
  if (!document.is_object() || !document.contains("format") || document["format"] != kFormat)
    throw Refusal{"format", "this is not a model file of cgphase"};
  if (!document.contains("version") || document["version"] != kVersion)
    throw Refusal{"version", "only version " + std::to_string(kVersion) + " can be read"};
  require_keys(document, "", kTopKeys, kOptionalKeys);
  if (text(document["checksum"], "checksum") != checksum_of(document))
    throw Refusal{"checksum", "does not match: the file was damaged or edited"};
  if (document["schema"] != kSchemaName)
    throw Refusal{"schema", "only \"" + std::string(kSchemaName) + "\" is known"};
}

Model from_json(const json& document) {
  require_header(document);
  Model model;
  model.schema = parse_features(document["features"]);
  model.step_seconds = number(document["step_seconds"], "step_seconds");
  require_keys(document["scaler"], "scaler", kScalerKeys);
  model.scaler.mean = numbers(document["scaler"]["mean"], "scaler.mean");
  model.scaler.scale = numbers(document["scaler"]["scale"], "scaler.scale");
  model.crbm = parse_crbm(document["crbm"]);
  model.centroids = parse_centroids(document["centroids"], model.crbm.n_hid);
  model.centroids.parents = parse_parents(document);
  if (const auto cost = document.find(kSwitchCost); cost != document.end())
    model.switch_cost = number(*cost, std::string(kSwitchCost));
  model.phases = parse_phases(document["phases"]);
  if (!document["provenance"].is_object()) throw Refusal{"provenance", "must be an object"};
  for (const auto& [key, value] : document["provenance"].items())
    model.provenance[key] = text(value, joined("provenance", shown(key)));
  require_fixed(document["fixed"], model.crbm);
  return model;
}

// ---- writing ----

json to_json(const Model& model) {
  json features = json::array();
  for (const FeatureSchema::Entry& entry : model.schema.entries)
    features.push_back(entry.feature == Feature::column ? json{{"column", entry.name}}
                                                        : json(entry.name));
  json phases = json::array();
  for (const PhaseSummary& phase : model.phases)
    phases.push_back({{"count", phase.count},
                      {"cpu_mean_ratio", phase.cpu_mean_ratio},
                      {"cpu_m2", phase.cpu_m2},
                      {"memory_mean_ratio", phase.memory_mean_ratio},
                      {"memory_m2", phase.memory_m2},
                      {"novelty_distance", phase.novelty_distance}});
  const CrbmParameters& crbm = model.crbm;
  json document = {
      {"format", kFormat},
      {"version", kVersion},
      {"schema", kSchemaName},
      {"features", features},
      {"step_seconds", model.step_seconds},
      {"scaler", {{"mean", model.scaler.mean}, {"scale", model.scaler.scale}}},
      {"crbm",
       {{"visible", crbm.n_vis},
        {"hidden", crbm.n_hid},
        {"history", crbm.n_his},
        {"W", rows_of(crbm.w, crbm.n_hid)},
        {"A", rows_of(crbm.a, crbm.n_vis)},
        {"B", rows_of(crbm.b, crbm.n_hid)},
        {"visible_bias", crbm.visible_bias},
        {"hidden_bias", crbm.hidden_bias}}},
      {"fixed", {{"input_shift", kInputShift}, {"weight_shift", weight_shifts(crbm)}}},
      {"centroids", rows_of(model.centroids.values, model.centroids.count)},
      {"phases", phases},
      {"provenance", model.provenance},
  };
  if (!model.centroids.parents.empty()) document[kParents] = model.centroids.parents;
  if (model.switch_cost > 0) document[kSwitchCost] = model.switch_cost;
  if (model.provenance.empty()) document["provenance"] = json::object();
  document["checksum"] = checksum_of(document);
  return document;
}

// Formats for people: one key per line, and one line per row of a matrix or array of objects.
void print(const json& value, int depth, std::string& out) {
  const bool nested = value.is_object() || (value.is_array() && !value.empty() &&
                                            (value[0].is_array() || value[0].is_object()));
  if (!nested || depth == 3 || value.empty()) {
    out += compact(value);
    return;
  }
  const std::string indent(static_cast<std::size_t>(depth), ' ');
  out += value.is_object() ? "{" : "[";
  bool first = true;
  for (const auto& [key, element] : value.items()) {
    out += (first ? "\n " : ",\n ") + indent;
    if (value.is_object()) out += compact(json(key)) + ": ";
    if (value.is_object()) print(element, depth + 1, out);
    else out += compact(element);
    first = false;
  }
  out += "\n" + indent + (value.is_object() ? "}" : "]");
}

}  // namespace

Result<Model> parse_model(const std::string& json_text, const std::string& name) {
  const auto refuse = [&](const std::string& what) {
    return failure(ErrorKind::invalid, name + ": " + what);
  };
  if (json_text.size() > kMaxModelFileBytes)
    return refuse("larger than the limit of " + std::to_string(kMaxModelFileBytes) + " bytes");
  try {
    const Result<json> document = parse_foreign_json(json_text, name);
    if (!document) return std::unexpected(document.error());
    Model model = from_json(*document);
    if (Status status = check_model(model, name); !status) return std::unexpected(status.error());
    return model;
  } catch (const Refusal& refusal) {
    return refuse(refusal.key + ": " + refusal.what);
  } catch (const json::exception& exception) {
    return refuse(reason_of(exception));
  }
}

Result<Model> load_model(const std::string& path) {
  const Result<std::string> content = read_file(path, kMaxModelFileBytes);
  if (!content) return std::unexpected(content.error());
  return parse_model(*content, path);
}

std::string serialize_model(const Model& model) {
  std::string out;
  print(to_json(model), 0, out);
  out += '\n';
  return out;
}

Status save_model(const Model& model, const std::string& path) {
  if (Status status = check_model(model, path); !status) return status;
  return replace_file(path, serialize_model(model));
}

}  // namespace cgphase
