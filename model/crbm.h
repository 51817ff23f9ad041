// The Gaussian-Bernoulli CRBM in double precision. It is the reference for the fixed-point engine,
// and training works on it (docs/internals/model-file.md; Taylor, Hinton and Roweis, NIPS 2006,
// with sigma = 1).
#pragma once

#include <Eigen/Core>
#include <span>

#include "model/model.h"

namespace cgphase {

// Every product is a sum of columns, one input after the other, starting from the bias. So a result
// does not depend on the vector width of the processor: it is bit-identical everywhere.
//
// A window is n_his + 1 standardised vectors, oldest first: the history c (n_his * n_vis values,
// time-major), then the visible v.
class Crbm {
 public:
  // Sizes must match n_vis, n_hid and n_his (check_model).
  explicit Crbm(const CrbmParameters& parameters);
  CrbmParameters parameters() const;

  int n_vis() const { return n_vis_; }
  int n_hid() const { return n_hid_; }
  int n_his() const { return n_his_; }
  int history_size() const { return n_vis_ * n_his_; }
  int window_size() const { return n_vis_ * (n_his_ + 1); }

  // p(h = 1 | v, c) = sigmoid(W v + B c + hidden_bias) of a window, n_hid values.
  void hidden(const double* window, Eigen::VectorXd& activation) const;
  // E[v | h, c] = W^T h + A c + visible_bias, n_vis values.
  void reconstruct(const double* window, const Eigen::VectorXd& activation,
                   Eigen::VectorXd& visible) const;
  // The parts of these functions, for many windows at a time. hidden() is the sigmoid of a sum:
  // hidden_sum() gives hidden_bias + B c, and add_visible() adds W v. n_hid, n_vis values.
  void hidden_sum(const double* history, double* sum) const;
  void add_visible(const double* visible, double* sum) const;
  void reconstruct(const double* window, const double* activation, double* visible) const;

  // model/train changes these in place. Columns are the inputs in window order.
  Eigen::MatrixXd hidden_weights;   // [B W], n_hid x window_size
  Eigen::MatrixXd history_weights;  // A, n_vis x history_size
  Eigen::VectorXd visible_bias, hidden_bias;

 private:
  int n_vis_, n_hid_, n_his_;
};

}  // namespace cgphase
