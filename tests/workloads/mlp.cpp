#include "tests/workloads/mlp.h"

#include <unistd.h>

#include <cmath>

#include "base/check.h"
#include "tests/workloads/random.h"

namespace cgphase::workloads {

namespace {
constexpr float kMomentum = 0.9F;
}

Mlp::Mlp(std::span<const int> widths) : layers_(widths.size() - 1) {
  CHECK_INVARIANT(widths.size() >= 2);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].weight.resize(widths[i], widths[i + 1]);
    layers_[i].bias.resize(widths[i + 1]);
  }
}

Mlp::Mlp(std::span<const int> widths, std::uint64_t seed) : Mlp(widths) {
  Random random(seed);
  for (Layer& layer : layers_) {
    const float scale = std::sqrt(2.0F / static_cast<float>(layer.weight.rows()));
    for (float& value : layer.weight.reshaped()) value = random.bell() * scale;
    layer.bias.setZero();
  }
}

const Matrix& Mlp::forward(const Rows& input) {
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Layer& layer = layers_[i];
    layer.output.resize(input.rows(), layer.weight.cols());
    if (i == 0) {
      layer.output.noalias() = input * layer.weight;
    } else {
      layer.output.noalias() = layers_[i - 1].output * layer.weight;
    }
    layer.output.rowwise() += layer.bias;
    if (i + 1 < layers_.size()) layer.output = layer.output.cwiseMax(0.0F);
  }
  return layers_.back().output;
}

// Leaves the gradient of the mean loss in the last layer's delta.
void Mlp::softmax_gradient(std::span<const int> labels, float& loss) {
  Layer& last = layers_.back();
  const Eigen::Index examples = last.output.rows();
  CHECK_INVARIANT(static_cast<std::size_t>(examples) == labels.size());
  last.delta.resize(examples, last.output.cols());
  double total = 0;
  for (Eigen::Index r = 0; r < examples; ++r) {
    const int label = labels[static_cast<std::size_t>(r)];
    auto gradient = last.delta.row(r);
    gradient = (last.output.row(r).array() - last.output.row(r).maxCoeff()).exp();
    gradient /= gradient.sum();
    total -= std::log(std::max(static_cast<double>(gradient(label)), 1e-12));
    gradient(label) -= 1.0F;
  }
  last.delta /= static_cast<float>(examples);
  loss = static_cast<float>(total / static_cast<double>(examples));
}

float Mlp::loss(const Rows& input, std::span<const int> labels) {
  float loss = 0;
  forward(input);
  softmax_gradient(labels, loss);
  return loss;
}

float Mlp::train(const Rows& input, std::span<const int> labels, float learning_rate) {
  const float before = loss(input, labels);
  backward(input, learning_rate);
  return before;
}

void Mlp::backward(const Rows& input, float learning_rate) {
  for (std::size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    if (layer.weight_velocity.size() == 0) {
      layer.weight_velocity = Matrix::Zero(layer.weight.rows(), layer.weight.cols());
      layer.bias_velocity = Eigen::RowVectorXf::Zero(layer.bias.size());
    }
    layer.weight_velocity *= kMomentum;
    if (i == 0) {
      layer.weight_velocity.noalias() += input.transpose() * layer.delta;
    } else {
      Layer& below = layers_[i - 1];
      layer.weight_velocity.noalias() += below.output.transpose() * layer.delta;
      below.delta.noalias() = layer.delta * layer.weight.transpose();
      below.delta = (below.output.array() > 0.0F).select(below.delta, 0.0F);
    }
    layer.bias_velocity = layer.bias_velocity * kMomentum + layer.delta.colwise().sum();
    layer.weight -= learning_rate * layer.weight_velocity;
    layer.bias -= learning_rate * layer.bias_velocity;
  }
}

std::size_t Mlp::parameter_count() const {
  std::size_t count = 0;
  for (const Layer& layer : layers_)
    count += static_cast<std::size_t>(layer.weight.size() + layer.bias.size());
  return count;
}

void Mlp::serialize(std::string& out) const {
  const auto append = [&out](const float* values, Eigen::Index count) {
    out.append(reinterpret_cast<const char*>(values), static_cast<std::size_t>(count) * 4);
  };
  for (const Layer& layer : layers_) {
    append(layer.weight.data(), layer.weight.size());
    append(layer.bias.data(), layer.bias.size());
  }
}

Status Mlp::read_parameters(int fd) {
  const auto take = [fd](float* values, Eigen::Index count) {
    char* at = reinterpret_cast<char*>(values);
    for (std::size_t left = static_cast<std::size_t>(count) * sizeof(float); left > 0;) {
      const ssize_t got = read(fd, at, left);
      if (got <= 0) return false;
      at += got;
      left -= static_cast<std::size_t>(got);
    }
    return true;
  };
  for (Layer& layer : layers_)
    if (!take(layer.weight.data(), layer.weight.size()) ||
        !take(layer.bias.data(), layer.bias.size()))
      return failure(ErrorKind::invalid, "model file: shorter than its layers");
  float more = 0;
  if (take(&more, 1)) return failure(ErrorKind::invalid, "model file: longer than its layers");
  return {};
}

}  // namespace cgphase::workloads
