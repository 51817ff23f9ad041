// policy_results RECORDED OTHERS|- MODEL: replays every policy on every set of recorded executions.
// Prints results.md (scripts/results), the same on each run. RECORDED is a directory of our own
// recordings (tests/data), OTHERS one of public traces ("-": left out), MODEL our model.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "model/ai4dl.h"
#include "model/trace_features.h"
#include "tests/workloads/ablation.h"
#include "tests/workloads/default_model.h"
#include "tests/workloads/policy_results.h"
#include "tests/workloads/results_text.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

constexpr std::uint64_t kSeeds = 5;  // of the model; the first one is shipped

constexpr std::pair<const char*, Result<Model> (*)(std::span<const Trace>)> kLesser[] = {
    {"CRBM without training", untrained_model},
    {"k-means of the features, no CRBM", raw_model},
    {"one phase for everything", one_phase_model}};

Result<std::shared_ptr<const PhaseEngine>> engine_of(Result<Model> model) {
  if (!model) return std::unexpected(model.error());
  return PhaseEngine::create(*std::move(model));
}

Result<ResultEngines> make_engines(const ResultPlaces& places, const std::string& model) {
  ResultEngines engines;
  auto ours = engine_of(load_model(model));
  if (!ours) return std::unexpected(ours.error());
  engines.ours = *ours;
  if (!places.others.empty()) {
    const std::string path = places.others + "/ai4dl/model.json";
    const auto text = read_file(path, kMaxModelFileBytes);
    if (!text) return std::unexpected(text.error());
    auto ai4dl = engine_of(import_ai4dl(*text, path));
    if (!ai4dl) return std::unexpected(ai4dl.error());
    engines.ai4dl = *ai4dl;
  }
  const auto traces = read_traces(places.recorded, TraceSet::training);
  if (!traces) return std::unexpected(traces.error());
  engines.ablations.emplace_back("trained CRBM (shipped)", engines.ours);
  const auto add = [&](std::string name, Result<Model> lesser) -> Status {
    auto engine = engine_of(std::move(lesser));
    if (!engine) return std::unexpected(engine.error());
    engines.ablations.emplace_back(std::move(name), *engine);
    return {};
  };
  for (std::uint64_t seed = 2; seed <= kSeeds; ++seed)
    if (Status added = add(fmt::format("trained CRBM, seed {}", seed),
                           reseeded_model(*traces, seed));
        !added)
      return std::unexpected(added.error());
  for (const auto& [name, make] : kLesser)
    if (Status added = add(name, make(*traces)); !added) return std::unexpected(added.error());
  return engines;
}

Status report(const ResultPlaces& places, const std::string& model) {
  const auto engines = make_engines(places, model);
  if (!engines) return std::unexpected(engines.error());
  const auto columns = replay_columns(engines->ours.get(), engines->ai4dl.get());
  if (!columns) return std::unexpected(columns.error());
  const auto sets = read_result_sets(places, *columns);
  if (!sets) return std::unexpected(sets.error());
  std::vector<SetResults> all;
  for (const ResultSet& set : *sets) {
    std::fprintf(stderr, "%s\n", set.title.c_str());
    auto played = play_set(set, *engines);
    if (!played) return std::unexpected(played.error());
    all.push_back(*std::move(played));
  }
  const std::string text = results_text(all);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return {};
}

}  // namespace

int main(int count, char** words) {
  if (count != 4) {
    std::fprintf(stderr, "usage: policy_results RECORDED OTHERS|- MODEL\n");
    return 2;
  }
  const std::string others = words[2];
  const Status status =
      report({.recorded = words[1], .others = others == "-" ? "" : others}, words[3]);
  if (!status) std::fprintf(stderr, "policy_results: %s\n", status.error().text.c_str());
  return status ? 0 : 1;
}
