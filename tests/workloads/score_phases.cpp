// score_phases train OUT [--KEY VALUE...] TRACE...: trains a model with the options of
// `cgphase train` (clusters, hidden, history, epochs, learning-rate, seed, step).
// score_phases score MODEL TRACE...: how well its phases agree with the true ones of the traces.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <span>

#include "base/parse.h"
#include "model/phase_tracker.h"
#include "model/trace_features.h"
#include "model/train/train.h"
#include "tests/workloads/phase_score.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

Result<std::vector<Trace>> read_all(std::span<char*> paths) {
  std::vector<Trace> traces;
  for (const char* path : paths) {
    auto trace = read_trace(path);
    if (!trace) return std::unexpected(trace.error());
    traces.push_back(std::move(*trace));
  }
  return traces;
}

bool take_option(std::string_view name, double value, TrainOptions& options) {
  const std::map<std::string_view, int*> numbers = {{"--clusters", &options.clusters},
                                                    {"--hidden", &options.hidden},
                                                    {"--history", &options.history},
                                                    {"--epochs", &options.epochs}};
  if (const auto place = numbers.find(name); place != numbers.end()) {
    *place->second = static_cast<int>(value);
  } else if (name == "--seed") {
    options.seed = static_cast<std::uint64_t>(value);
  } else if (name == "--step") {
    options.step_seconds = value;
  } else if (name == "--learning-rate") {
    options.learning_rate = value;
  } else {
    return false;
  }
  return true;
}

Status train_to(const std::string& out, std::span<char*> words) {
  TrainOptions options;
  while (words.size() >= 2 && std::string_view(words[0]).starts_with("--")) {
    const auto value = parse_double(words[1]);
    if (!value || !take_option(words[0], *value, options))
      return failure(ErrorKind::invalid, fmt::format("{} {}: not understood", words[0], words[1]));
    words = words.subspan(2);
  }
  const auto traces = read_all(words);
  if (!traces) return std::unexpected(traces.error());
  const auto model = train(options, *traces);
  return model ? save_model(*model, out) : std::unexpected(model.error());
}

struct Scores {
  PhaseScore all;
  std::map<std::string, PhaseScore> by_service;
  std::size_t steps = 0, unknown = 0, without_history = 0;
};

void score_execution(const Execution& execution, const std::shared_ptr<const PhaseEngine>& engine,
                     Scores& scores) {
  const Model& model = engine->model();
  PhaseTracker tracker(engine);
  const auto steps = extract_features(execution, model.schema, model.step_seconds);
  for (std::size_t row = 0; row < steps.size(); ++row) {
    if (steps[row].gap) tracker.reset();
    if (!steps[row].vector) continue;
    const Phase phase = tracker.step(*steps[row].vector);
    ++scores.steps;
    scores.unknown += phase.state == PhaseState::unknown;
    scores.without_history += phase.state == PhaseState::not_enough_history;
    if (!phase.known()) continue;
    const std::string truth = execution.service + ":" + execution.rows[row].label;
    scores.all.add(phase.index, truth);
    scores.by_service[execution.service].add(phase.index, truth);
  }
}

void print_score(const std::string& name, const PhaseScore& score) {
  fmt::print("{:<28} {:5} steps  purity {:.3f}  NMI {:.3f}  ({} phases, {} true)\n", name,
             score.count(), score.purity(), score.nmi(), score.phase_count(), score.truth_count());
}

void print_table(const PhaseScore& score) {
  std::map<std::string, std::string> rows;
  for (const auto& [key, count] : score.table())
    rows[key.second] += fmt::format("  {}:{}", static_cast<char>('A' + key.first), count);
  for (const auto& [truth, row] : rows) fmt::print("  {:<36}{}\n", truth, row);
}

Status score_model(const std::string& path, std::span<char*> words) {
  auto model = load_model(path);
  if (!model) return std::unexpected(model.error());
  auto engine = PhaseEngine::create(std::move(*model));
  if (!engine) return std::unexpected(engine.error());
  const auto traces = read_all(words);
  if (!traces) return std::unexpected(traces.error());
  Scores scores;
  for (const Trace& trace : *traces)
    for (const Execution& execution : trace.executions) score_execution(execution, *engine, scores);
  for (const auto& [service, score] : scores.by_service) print_score(service, score);
  print_score("all", scores.all);
  fmt::print("{} steps, {} unknown, {} without enough history\n", scores.steps, scores.unknown,
             scores.without_history);
  print_table(scores.all);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (argc < 4 || (verb != "train" && verb != "score")) {
    std::fputs("usage: score_phases train OUT [--KEY VALUE...] TRACE...\n"
               "       score_phases score MODEL TRACE...\n", stderr);
    return 2;
  }
  const std::span<char*> words(argv + 3, static_cast<std::size_t>(argc - 3));
  const Status status = verb == "train" ? train_to(argv[2], words) : score_model(argv[2], words);
  if (!status) std::fprintf(stderr, "score_phases: %s\n", status.error().text.c_str());
  return status ? 0 : 1;
}
