// Tests whether the phases are sensible. It trains on labelled traces and prints, per number of
// phases, normalised mutual information and purity against the label. It does so for three ways of
// finding phases: trained CRBM, untrained CRBM, k-means on raw standardised features. JSON lines.
//
//   bench_phases STEP_SECONDS TRACE.csv...
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/crbm_fixed.h"
#include "model/feature_schema.h"
#include "model/train/crbm_trainer.h"
#include "model/train/kmeans.h"

namespace {

using namespace cgphase;

struct Quality {
  double nmi = 0, purity = 0;
};

// NMI = 2 I(phase; label) / (H(phase) + H(label)).
Quality compare(const std::vector<int>& phases, const std::vector<std::string>& labels) {
  std::map<int, double> by_phase;
  std::map<std::string, double> by_label;
  std::map<int, std::map<std::string, double>> both;
  const auto n = static_cast<double>(phases.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    by_phase[phases[i]] += 1 / n;
    by_label[labels[i]] += 1 / n;
    both[phases[i]][labels[i]] += 1 / n;
  }
  double entropy = 0, information = 0, purity = 0;
  for (const auto& [phase, p] : by_phase) entropy -= p * std::log(p);
  for (const auto& [label, p] : by_label) entropy -= p * std::log(p);
  for (const auto& [phase, row] : both) {
    double most = 0;
    for (const auto& [label, p] : row) {
      information += p * std::log(p / (by_phase[phase] * by_label[label]));
      most = std::max(most, p);
    }
    purity += most;
  }
  return {entropy > 0 ? 2 * information / entropy : 0, purity};
}

void report(const char* way, std::span<const double> points, int dimension,
            const std::vector<std::string>& labels) {
  for (int k = 2; k <= 8; ++k) {
    KMeansOptions options;
    options.clusters = k;
    const KMeansFit fit = kmeans(points, dimension, options);
    const Quality quality = compare(fit.labels, labels);
    std::printf("{\"bench\":\"phases\",\"way\":\"%s\",\"k\":%d,\"nmi\":%.4f,\"purity\":%.4f,"
                "\"ssw\":%.4f}\n",
                way, k, quality.nmi, quality.purity, fit.inertia);
  }
  std::printf("{\"bench\":\"phases\",\"way\":\"%s\",\"elbow\":%d}\n", way,
              clusters_at_elbow(points, dimension, 10, {}));
}

std::vector<double> last_steps(const Dataset& data) {
  std::vector<double> points;
  const auto features = static_cast<std::size_t>(data.features);
  for (const std::size_t step : data.last_step)
    points.insert(points.end(), &data.standardised[step * features],
                  &data.standardised[step * features] + features);
  return points;
}

std::vector<std::string> labels_of(const Dataset& data, const std::vector<Trace>& traces) {
  std::vector<const Execution*> executions;
  for (const Trace& trace : traces)
    for (const Execution& execution : trace.executions) executions.push_back(&execution);
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < data.size(); ++i)
    labels.push_back(executions[data.execution[i]]->rows[data.row[i]].label);
  return labels;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fputs("usage: bench_phases STEP_SECONDS TRACE.csv...\n", stderr);
    return 2;
  }
  std::vector<Trace> traces;
  for (int i = 2; i < argc; ++i) {
    Result<Trace> trace = read_trace(argv[i]);
    if (!trace) {
      std::fprintf(stderr, "bench_phases: %s\n", trace.error().text.c_str());
      return EXIT_FAILURE;
    }
    traces.push_back(std::move(*trace));
  }
  const Dataset data = make_dataset(traces, plain_schema(), std::atof(argv[1]), 3);
  if (data.size() < 10) return EXIT_FAILURE;
  const std::vector<std::string> labels = labels_of(data, traces);
  CrbmTraining training;
  const CrbmFit trained = fit_crbm(data, training, {});
  training.max_epochs = 0;
  const CrbmFit untrained = fit_crbm(data, training, {});
  std::printf("{\"bench\":\"phases\",\"windows\":%zu,\"epochs\":%d,\"error\":%.4f,"
              "\"error_untrained\":%.4f}\n",
              data.size(), trained.epochs, trained.held_out_error, untrained.held_out_error);
  report("trained", activations(trained.crbm, data), training.hidden, labels);
  report("untrained", activations(untrained.crbm, data), training.hidden, labels);
  report("raw", last_steps(data), data.features, labels);
  return EXIT_SUCCESS;
}
