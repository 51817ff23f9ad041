// A multi-layer perceptron: ReLU layers, softmax on top, plain gradient descent with momentum.
// Float, one thread; the same seed and data give the same numbers on one build.
#pragma once

#include <Eigen/Dense>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace cgphase::workloads {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Rows = Eigen::Map<const Matrix>;  // one example per row

class Mlp {
 public:
  // widths: input, hidden ..., output; at least two. The parameters are not set yet.
  explicit Mlp(std::span<const int> widths);
  // Initial parameters of a training (He et al., 2015).
  Mlp(std::span<const int> widths, std::uint64_t seed);

  // Raw outputs [examples, last width]; valid until the next call.
  const Matrix& forward(const Rows& input);
  // Mean cross-entropy of a batch, labels in [0, last width); no learning.
  float loss(const Rows& input, std::span<const int> labels);
  // One step of gradient descent; returns the loss before it.
  float train(const Rows& input, std::span<const int> labels, float learning_rate);

  std::size_t parameter_count() const;
  // Weights and biases of all layers as bytes.
  void serialize(std::string& out) const;
  // Reads them from an open file directly into place. A wrong length is invalid.
  Status read_parameters(int fd);

 private:
  struct Layer {
    Matrix weight;            // [in, out]
    Eigen::RowVectorXf bias;  // [out]
    Matrix weight_velocity;   // made by the first train(): inference needs none
    Eigen::RowVectorXf bias_velocity;
    Matrix output;  // [examples, out], after ReLU except in the last layer
    Matrix delta;   // [examples, out], gradient at the output
  };
  void softmax_gradient(std::span<const int> labels, float& loss);
  void backward(const Rows& input, float learning_rate);

  std::vector<Layer> layers_;
};

}  // namespace cgphase::workloads
