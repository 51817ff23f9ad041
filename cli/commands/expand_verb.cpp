// `cgphase expand`: reports how well a model's phases fit traces, and splits one of them.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands/model_windows.h"
#include "cli/commands/verbs.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "model/phase.h"
#include "model/train/expand.h"

namespace cgphase {
namespace {

using nlohmann::json;

struct ExpandOptions {
  std::string model = default_model_path(), output, phase;
  std::vector<std::string> traces;
  SplitOptions split{.phase = -1};
  bool as_json = false;
};

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

double total_inertia(const NoveltyReport& report) {
  double sum = 0;
  for (const PhaseFit& fit : report.phases) sum += fit.inertia;
  return sum;
}

std::string novelty_text(const NoveltyReport& report) {
  std::string out = fmt::format("{} samples", report.samples);
  out += report.bounds_known
             ? fmt::format(
                   ", {:.2f} % of them farther from every phase than 99 % of the training "
                   "samples were\n",
                   percent(static_cast<double>(report.novel), static_cast<double>(report.samples)))
             : std::string("; the model does not contain the distances of its training samples\n");
  out += fmt::format("{:>5} {:>9} {:>7} {:>8} {:>14} {:>22}\n", "phase", "samples", "share",
                     "novel", "mean distance", "a split lowers SSW by");
  const double inertia = total_inertia(report);
  for (std::size_t k = 0; k < report.phases.size(); ++k) {
    const PhaseFit& fit = report.phases[k];
    const auto samples = static_cast<double>(fit.samples);
    out += fmt::format("{:>5} {:>9} {:>5.1f} % {:>6.2f} % {:>14.3e} {:>20.1f} %\n",
                       phase_letter(static_cast<int>(k)), fit.samples,
                       percent(samples, static_cast<double>(report.samples)),
                       percent(static_cast<double>(fit.novel), samples),
                       fit.samples > 0 ? fit.inertia / samples : 0,
                       percent(fit.split_gain, inertia));
  }
  if (report.to_split >= 0)
    out += fmt::format("to split first: phase {}\n", phase_letter(report.to_split));
  return out;
}

json novelty_json(const NoveltyReport& report) {
  json phases = json::array();
  for (const PhaseFit& fit : report.phases)
    phases.push_back({{"samples", fit.samples},
                      {"novel", fit.novel},
                      {"inertia", fit.inertia},
                      {"split_gain", fit.split_gain}});
  return {{"schema", 1},
          {"samples", report.samples},
          {"novel", report.bounds_known ? json(report.novel) : json()},
          {"phases", phases},
          {"to_split", report.to_split >= 0 ? json(report.to_split) : json()}};
}

// Parses a phase, given by its letter or its index.
Result<int> parse_phase(const std::string& text, const Model& model) {
  for (int phase = 0; phase < model.centroids.count; ++phase)
    if (text == phase_letter(phase) || text == std::to_string(phase)) return phase;
  return failure(ErrorKind::invalid, fmt::format("--phase {}: the model has phases A..{}",
                                                 escape_name(text),
                                                 phase_letter(model.centroids.count - 1)));
}

Status expand(ExpandOptions& options) {
  const Result<Model> model = load_model(options.model);
  if (!model) return std::unexpected(model.error());
  if (!options.output.empty()) {
    const Result<int> phase = parse_phase(options.phase, *model);
    if (!phase) return std::unexpected(phase.error());
    options.split.phase = *phase;
  }
  const Result<ModelWindows> windows = model_windows(*model, options.traces);
  if (!windows) return std::unexpected(windows.error());
  const PhaseSamples samples = assign_phases(*model, windows->data);
  const NoveltyReport report = report_novelty(*model, samples, options.split.seed);
  std::string text = options.as_json ? novelty_json(report).dump() + "\n" : novelty_text(report);
  if (!options.output.empty()) {
    const Result<Model> split = split_phase(*model, windows->data, samples, options.split);
    if (!split) return std::unexpected(split.error());
    if (Status saved = emit(serialize_model(*split), options.output); !saved) return saved;
    if (!options.as_json)
      text += fmt::format("phase {} is now phases {}..{}: {}\n", phase_letter(options.split.phase),
                          phase_letter(model->centroids.count),
                          phase_letter(split->centroids.count - 1),
                          escape_name(options.output));
  }
  return options.output.empty() ? emit(text, {}) : emit_beside(text, options.output);
}

}  // namespace

void add_expand_verb(CLI::App& app, const CommonOptions&, int& exit_code) {
  CLI::App* verb = app.add_subcommand(
      "expand", "Show how well a model's phases fit traces; with --phase, split one");
  const auto options = std::make_shared<ExpandOptions>();
  verb->add_option("--model", options->model, kModelHelp)->type_name("FILE");
  CLI::Option* output =
      verb->add_option("-o,--output", options->output, "Model file to write")->type_name("FILE");
  CLI::Option* phase =
      verb->add_option("--phase", options->phase, "Phase to split: letter or number, as B or 1")
          ->type_name("PHASE");
  phase->needs(output);
  output->needs(phase);
  verb->add_option("--clusters", options->split.clusters, "Number of parts of that phase")
      ->capture_default_str()
      ->needs(phase);
  verb->add_option("--seed", options->split.seed,
                   "Seed; the same seed and traces give the same parts")
      ->capture_default_str();
  verb->add_flag("--json", options->as_json, "Print JSON instead of text");
  verb->add_option("traces", options->traces, "Traces, CSV or CSV.gz")
      ->type_name("TRACE")
      ->required();
  verb->callback([options, &exit_code] { exit_code = finish(expand(*options)); });
}

}  // namespace cgphase
