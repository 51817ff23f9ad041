#include <cmath>
#include <functional>

#include "model/feature_schema.h"
#include "model/model.h"

namespace cgphase {
namespace {

using Range = std::function<bool(double)>;

// Records the first error.
class Checker {
 public:
  explicit Checker(const std::string& name) : name_(name) {}

  void require(bool holds, const std::string& key, const std::string& what) {
    if (!holds && first_.empty()) first_ = name_ + ": " + key + ": " + what;
  }
  void count(int value, int low, int high, const std::string& key) {
    require(value >= low && value <= high, key,
            std::to_string(value) + " is outside " + std::to_string(low) + ".." +
                std::to_string(high));
  }
  // Requires `size` finite numbers that are all `in_range`.
  void numbers(const std::vector<double>& values, std::size_t size, const std::string& key,
               const Range& in_range) {
    require(values.size() == size, key,
            "has " + std::to_string(values.size()) + " numbers, not " + std::to_string(size));
    for (const double value : values)
      require(std::isfinite(value) && in_range(value), key,
              "contains a number that is not finite or out of bounds");
  }
  bool failed() const { return !first_.empty(); }
  Status status() const {
    if (first_.empty()) return {};
    return failure(ErrorKind::invalid, first_);
  }

 private:
  const std::string& name_;
  std::string first_;
};

bool any(double) { return true; }
bool positive(double value) { return value > 0; }
bool not_negative(double value) { return value >= 0; }
bool activation(double value) { return value >= 0 && value <= 1; }
bool parameter(double value) { return std::abs(value) <= kMaxParameter; }

void check_schema(const Model& model, Checker& check) {
  const auto features = model.schema.entries.size();
  check.require(features >= 1 && features <= std::size_t{kMaxFeatures}, "features",
                std::to_string(features) + " is outside 1.." + std::to_string(kMaxFeatures));
  for (const FeatureSchema::Entry& entry : model.schema.entries) {
    const bool named =
        entry.feature == Feature::column || entry.name == feature_name(entry.feature);
    check.require(named && !entry.name.empty() && entry.name.size() <= kMaxTextBytes, "features",
                  "a name is missing, too long or does not match its feature");
  }
  check.require(std::isfinite(model.step_seconds) && model.step_seconds > 0 &&
                    model.step_seconds <= kMaxStepSeconds,
                "step_seconds", "must be above 0 and at most a day");
}

void check_crbm(const Model& model, Checker& check) {
  const CrbmParameters& crbm = model.crbm;
  check.require(crbm.n_vis == static_cast<int>(model.schema.entries.size()), "crbm.visible",
                "must be the number of features");
  check.count(crbm.n_hid, 1, kMaxHidden, "crbm.hidden");
  check.count(crbm.n_his, 0, kMaxHistory, "crbm.history");
  if (check.failed()) return;
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis);
  const auto n_hid = static_cast<std::size_t>(crbm.n_hid);
  const std::size_t history = n_vis * static_cast<std::size_t>(crbm.n_his);
  check.numbers(crbm.w, n_hid * n_vis, "crbm.W", parameter);
  check.numbers(crbm.a, n_vis * history, "crbm.A", parameter);
  check.numbers(crbm.b, n_hid * history, "crbm.B", parameter);
  check.numbers(crbm.visible_bias, n_vis, "crbm.visible_bias", parameter);
  check.numbers(crbm.hidden_bias, n_hid, "crbm.hidden_bias", parameter);
}

void check_phases(const Model& model, Checker& check) {
  const Centroids& centroids = model.centroids;
  check.count(centroids.count, 1, kMaxPhases, "centroids");
  check.require(centroids.dimension == model.crbm.n_hid, "centroids",
                "must have one number per hidden unit");
  if (check.failed()) return;
  check.numbers(
      centroids.values,
      static_cast<std::size_t>(centroids.count) * static_cast<std::size_t>(model.crbm.n_hid),
      "centroids", activation);
  const std::vector<int>& parents = centroids.parents;
  check.require(parents.empty() || parents.size() == static_cast<std::size_t>(centroids.count),
                "parents", "must be one per centroid");
  for (std::size_t i = 0; i < parents.size(); ++i)
    check.require(parents[i] >= -1 && parents[i] < static_cast<int>(i), "parents",
                  "a part must have a higher index than its phase");
  check.require(std::isfinite(model.switch_cost) && model.switch_cost >= 0 &&
                    model.switch_cost <= kMaxSwitchCost,
                "switch_cost",
                "must be from 0 to " + std::to_string(static_cast<int>(kMaxSwitchCost)));
  check.require(model.phases.size() == static_cast<std::size_t>(centroids.count), "phases",
                "must be one per centroid");
  for (const PhaseSummary& phase : model.phases) {
    check.numbers({phase.count, phase.cpu_m2, phase.memory_m2, phase.novelty_distance}, 4, "phases",
                  not_negative);
    check.numbers({phase.cpu_mean_ratio, phase.memory_mean_ratio}, 2, "phases", any);
  }
}

void check_provenance(const Model& model, Checker& check) {
  check.require(model.provenance.size() <= std::size_t{kMaxProvenance}, "provenance",
                "more than " + std::to_string(kMaxProvenance) + " entries");
  for (const auto& [key, text] : model.provenance)
    check.require(key.size() <= kMaxTextBytes && text.size() <= kMaxTextBytes, "provenance",
                  "a text longer than " + std::to_string(kMaxTextBytes) + " bytes");
}

}  // namespace

Status check_model(const Model& model, const std::string& name) {
  Checker check(name);
  check_schema(model, check);
  check.numbers(model.scaler.mean, model.schema.entries.size(), "scaler.mean", any);
  check.numbers(model.scaler.scale, model.schema.entries.size(), "scaler.scale", positive);
  check_crbm(model, check);
  if (!check.failed()) check_phases(model, check);
  check_provenance(model, check);
  return check.status();
}

}  // namespace cgphase
