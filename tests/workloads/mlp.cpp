#include "tests/workloads/mlp.h"

#include <cmath>
#include <cstring>

#include "base/check.h"
#include "tests/workloads/random.h"

namespace cgphase::workloads {

namespace {
constexpr float kMomentum = 0.9F;
}

Mlp::Mlp(std::span<const int> widths, std::uint64_t seed) : layers_(widths.size() - 1) {
  CHECK_INVARIANT(widths.size() >= 2);
  Random random(seed);
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].weight.resize(widths[i], widths[i + 1]);
    layers_[i].bias = Eigen::RowVectorXf::Zero(widths[i + 1]);
    const float scale = std::sqrt(2.0F / static_cast<float>(widths[i]));
    for (float& value : layers_[i].weight.reshaped()) value = random.bell() * scale;
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

Status Mlp::deserialize(std::string_view bytes) {
  if (bytes.size() != parameter_count() * sizeof(float))
    return failure(ErrorKind::invalid, "model file: length does not fit the layers");
  const auto take = [&bytes](float* values, Eigen::Index count) {
    const std::size_t size = static_cast<std::size_t>(count) * sizeof(float);
    std::memcpy(values, bytes.data(), size);
    bytes.remove_prefix(size);
  };
  for (Layer& layer : layers_) {
    take(layer.weight.data(), layer.weight.size());
    take(layer.bias.data(), layer.bias.size());
  }
  return {};
}

}  // namespace cgphase::workloads
