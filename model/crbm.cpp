#include "model/crbm.h"

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
  activation = hidden_bias;
  for (int i = 0; i < window_size(); ++i) activation += hidden_weights.col(i) * window[i];
  for (double& value : activation) value = portable_sigmoid(value);
}

void Crbm::reconstruct(const double* window, const Eigen::VectorXd& activation,
                       Eigen::VectorXd& visible) const {
  visible = visible_bias;
  for (int i = 0; i < history_size(); ++i) visible += history_weights.col(i) * window[i];
  for (int k = 0; k < n_hid_; ++k)
    visible += hidden_weights.row(k).tail(n_vis_).transpose() * activation[k];
}

}  // namespace cgphase
