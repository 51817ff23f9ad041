// Trains the CRBM by one-step contrastive divergence with mean field (CD-1; Hinton, "Training
// products of experts", Neural Computation 2002). docs/internals/model-file.md has the equations.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "base/result.h"
#include "model/crbm.h"
#include "model/train/dataset.h"
#include "model/train/epoch_report.h"
#include "model/train/random.h"

namespace cgphase {

// The gradient of a Crbm, with the shape of its parameters.
struct CrbmGradient {
  explicit CrbmGradient(const Crbm& crbm);
  void set_zero();
  Eigen::MatrixXd hidden_weights, history_weights;
  Eigen::VectorXd visible_bias, hidden_bias;
};

// CD-1 of windows, several at a time. It reuses its scratch space between calls.
class ContrastiveDivergence {
 public:
  using Windows = std::span<const double* const>;
  // Adds the gradients of the windows to `gradient` and their reconstruction errors ||v - v1|| to
  // `error`, one window after the other.
  void add(const Crbm& crbm, Windows windows, CrbmGradient& gradient, double& error);
  // Adds only the errors.
  void add_errors(const Crbm& crbm, Windows windows, double& error);

 private:
  void reconstruct(const Crbm& crbm, Windows windows, double& error);
  void activate(const Crbm& crbm);  // h1
  // One column per window. sums_ starts as hidden_bias + B c.
  Eigen::MatrixXd sums_, h0_, v1_, h1_;
  Eigen::VectorXd hidden_apart_, visible_apart_;  // h0 - h1, v - v1 of one window
};

// Weights N(0, 1) * 0.2 / (n_vis * max(n_his, 1)), biases 0.
CrbmParameters initial_parameters(int n_vis, int n_hid, int n_his, Random& random);

struct CrbmTraining {
  int hidden = 10;
  int max_epochs = 500;  // 0 leaves the initial weights
  int patience = 25;     // epochs without improvement on the held-out windows
  int batch = 16;
  double learning_rate = 0.01, momentum = 0.9;
  std::uint64_t seed = 1;
};

struct CrbmFit {
  CrbmParameters crbm;  // parameters of the best epoch
  int epochs = 0;       // epochs that were run
  double error = 0, held_out_error = 0;
};

// Starts from initial_parameters(). A fifth of the windows is held out and decides when to stop. It
// is chosen in blocks, so that neighbours do not leak. A step that makes a parameter not finite is
// undone and the learning rate halved. Deterministic for a seed. `data` has at least one window.
CrbmFit fit_crbm(const Dataset& data, const CrbmTraining& options,
                 const std::function<void(const EpochReport&)>& progress);

// Hidden activations of all windows, row-major [data.size() * n_hid].
std::vector<double> activations(const CrbmParameters& parameters, const Dataset& data);

}  // namespace cgphase
