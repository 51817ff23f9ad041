#include "model/train/crbm_trainer.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/check.h"
#include "model/column_math.h"
#include "model/scalar_math.h"

namespace cgphase {
namespace {

constexpr std::size_t kBlockWindows = 20;       // windows that are held out together
constexpr std::size_t kHeldOutShare = 5;        // one of this many blocks is held out
constexpr std::size_t kSmallestHeldOut = 100;   // with fewer windows, none is held out
constexpr std::size_t kWindowsAtATime = 64;     // whose errors are computed together
constexpr double kImprovement = 1e-4;           // relative; a smaller change is no improvement
constexpr int kMaxHalvings = 20;               // of the learning rate after divergence

struct Split {
  std::vector<std::size_t> train, held_out;
};

Split split_windows(std::size_t count, Random& random) {
  Split split;
  bool hold = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (i % kBlockWindows == 0)
      hold = count >= kSmallestHeldOut && random.below(kHeldOutShare) == 0;
    (hold ? split.held_out : split.train).push_back(i);
  }
  if (split.held_out.empty()) split.held_out = split.train;
  if (split.train.empty()) split.train = split.held_out;
  return split;
}

// The sum runs left to right, so that it does not depend on the vector width of the processor.
double distance(const double* a, const double* b, int size) {
  double sum = 0;
  for (int i = 0; i < size; ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum);
}

// Gradient ascent with momentum.
class Optimizer {
 public:
  Optimizer(const Crbm& crbm, double learning_rate, double momentum)
      : velocity_(crbm), learning_rate_(learning_rate), momentum_(momentum) {}

  void step(Crbm& crbm, const CrbmGradient& sum, std::size_t windows) {
    const double rate = learning_rate_ / static_cast<double>(windows);
    move(crbm.hidden_weights, velocity_.hidden_weights, sum.hidden_weights, rate);
    move(crbm.history_weights, velocity_.history_weights, sum.history_weights, rate);
    move(crbm.visible_bias, velocity_.visible_bias, sum.visible_bias, rate);
    move(crbm.hidden_bias, velocity_.hidden_bias, sum.hidden_bias, rate);
  }
  void calm() {
    velocity_.set_zero();
    learning_rate_ /= 2;
  }

 private:
  template <class Matrix>
  void move(Matrix& parameter, Matrix& velocity, const Matrix& gradient, double rate) const {
    velocity = velocity * momentum_ + gradient * rate;
    parameter += velocity;
  }

  CrbmGradient velocity_;
  double learning_rate_, momentum_;
};

bool within_bounds(const Crbm& crbm) {
  const auto fine = [](const auto& matrix) {
    return matrix.array().isFinite().all() && (matrix.array().abs() <= kMaxParameter).all();
  };
  return fine(crbm.hidden_weights) && fine(crbm.history_weights) && fine(crbm.visible_bias) &&
         fine(crbm.hidden_bias);
}

class Training {
 public:
  Training(const Dataset& data, const CrbmTraining& options)
      : data_(data),
        options_(options),
        random_(options.seed),
        crbm_(initial_parameters(data.features, options.hidden, data.history, random_)),
        split_(split_windows(data.size(), random_)),
        gradient_(crbm_),
        optimizer_(crbm_, options.learning_rate, options.momentum) {}

  CrbmFit run(const std::function<void(const EpochReport&)>& progress) {
    best_ = {crbm_.parameters(), 0, mean_error(split_.train), mean_error(split_.held_out)};
    int stale = 0, halvings = 0;
    for (int epoch = 1; epoch <= options_.max_epochs && stale < options_.patience; ++epoch) {
      const double error = run_epoch();
      const double held_out = mean_error(split_.held_out);
      if (!within_bounds(crbm_) || !std::isfinite(error) || !std::isfinite(held_out)) {
        if (++halvings > kMaxHalvings) break;
        crbm_ = Crbm(best_.crbm);
        optimizer_.calm();
        continue;
      }
      best_.epochs = epoch;
      stale = held_out < best_.held_out_error * (1 - kImprovement) ? 0 : stale + 1;
      if (held_out < best_.held_out_error) keep(error, held_out);
      if (progress) progress({epoch, error, held_out});
    }
    return best_;
  }

 private:
  void keep(double error, double held_out) {
    best_.crbm = crbm_.parameters();
    best_.error = error;
    best_.held_out_error = held_out;
  }

  double run_epoch() {
    random_.shuffle(std::span(split_.train));
    const auto batch = static_cast<std::size_t>(options_.batch);
    double error = 0;
    for (std::size_t begin = 0; begin < split_.train.size(); begin += batch) {
      const std::size_t end = std::min(begin + batch, split_.train.size());
      gradient_.set_zero();
      divergence_.add(crbm_, windows(split_.train, begin, end), gradient_, error);
      optimizer_.step(crbm_, gradient_, end - begin);
    }
    return error / static_cast<double>(split_.train.size());
  }

  double mean_error(const std::vector<std::size_t>& indices) {
    double sum = 0;
    for (std::size_t begin = 0; begin < indices.size(); begin += kWindowsAtATime) {
      const std::size_t end = std::min(begin + kWindowsAtATime, indices.size());
      divergence_.add_errors(crbm_, windows(indices, begin, end), sum);
    }
    return sum / static_cast<double>(indices.size());
  }

  // Valid until the next call.
  ContrastiveDivergence::Windows windows(const std::vector<std::size_t>& indices,
                                         std::size_t begin, std::size_t end) {
    windows_.clear();
    for (std::size_t i = begin; i < end; ++i) windows_.push_back(data_.window(indices[i]));
    return windows_;
  }

  const Dataset& data_;
  const CrbmTraining& options_;
  Random random_;
  Crbm crbm_;
  Split split_;
  ContrastiveDivergence divergence_;
  CrbmGradient gradient_;
  Optimizer optimizer_;
  CrbmFit best_;
  std::vector<const double*> windows_;
};

}  // namespace

CrbmGradient::CrbmGradient(const Crbm& crbm)
    : hidden_weights(crbm.hidden_weights.rows(), crbm.hidden_weights.cols()),
      history_weights(crbm.history_weights.rows(), crbm.history_weights.cols()),
      visible_bias(crbm.n_vis()),
      hidden_bias(crbm.n_hid()) {
  set_zero();
}

void CrbmGradient::set_zero() {
  hidden_weights.setZero();
  history_weights.setZero();
  visible_bias.setZero();
  hidden_bias.setZero();
}

// Computes h0 and v1 of all windows. Independent sigmoids and sums take a third of the time.
void ContrastiveDivergence::reconstruct(const Crbm& crbm, Windows windows, double& error) {
  const auto count = static_cast<Eigen::Index>(windows.size());
  sums_.resize(crbm.n_hid(), count);
  v1_.resize(crbm.n_vis(), count);
  for (Eigen::Index i = 0; i < count; ++i)
    crbm.hidden_sum(windows[static_cast<std::size_t>(i)], sums_.col(i).data());
  h0_ = sums_;
  for (Eigen::Index i = 0; i < count; ++i) {
    const double* window = windows[static_cast<std::size_t>(i)];
    crbm.add_visible(window + crbm.history_size(), h0_.col(i).data());
  }
  portable_sigmoids(h0_.data(), static_cast<int>(h0_.size()));
  for (Eigen::Index i = 0; i < count; ++i) {
    const double* window = windows[static_cast<std::size_t>(i)];
    crbm.reconstruct(window, h0_.col(i).data(), v1_.col(i).data());
    error += distance(v1_.col(i).data(), window + crbm.history_size(), crbm.n_vis());
  }
}

void ContrastiveDivergence::activate(const Crbm& crbm) {
  h1_ = sums_;
  for (Eigen::Index i = 0; i < h1_.cols(); ++i)
    crbm.add_visible(v1_.col(i).data(), h1_.col(i).data());
  portable_sigmoids(h1_.data(), static_cast<int>(h1_.size()));
}

// dB = (h0 - h1) c^T and dW = h0 v^T - h1 v1^T are columns of one matrix.
void ContrastiveDivergence::add(const Crbm& crbm, Windows windows, CrbmGradient& gradient,
                                double& error) {
  reconstruct(crbm, windows, error);
  activate(crbm);
  const int hid = crbm.n_hid(), vis = crbm.n_vis(), history = crbm.history_size();
  double* weights = gradient.hidden_weights.data();
  for (Eigen::Index i = 0; i < h1_.cols(); ++i) {
    const double* window = windows[static_cast<std::size_t>(i)];
    const double* visible = window + history;
    hidden_apart_ = h0_.col(i) - h1_.col(i);
    visible_apart_ = Eigen::Map<const Eigen::VectorXd>(visible, vis) - v1_.col(i);
    gradient.hidden_bias += hidden_apart_;
    gradient.visible_bias += visible_apart_;
    add_outer(weights, hid, history, hidden_apart_.data(), window);
    add_outer_difference(weights + std::ptrdiff_t{hid} * history, hid, vis, h0_.col(i).data(),
                         visible, h1_.col(i).data(), v1_.col(i).data());
    add_outer(gradient.history_weights.data(), vis, history, visible_apart_.data(), window);
  }
}

void ContrastiveDivergence::add_errors(const Crbm& crbm, Windows windows, double& error) {
  reconstruct(crbm, windows, error);
}

CrbmParameters initial_parameters(int n_vis, int n_hid, int n_his, Random& random) {
  CrbmParameters p{.n_vis = n_vis, .n_hid = n_hid, .n_his = n_his};
  const double scale = 0.2 / (n_vis * std::max(n_his, 1));
  for (auto [values, count] : {std::pair{&p.w, n_hid * n_vis},
                               std::pair{&p.a, n_vis * n_vis * n_his},
                               std::pair{&p.b, n_hid * n_vis * n_his}})
    for (int i = 0; i < count; ++i) values->push_back(random.normal() * scale);
  p.visible_bias.assign(static_cast<std::size_t>(n_vis), 0);
  p.hidden_bias.assign(static_cast<std::size_t>(n_hid), 0);
  return p;
}

CrbmFit fit_crbm(const Dataset& data, const CrbmTraining& options,
                 const std::function<void(const EpochReport&)>& progress) {
  CHECK_INVARIANT(data.size() > 0 && options.hidden > 0 && options.batch > 0);
  return Training(data, options).run(progress);
}

std::vector<double> activations(const CrbmParameters& parameters, const Dataset& data) {
  const Crbm crbm(parameters);
  std::vector<double> all;
  all.reserve(data.size() * static_cast<std::size_t>(crbm.n_hid()));
  Eigen::VectorXd activation;
  for (std::size_t i = 0; i < data.size(); ++i) {
    crbm.hidden(data.window(i), activation);
    all.insert(all.end(), activation.begin(), activation.end());
  }
  return all;
}

}  // namespace cgphase
