// phase_quality TRACES [TORCH]: prints the report on model quality, the same on each run. TRACES is
// a directory of our own recordings (tests/data), TORCH one of labelled deep-learning jobs. Without
// TORCH the report says what is left out.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "model/feature_schema.h"
#include "model/train/ai4dl_train.h"
#include "tests/workloads/default_model.h"
#include "tests/workloads/quality.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

constexpr std::uint64_t kSeeds = 5;
constexpr int kFewestClusters = 2, kMostClusters = 12;

struct Experiment {
  std::vector<Fold> folds;
  bool by_service = false;
};

using Scores = std::vector<QualityScore>;  // one per seed

Result<QualityScore> score_seed(const Experiment& experiment, const Method& method,
                                std::uint64_t seed) {
  std::vector<Labels> labels;
  for (const Fold& fold : experiment.folds) {
    Result<Labels> found = method(fold, seed);
    if (!found) return std::unexpected(found.error());
    labels.push_back(*std::move(found));
  }
  return score_labels(experiment.folds, labels, experiment.by_service);
}

Result<Scores> score_seeds(const Experiment& experiment, const Method& method) {
  Scores scores;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Result<QualityScore> score = score_seed(experiment, method, seed);
    if (!score) return std::unexpected(score.error());
    scores.push_back(*score);
  }
  return scores;
}

double median(const Scores& scores, double QualityScore::* field) {
  std::vector<double> values;
  for (const QualityScore& score : scores) values.push_back(score.*field);
  std::ranges::sort(values);
  return values[values.size() / 2];
}

std::string cell(const Scores& scores, double QualityScore::* field) {
  const auto [low, high] = std::ranges::minmax(scores, {}, field);
  return fmt::format("{:.3f} ({:.3f}..{:.3f})", median(scores, field), low.*field, high.*field);
}

void print_row(const std::string& name, const Experiment& experiment, const Scores& scores) {
  fmt::print("| {} | {} | {} | {} |", name, cell(scores, &QualityScore::nmi_within),
             cell(scores, &QualityScore::nmi_mean), cell(scores, &QualityScore::ari_mean));
  if (experiment.folds.size() == 1) fmt::print(" {} |", cell(scores, &QualityScore::nmi_at_once));
  fmt::print(" {:.0f} | {:.0f} |\n", median(scores, &QualityScore::switches_per_hour),
             median(scores, &QualityScore::median_dwell_seconds));
}

void print_head(const Experiment& experiment) {
  const bool one = experiment.folds.size() == 1;
  fmt::print("\n| phases by | NMI within | mean NMI | mean ARI |{} switches/h | dwell s |\n"
             "|---|---|---|---|{}---|---|\n",
             one ? " NMI at once |" : "", one ? "---|" : "");
}

struct Row {
  std::string name;
  Method method;
};

std::vector<Row> rows() {
  const TrainOptions ours;
  TrainOptions nearest = ours, untrained = ours, untrained_nearest = ours;
  nearest.stickiness = untrained_nearest.stickiness = 0;
  untrained.epochs = untrained_nearest.epochs = 0;
  const int k = ours.clusters;
  return {
      {"**ours: CRBM with the path**", crbm_method(ours)},
      {"ours without the path", crbm_method(nearest)},
      {"untrained CRBM with the path", crbm_method(untrained)},
      {"untrained CRBM", crbm_method(untrained_nearest)},
      {"k-means, log features, with the path", kmeans_method(Features::logs, k, ours.stickiness)},
      {"k-means, log features", kmeans_method(Features::logs, k)},
      {"k-means, raw features", kmeans_method(Features::raw, k)},
      {"Gaussian mixture, log features", mixture_method(k)},
      {"change points, then k-means \\*", change_point_method(k)},
      {"AI4DL as released, k = 5", ai4dl_method(0)},
      {"AI4DL, one row later", ai4dl_method(1)},
  };
}

// The number of clusters that is best for raw k-means on the test data, which is in its favour.
Result<Row> best_raw(const Experiment& experiment) {
  int best = kFewestClusters;
  double most = -1;
  for (int k = kFewestClusters; k <= kMostClusters; ++k) {
    const Result<QualityScore> score =
        score_seed(experiment, kmeans_method(Features::raw, k), 1);
    if (!score) return std::unexpected(score.error());
    if (score->nmi_within > most) most = score->nmi_within, best = k;
  }
  return Row{fmt::format("k-means, raw features, k = {} \\*\\*", best),
             kmeans_method(Features::raw, best)};
}

// The first entry is ours.
void print_better(const char* measure, const std::vector<std::pair<std::string, Scores>>& told,
                  double QualityScore::* field) {
  const double ours = median(told[0].second, field);
  std::string better;
  for (const auto& [name, scores] : told)
    if (const double value = median(scores, field); value > ours)
      better += fmt::format("{}{} ({:.3f})", better.empty() ? "" : "; ", name, value);
  fmt::print("- Better than ours ({:.3f}) by median {}: {}.\n", ours, measure,
             better.empty() ? "none" : better);
}

Status print_table(const Experiment& experiment) {
  print_head(experiment);
  std::vector<Row> all = rows();
  Result<Row> best = best_raw(experiment);
  if (!best) return std::unexpected(best.error());
  all.push_back(*std::move(best));
  std::vector<std::pair<std::string, Scores>> told;
  for (const Row& row : all) {
    const Result<Scores> scores = score_seeds(experiment, row.method);
    if (!scores) return std::unexpected(scores.error());
    print_row(row.name, experiment, *scores);
    told.emplace_back(row.name, *scores);
  }
  std::vector<Labels> truth;
  for (const Fold& fold : experiment.folds) truth.push_back(true_labels(fold));
  print_row("the true phases", experiment, {score_labels(experiment.folds, truth, false)});

  fmt::print("\n");
  print_better("NMI within", told, &QualityScore::nmi_within);
  print_better("mean ARI", told, &QualityScore::ari_mean);
  if (experiment.folds.size() == 1)
    print_better("NMI at once", told, &QualityScore::nmi_at_once);
  return {};
}

// The entries that clearly differ from the first: all seeds above all of its seeds, or all below.
void print_clear(const char* measure, const std::vector<std::pair<std::string, Scores>>& told,
                 double QualityScore::* field) {
  const auto [low, high] = std::ranges::minmax(told[0].second, {}, field);
  std::string above, below;
  for (const auto& [name, scores] : told) {
    const auto [least, most] = std::ranges::minmax(scores, {}, field);
    if (least.*field > high.*field) above += (above.empty() ? "" : ", ") + name;
    if (most.*field < low.*field) below += (below.empty() ? "" : ", ") + name;
  }
  fmt::print("- By {}, in every seed above every seed of the six: {}. Below: {}.\n", measure,
             above.empty() ? "none" : above, below.empty() ? "none" : below);
}

// The default model's features alone, and with optional ones.
Status print_features(const Experiment& experiment, const std::vector<std::string>& counted) {
  std::vector<std::pair<std::string, std::vector<std::string>>> sets{{"**the six**", {}}};
  for (const std::string& name : counted) sets.push_back({name, {name}});
  sets.push_back({"all of these", counted});
  print_head(experiment);
  std::vector<std::pair<std::string, Scores>> told;
  for (const auto& [name, optional] : sets) {
    TrainOptions options;
    options.schema = log_schema_with(optional);
    const Result<Scores> scores = score_seeds(experiment, crbm_method(options));
    if (!scores) return std::unexpected(scores.error());
    print_row(optional.empty() ? name : "the six and " + name, experiment, *scores);
    told.emplace_back(name, *scores);
  }
  fmt::print("\n");
  print_clear("NMI within", told, &QualityScore::nmi_within);
  print_clear("mean NMI", told, &QualityScore::nmi_mean);
  print_clear("mean ARI", told, &QualityScore::ari_mean);
  print_clear("NMI at once", told, &QualityScore::nmi_at_once);
  return {};
}

Status print_counters(const std::string& directory) {
  fmt::print("\n## What optional features add\n\n");
  if (!std::filesystem::is_directory(directory)) {
    fmt::print("Left out: there are no recordings with counters.\n");
    return {};
  }
  const auto training = read_traces(directory, TraceSet::training);
  if (!training) return std::unexpected(training.error());
  const auto held_out = read_traces(directory, TraceSet::held_out);
  if (!held_out) return std::unexpected(held_out.error());
  TrainOptions options;
  const std::vector<std::string> counted = counted_features(*training, options);
  std::string absent;
  for (const std::string_view name : feature_names())
    if (is_optional(*feature_by_name(name)) && std::ranges::find(counted, name) == counted.end())
      absent += fmt::format("{}{}", absent.empty() ? "" : ", ", name);
  options.schema = log_schema_with(counted);
  const Experiment experiment{{make_fold_of_shared_steps(*training, *held_out, options)}, true};
  fmt::print(
      "The same three programs in emulated machines whose kernel has BPF. Their network goes "
      "through a veth pair, and they do a\nfiftieth of their multiplications "
      "(tests/data/README.md). The models are trained on {} executions and tested on the {} "
      "steps\nof {} others in which everything was counted. The table compares the default "
      "model's six features (log features) with the\nsame plus each optional one "
      "(docs/internals/model-file.md), and plus all of them. The programs share one "
      "processor, so\nwaiting for it depends on the others. They always sleep twenty times a "
      "second, so voluntary switches carry little\ninformation. Not exercised: {}.\n",
      training->size(), experiment.folds[0].test_logs.size(), held_out->size(),
      absent.empty() ? "none" : absent);
  if (Status status = print_features(experiment, counted); !status) return status;
  fmt::print(
      "\nThe default model uses only its six features, whatever this table shows. No file of a "
      "cgroup contains the others, and a\nmodel with features that a host does not count has no "
      "phases there. On a host whose BPF programs count,\n`cgphase train --features` trains a "
      "model with more features on the host's own history.\n");
  return {};
}

Result<std::vector<Trace>> read_torch(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error))
    if (entry.path().extension() == ".csv") paths.push_back(entry.path());
  if (error) return errno_failure(directory, error.value());
  std::ranges::sort(paths);
  std::vector<Trace> traces;
  for (const std::string& path : paths) {
    auto trace = read_trace(path, {.columns = ai4dl_columns()});
    if (!trace) return std::unexpected(trace.error());
    if (trace->executions.empty())
      return failure(ErrorKind::invalid, path + ": has no rows");
    traces.push_back(*std::move(trace));
  }
  if (traces.size() < 2)
    return failure(ErrorKind::invalid, directory + ": fewer than two traces (*.csv)");
  return traces;
}

void print_introduction() {
  const TrainOptions options;
  fmt::print(
      "# How good the phases are\n\n"
      "Printed by\n\n"
      "    build/release/bin/phase_quality tests/data TORCH > build/model_quality.md\n\n"
      "TORCH is a directory of labelled deep-learning jobs. The report is the same on each run. Do "
      "not edit it by hand.\n\n"
      "Every way of finding phases except AI4DL's sees the same steps ({} s, history {}). All are "
      "scored by labels that none was\ntrained on: NMI is mutual information over the mean of "
      "the two entropies, ARI the adjusted Rand index. The settings are\nthose of the default "
      "model ({} phases, {} hidden units, stickiness {}). They were chosen by scores on the labels "
      "of the\ntraining part of our own recordings; the tables show other data. All other ways "
      "have the same number of phases and\nstickiness, untuned. Each cell is the median over {} "
      "seeds with the range in brackets. Below each table is the list of ways\nthat do better "
      "than ours. With a history of 0 the CRBM conditions on nothing: earlier steps count only "
      "through the path.\nLonger histories did worse (tests/data/README.md).\n\n",
      options.step_seconds, options.history, options.clusters, options.hidden, options.stickiness,
      kSeeds);
  fmt::print(
      "- **NMI within**: information and entropies are summed over all tested steps, each step "
      "among those of its own service (our\n  recordings) or job. Knowing which job it is gains "
      "nothing, and phases of different models are never treated as equal.\n"
      "- **mean NMI, mean ARI**: of each service or job alone, and the plain mean.\n"
      "- **NMI at once**, if one model is tested: all steps in one table, so that a phase must "
      "mean the same in all jobs.\n"
      "- switches/h: changes of phase per hour; dwell: median time in a phase.\n"
      "- \\* sees the whole execution before it reports the first phase: binary segmentation with "
      "Schwarz's penalty, then k-means of the\n  segments' means.\n"
      "- \\*\\* the k from {} to {} with the best NMI within on the test data (seed 1), in its "
      "favour.\n"
      "- The Gaussian mixture has diagonal covariances and is fit by expectation-maximisation.\n"
      "- AI4DL sees its eight columns with a history of 3, and derives the phase of a row from the "
      "rows before it; \"one row later\"\n  compares the same phase with the last row that it "
      "saw.\n"
      "- log features: those of our model. raw features: the same with plain ratios to the "
      "limit.\n"
      "- the path: a price for changing the phase (docs/internals/model-file.md), the same rule "
      "for all.\n",
      kFewestClusters, kMostClusters);
}

Status report(const std::string& directory, const std::string& torch_directory) {
  const TraceOptions columns{.columns = ai4dl_columns()};
  auto training = read_traces(directory, TraceSet::training, columns);
  if (!training) return std::unexpected(training.error());
  auto held_out = read_traces(directory, TraceSet::held_out, columns);
  if (!held_out) return std::unexpected(held_out.error());
  std::vector<Trace> torch;
  if (!torch_directory.empty()) {
    auto read = read_torch(torch_directory);
    if (!read) return std::unexpected(read.error());
    torch = *std::move(read);
  }
  const TrainOptions options;
  print_introduction();
  const auto section = [](const char* title, const std::string& text, Experiment experiment) {
    fmt::print("\n## {}\n\n{}\n", title, text);
    return print_table(experiment);
  };

  if (Status status = section(
          "Our own workloads, executions held out",
          fmt::format("Trained on {} executions of three programs, tested on {} others. True "
                      "phases at once are distinguished by program.",
                      training->size(), held_out->size()),
          {{make_fold(*training, *held_out, options)}, true});
      !status)
    return status;
  if (Status status = print_counters(directory + "/counters"); !status) return status;
  if (torch.empty()) {
    fmt::print("\nThe deep-learning jobs are missing, so their sections are left out.\n");
    return {};
  }
  const std::vector<Fold> folds = leave_one_service_out(torch, options);
  if (Status status = section(
          "Deep-learning jobs of a kind never seen",
          fmt::format("{} kinds of jobs, one each: trained on all others, tested on the one left "
                      "out.",
                      folds.size()),
          {folds, false});
      !status)
    return status;
  if (Status status = section(
          "Deep-learning jobs, model of our own workloads",
          "Trained like the default model, on our three programs only. Tested on all deep-learning "
          "jobs.",
          {{make_fold(*training, torch, options)}, false});
      !status)
    return status;
  return section("Deep-learning jobs, nothing left out",
                 "Trained and tested on all of them, without their labels: to compare with numbers "
                 "that were obtained in this way.",
                 {{make_fold(torch, torch, options)}, false});
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fputs("usage: phase_quality TRACES [TORCH]\n", stderr);
    return 2;
  }
  const Status status = report(argv[1], argc == 3 ? argv[2] : "");
  if (!status) std::fprintf(stderr, "phase_quality: %s\n", status.error().text.c_str());
  return status ? 0 : 1;
}
