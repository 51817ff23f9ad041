#include "model/crbm.h"

#include <algorithm>
#include <cstddef>

#include "model/column_math.h"
#include "model/scalar_math.h"

namespace cgphase {
namespace {

using RowMajor = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<double> row_major(const Eigen::MatrixXd& matrix) {
  std::vector<double> values(static_cast<std::size_t>(matrix.size()));
  Eigen::Map<RowMajor>(values.data(), matrix.rows(), matrix.cols()) = matrix;
  return values;
}

std::vector<double> to_vector(const Eigen::VectorXd& vector) {
  return {vector.data(), vector.data() + vector.size()};
}

Eigen::VectorXd to_eigen(const std::vector<double>& values) {
  return Eigen::Map<const Eigen::VectorXd>(values.data(), static_cast<Eigen::Index>(values.size()));
}

}  // namespace

Crbm::Crbm(const CrbmParameters& p) : n_vis_(p.n_vis), n_hid_(p.n_hid), n_his_(p.n_his) {
  hidden_weights.resize(n_hid_, window_size());
  hidden_weights.leftCols(history_size()) =
      Eigen::Map<const RowMajor>(p.b.data(), n_hid_, history_size());
  hidden_weights.rightCols(n_vis_) = Eigen::Map<const RowMajor>(p.w.data(), n_hid_, n_vis_);
  history_weights = Eigen::Map<const RowMajor>(p.a.data(), n_vis_, history_size());
  visible_bias = to_eigen(p.visible_bias);
  hidden_bias = to_eigen(p.hidden_bias);
}

CrbmParameters Crbm::parameters() const {
  CrbmParameters p;
  p.n_vis = n_vis_, p.n_hid = n_hid_, p.n_his = n_his_;
  p.w = row_major(hidden_weights.rightCols(n_vis_));
  p.b = row_major(hidden_weights.leftCols(history_size()));
  p.a = row_major(history_weights);
  p.visible_bias = to_vector(visible_bias);
  p.hidden_bias = to_vector(hidden_bias);
  return p;
}

void Crbm::hidden(const double* window, Eigen::VectorXd& activation) const {
  activation.resize(n_hid_);
  hidden_sum(window, activation.data());
  add_visible(window + history_size(), activation.data());
  portable_sigmoids(activation.data(), n_hid_);
}

void Crbm::reconstruct(const double* window, const Eigen::VectorXd& activation,
                       Eigen::VectorXd& visible) const {
  visible.resize(n_vis_);
  reconstruct(window, activation.data(), visible.data());
}

void Crbm::hidden_sum(const double* history, double* sum) const {
  std::copy_n(hidden_bias.data(), n_hid_, sum);
  add_columns(hidden_weights.data(), n_hid_, history_size(), history, sum);
}

void Crbm::add_visible(const double* visible, double* sum) const {
  const double* weights = hidden_weights.data() + std::ptrdiff_t{n_hid_} * history_size();
  add_columns(weights, n_hid_, n_vis_, visible, sum);
}

void Crbm::reconstruct(const double* window, const double* activation, double* visible) const {
  std::copy_n(visible_bias.data(), n_vis_, visible);
  add_columns(history_weights.data(), n_vis_, history_size(), window, visible);
  const double* weights = hidden_weights.data() + std::ptrdiff_t{n_hid_} * history_size();
  add_rows(weights, n_hid_, n_vis_, activation, visible);
}

}  // namespace cgphase
