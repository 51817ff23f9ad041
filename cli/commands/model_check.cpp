#include "cli/commands/model_check.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/text.h"
#include "cli/commands/model_windows.h"
#include "model/crbm_fixed.h"
#include "model/model.h"
#include "model/train/fixed_proof.h"

namespace cgphase {
namespace {

using nlohmann::json;

double share(std::size_t part, std::size_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string bounds_text(const Model& model, const CrbmFixed& fixed) {
  std::string out = fmt::format("{:>4}  {:>14}  {:>20}\n", "unit", "activation", "more per input");
  for (std::size_t k = 0; k < fixed.unit_bounds().size(); ++k)
    out += fmt::format("{:>4}  {:>14.3e}  {:>20.3e}\n", k, fixed.unit_bounds()[k].constant,
                       fixed.unit_bounds()[k].per_input);
  const std::vector<std::int16_t> zeros(static_cast<std::size_t>(fixed.window_size()));
  return out + fmt::format("largest error of a margin between {} phases: {:.3e}\n",
                           model.centroids.count, fixed.error_bound(zeros));
}

std::string proof_text(const FixedProof& proof) {
  return fmt::format(
      "{} windows: {:.3f} % certified by their margin, {:.3f} % agree with the double engine, {} "
      "violations\nlargest error of an activation seen: {:.3e}\n",
      proof.windows, 100 * share(proof.certified, proof.windows),
      100 * share(proof.agreeing, proof.windows), proof.violations,
      proof.largest_activation_error);
}

json to_json(const std::string& path, const CrbmFixed& fixed,
             const std::optional<FixedProof>& proof) {
  json units = json::array();
  for (const CrbmFixed::UnitBound& unit : fixed.unit_bounds())
    units.push_back({{"activation_bound", unit.constant}, {"bound_per_input", unit.per_input}});
  json out = {{"schema", 1}, {"model", escape_name(path)}, {"units", units}};
  if (proof)
    out["fixed_point"] = {{"windows", proof->windows},
                          {"certified", proof->certified},
                          {"agreeing", proof->agreeing},
                          {"violations", proof->violations},
                          {"largest_activation_error", proof->largest_activation_error}};
  return out;
}

}  // namespace

Result<ModelCheckReport> check_model_file(const ModelCheckOptions& options) {
  const Result<Model> model = load_model(options.model);
  if (!model) return std::unexpected(model.error());
  const CrbmFixed fixed(model->crbm, model->centroids);
  std::optional<FixedProof> proof;
  if (!options.traces.empty()) {
    const Result<ModelWindows> windows = model_windows(*model, options.traces);
    if (!windows) return std::unexpected(windows.error());
    proof = prove_fixed(*model, windows->data);
  }
  ModelCheckReport report;
  if (proof) report.violations = proof->violations;
  if (options.as_json) {
    report.text = to_json(options.model, fixed, proof).dump() + "\n";
    return report;
  }
  report.text = fmt::format("{}: ok\n", escape_name(options.model)) + bounds_text(*model, fixed);
  if (proof) report.text += proof_text(*proof);
  return report;
}

}  // namespace cgphase
