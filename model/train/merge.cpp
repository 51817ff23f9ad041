#include "model/train/merge.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "model/train/crbm_trainer.h"
#include "model/train/summary.h"

namespace cgphase {
namespace {

struct Moments {
  double mean = 0, m2 = 0;
};

Moments add_up(double a_count, const Moments& a, double b_count, const Moments& b) {
  const double count = a_count + b_count, away = b.mean - a.mean;
  return {a.mean + away * b_count / count, a.m2 + b.m2 + away * away * a_count * b_count / count};
}

bool counted_nothing(const PhaseSummary& phase) {
  return !(phase.count > 0) && !(phase.novelty_distance > 0);
}

}  // namespace

PhaseSummary add_up(const PhaseSummary& a, const PhaseSummary& b) {
  if (counted_nothing(a)) return b;
  if (counted_nothing(b)) return a;
  PhaseSummary sum;
  sum.count = a.count + b.count;
  if (sum.count > 0) {
    const Moments cpu = add_up(a.count, {a.cpu_mean_ratio, a.cpu_m2}, b.count,
                               {b.cpu_mean_ratio, b.cpu_m2});
    const Moments memory = add_up(a.count, {a.memory_mean_ratio, a.memory_m2}, b.count,
                                  {b.memory_mean_ratio, b.memory_m2});
    sum.cpu_mean_ratio = cpu.mean, sum.cpu_m2 = cpu.m2;
    sum.memory_mean_ratio = memory.mean, sum.memory_m2 = memory.m2;
  }
  if (a.novelty_distance > 0 && b.novelty_distance > 0)
    sum.novelty_distance = std::max(a.novelty_distance, b.novelty_distance);
  return sum;
}

Status check_same_phases(const Model& model, const std::string& name, const Model& other,
                         const std::string& other_name) {
  const char* key = nullptr;
  if (model.schema != other.schema) key = "features";
  else if (model.step_seconds != other.step_seconds) key = "step_seconds";
  else if (model.scaler != other.scaler) key = "scaler";
  else if (model.crbm != other.crbm) key = "crbm";
  else if (model.centroids != other.centroids) key = "centroids";
  else if (model.switch_cost != other.switch_cost) key = "switch_cost";
  if (key == nullptr) return {};
  return failure(ErrorKind::invalid,
                 fmt::format("{}: {}: differs from {}: only statistics of the same phases "
                             "can be added up",
                             escape_name(other_name), key, escape_name(name)));
}

void add_statistics(Model& model, std::span<const PhaseSummary> counted) {
  CHECK_INVARIANT(counted.size() == model.phases.size());
  std::ranges::transform(model.phases, counted, model.phases.begin(),
                         [](const auto& a, const auto& b) { return add_up(a, b); });
}

std::vector<PhaseSummary> count_phases(const Model& model, const Dataset& data) {
  return summarise(model, data, activations(model.crbm, data));
}

}  // namespace cgphase
