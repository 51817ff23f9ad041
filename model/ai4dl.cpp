#include "model/ai4dl.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>
#include <stdexcept>

#include "base/check.h"
#include "model/centroids.h"
#include "model/foreign_json.h"
#include "model/scalar_math.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr double kTelemetrySeconds = 15;
constexpr std::uint64_t kMaxCount = 1'000'000;

void flatten(const json& value, std::vector<double>& out) {
  if (!value.is_array()) return out.push_back(value.get<double>());
  for (const json& element : value) flatten(element, out);
}

std::vector<double> numbers(const json& value) {
  std::vector<double> out;
  flatten(value, out);
  return out;
}

// sklearn computes the mean of zeros as -1e-17. That is rounding, not an error.
std::vector<double> centroids_of(const json& rows) {
  constexpr double kRounding = 1e-9;
  std::vector<double> values = numbers(rows);
  for (double& value : values)
    if (value > -kRounding && value < 1 + kRounding) value = std::clamp(value, 0.0, 1.0);
  return values;
}

CrbmParameters weights_of(const json& object) {
  CrbmParameters crbm;
  crbm.w = numbers(object.at("W"));
  crbm.a = numbers(object.at("A"));
  crbm.b = numbers(object.at("B"));
  crbm.visible_bias = numbers(object.at("v_bias"));
  crbm.hidden_bias = numbers(object.at("h_bias"));
  return crbm;
}

int whole(const json& object, const char* key) {
  const json& value = object.at(key);
  // The parser stores every non-negative integer as unsigned.
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > kMaxCount)
    throw std::out_of_range(std::string(key) + ": must be a whole number of 0.." +
                            std::to_string(kMaxCount));
  return value.get<int>();
}

CrbmParameters crbm_of(const json& object) {
  CrbmParameters crbm = weights_of(object);
  crbm.n_vis = whole(object, "n_vis");
  crbm.n_hid = whole(object, "n_hid");
  crbm.n_his = whole(object, "n_his");
  return crbm;
}

// Cuts `text` to at most `bytes` without splitting a UTF-8 character.
std::string beginning(std::string text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

// The parts of one phase are numbered after the phases, as in the release.
void add_parts(const json& parts, Model& model) {
  Centroids& centroids = model.centroids;
  const int first = whole(parts, "first_id");
  if (first != centroids.count)
    throw std::out_of_range("kmeans_sub.first_id is not the number of phases");
  const auto count = static_cast<int>(parts.at("centroids").size());
  const std::vector<double> values = centroids_of(parts.at("centroids"));
  centroids.values.insert(centroids.values.end(), values.begin(), values.end());
  centroids.parents.assign(static_cast<std::size_t>(first), -1);
  centroids.parents.resize(static_cast<std::size_t>(first + count),
                           whole(parts, "parent_phase"));
  centroids.count += count;
  model.phases.resize(static_cast<std::size_t>(centroids.count));
}

Model model_of(const json& document) {
  Model model;
  for (const json& feature : document.at("features"))
    model.schema.entries.push_back({Feature::column, feature.get<std::string>()});
  model.step_seconds = kTelemetrySeconds;
  model.scaler = {numbers(document.at("scaler").at("mean")),
                  numbers(document.at("scaler").at("scale"))};
  model.crbm = crbm_of(document.at("crbm"));
  const json& kmeans = document.at("kmeans");
  model.centroids = {static_cast<int>(kmeans.at("centroids").size()), model.crbm.n_hid,
                     centroids_of(kmeans.at("centroids")), {}};
  model.phases.resize(kmeans.at("centroids").size());
  model.provenance["program"] = "imported from AI4DL";
  if (document.contains("source") && document["source"].is_string())
    model.provenance["source"] =
        beginning(document["source"].get<std::string>(), kMaxTextBytes);
  return model;
}

// Computes sigmoid(W v + B c + b) in the order of the release: v first, then c feature-major.
void activate(const CrbmParameters& crbm, const double* history, const double* visible,
              std::span<double> activation) {
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis);
  const auto n_his = static_cast<std::size_t>(crbm.n_his);
  for (std::size_t k = 0; k < activation.size(); ++k) {
    double sum = 0;
    for (std::size_t f = 0; f < n_vis; ++f) sum += crbm.w[k * n_vis + f] * visible[f];
    double past = 0;
    for (std::size_t f = 0; f < n_vis; ++f)
      for (std::size_t l = 0; l < n_his; ++l)
        past += crbm.b[(k * n_vis + f) * n_his + l] * history[l * n_vis + f];
    activation[k] = portable_sigmoid(sum + past + crbm.hidden_bias[k]);
  }
}

}  // namespace

Result<Model> import_ai4dl(const std::string& json_text, const std::string& name,
                           bool expanded) {
  if (json_text.size() > kMaxModelFileBytes)
    return failure(ErrorKind::invalid, name + ": larger than the limit of a model file");
  try {
    const Result<json> document = parse_foreign_json(json_text, name);
    if (!document) return std::unexpected(document.error());
    Model model = model_of(*document);
    if (expanded) add_parts(document->at("kmeans_sub"), model);
    if (Status status = check_model(model, name); !status) return std::unexpected(status.error());
    return model;
  } catch (const json::exception& exception) {
    return failure(ErrorKind::invalid,
                   name + ": these are not AI4DL's parameters: " + reason_of(exception));
  } catch (const std::out_of_range& exception) {
    return failure(ErrorKind::invalid, name + ": " + exception.what());
  }
}

Result<CrbmParameters> parse_ai4dl_weights(const std::string& json_text, const std::string& name) {
  if (json_text.size() > kMaxModelFileBytes)
    return failure(ErrorKind::invalid, name + ": larger than the limit of a model file");
  try {
    const Result<json> document = parse_foreign_json(json_text, name);
    if (!document) return std::unexpected(document.error());
    for (const char* key : {"crbm", "init"})
      if (document->contains(key)) return weights_of(document->at(key));
    return weights_of(*document);
  } catch (const json::exception& exception) {
    return failure(ErrorKind::invalid,
                   name + ": these are not weights of AI4DL: " + reason_of(exception));
  }
}

bool has_only_columns(const FeatureSchema& schema) {
  return std::ranges::all_of(schema.entries, [](const FeatureSchema::Entry& entry) {
    return entry.feature == Feature::column;
  });
}

Ai4dlPredictor::Ai4dlPredictor(const Model& model)
    : model_(model),
      window_(static_cast<std::size_t>(model.crbm.n_vis * (model.crbm.n_his + 1))),
      activation_(static_cast<std::size_t>(model.crbm.n_hid)) {}

// Values are scaled but, unlike in our own models, not clamped.
void Ai4dlPredictor::push(const TraceRow& row) {
  const auto n_vis = static_cast<std::size_t>(model_.crbm.n_vis);
  CHECK_INVARIANT(row.columns.size() == n_vis);
  std::shift_left(window_.begin(), window_.end(), static_cast<std::ptrdiff_t>(n_vis));
  double* const newest = window_.data() + (window_.size() - n_vis);
  for (std::size_t f = 0; f < n_vis; ++f)
    newest[f] = (row.columns[f].value_or(model_.scaler.mean[f]) - model_.scaler.mean[f]) /
                model_.scaler.scale[f];
  rows_ = std::min(rows_ + 1, static_cast<std::size_t>(model_.crbm.n_his) + 1);
}

std::span<const double> Ai4dlPredictor::activation(const TraceRow& row) {
  const auto n_vis = static_cast<std::size_t>(model_.crbm.n_vis);
  const auto n_his = static_cast<std::size_t>(model_.crbm.n_his);
  if (rows_ > n_his) activate(model_.crbm, window_.data(), &window_[n_his * n_vis], activation_);
  push(row);
  return activation_;
}

Phase Ai4dlPredictor::add(const TraceRow& row) {
  const NearestCentroid nearest = nearest_centroid(model_.centroids, activation(row));
  return {PhaseState::known, nearest.index, nearest.distance, nearest.margin};
}

std::vector<double> ai4dl_activations(const Model& model, const Execution& execution) {
  Ai4dlPredictor predictor(model);
  std::vector<double> activations;
  for (const TraceRow& row : execution.rows) {
    const std::span<const double> one = predictor.activation(row);
    activations.insert(activations.end(), one.begin(), one.end());
  }
  return activations;
}

std::vector<Phase> ai4dl_phases(const Model& model, const Execution& execution) {
  Ai4dlPredictor predictor(model);
  std::vector<Phase> phases;
  for (const TraceRow& row : execution.rows) phases.push_back(predictor.add(row));
  return phases;
}

}  // namespace cgphase
