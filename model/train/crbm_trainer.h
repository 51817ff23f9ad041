// Training of the CRBM by contrastive divergence, one step, mean field throughout (CD-1; Hinton,
// "Training products of experts", Neural Computation 2002; docs/model_file.md has the equations).
#pragma once

#include <cstdint>
#include <functional>

#include "base/result.h"
#include "model/crbm.h"
#include "model/train/dataset.h"
#include "model/train/epoch_report.h"

namespace cgphase {

// The direction in which the parameters of a Crbm go, shaped like them.
struct CrbmGradient {
  explicit CrbmGradient(const Crbm& crbm);
  void set_zero();
  Eigen::MatrixXd hidden_weights, history_weights;
  Eigen::VectorXd visible_bias, hidden_bias;
};

// CD-1 of windows of one model; keeps its scratch space from one to the next.
class ContrastiveDivergence {
 public:
  explicit ContrastiveDivergence(const Crbm& crbm);
  // Adds the gradient of one window; returns its reconstruction error ||v - v1||.
  double add(const Crbm& crbm, const double* window, CrbmGradient& gradient);
  // The error alone.
  double error(const Crbm& crbm, const double* window);

 private:
  Eigen::VectorXd h0_, v1_, h1_, reconstructed_;
};

struct CrbmTraining {
  int hidden = 10;
  int max_epochs = 500;  // 0 leaves the initial weights
  int patience = 25;     // epochs without improvement on the held-out windows
  int batch = 16;
  double learning_rate = 0.01, momentum = 0.9;
  std::uint64_t seed = 1;
};

struct CrbmFit {
  CrbmParameters crbm;  // of the best epoch
  int epochs = 0;       // run
  double error = 0, held_out_error = 0;
};

// Weights begin as N(0, 1) * 0.2 / (n_vis * max(n_his, 1)), biases at 0. A fifth of the windows, in
// blocks so that neighbours do not leak, is held out and decides when to stop. A step that makes a
// parameter not finite is undone and the learning rate halved. Deterministic for a seed.
// `data` has at least one window.
CrbmFit fit_crbm(const Dataset& data, const CrbmTraining& options,
                 const std::function<void(const EpochReport&)>& progress);

// Hidden activations of all windows, row-major [data.size() * n_hid].
std::vector<double> activations(const CrbmParameters& parameters, const Dataset& data);

}  // namespace cgphase
