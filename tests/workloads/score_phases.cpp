// score_phases train OUT [TRACES]: trains the default model on the traces of a directory
// (tests/data), byte for byte as committed in model/default_model.json.
// score_phases score MODEL [TRACES]: prints how well its phases agree with the true ones, on its
// training traces and on the held-out ones.
#include <fmt/format.h>

#include <cstdio>
#include <string_view>

#include "tests/workloads/default_model.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

Status train_to(const std::string& out, const std::string& directory) {
  const auto model = train_default_model(directory);
  return model ? save_model(*model, out) : std::unexpected(model.error());
}

void print_score(const std::string& name, const PhaseScore& score) {
  fmt::print("  {:<28} {:5} steps  purity {:.3f}  NMI {:.3f}  ({} phases, {} true)\n", name,
             score.count(), score.purity(), score.nmi(), score.phase_count(), score.truth_count());
}

void print_table(const PhaseScore& score) {
  std::map<std::string, std::string> rows;
  for (const auto& [key, count] : score.table())
    rows[key.second] += fmt::format("  {}:{}", static_cast<char>('A' + key.first), count);
  for (const auto& [truth, row] : rows) fmt::print("    {:<36}{}\n", truth, row);
}

Status print_set(const Model& model, const std::string& directory, TraceSet set) {
  const auto traces = read_traces(directory, set);
  if (!traces) return std::unexpected(traces.error());
  const auto score = score_model(model, *traces);
  if (!score) return std::unexpected(score.error());
  fmt::print("{}: {} executions, {} steps, {} unknown, {} without enough history\n",
             set == TraceSet::training ? "trained on" : "held out", traces->size(), score->steps,
             score->unknown, score->without_history);
  for (const auto& [service, one] : score->by_service) print_score(service, one);
  print_score("all services at once", score->all);
  print_table(score->all);
  return {};
}

Status print_scores(const std::string& path, const std::string& directory) {
  const auto model = load_model(path);
  if (!model) return std::unexpected(model.error());
  if (auto status = print_set(*model, directory, TraceSet::training); !status) return status;
  return print_set(*model, directory, TraceSet::held_out);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view verb = argc > 1 ? argv[1] : "";
  if (argc < 3 || argc > 4 || (verb != "train" && verb != "score")) {
    std::fputs(
        "usage: score_phases train OUT [TRACES]\n"
        "       score_phases score MODEL [TRACES]\n",
        stderr);
    return 2;
  }
  const std::string directory = argc == 4 ? argv[3] : "tests/data";
  const Status status =
      verb == "train" ? train_to(argv[2], directory) : print_scores(argv[2], directory);
  if (!status) std::fprintf(stderr, "score_phases: %s\n", status.error().text.c_str());
  return status ? 0 : 1;
}
