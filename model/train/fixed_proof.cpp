#include "model/train/fixed_proof.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "model/centroids.h"
#include "model/crbm.h"
#include "model/crbm_fixed.h"

namespace cgphase {

FixedProof prove_fixed(const Model& model, const Dataset& data) {
  const Crbm exact(model.crbm);
  const CrbmFixed fixed(model.crbm, model.centroids);
  std::vector<std::int16_t> window(static_cast<std::size_t>(fixed.window_size()));
  std::vector<std::int16_t> activation(static_cast<std::size_t>(model.crbm.n_hid));
  Eigen::VectorXd expected;
  FixedProof proof{.windows = data.size()};
  for (std::size_t i = 0; i < data.size(); ++i) {
    const double* values = data.window(i);
    std::transform(values, values + window.size(), window.begin(), quantize_input);
    exact.hidden(values, expected);
    fixed.hidden(window, activation.data());
    for (std::size_t k = 0; k < activation.size(); ++k)
      proof.largest_activation_error =
          std::max(proof.largest_activation_error,
                   std::abs(std::ldexp(activation[k], -kActivationShift) -
                            expected[static_cast<Eigen::Index>(k)]));
    const CrbmFixed::Nearest found = fixed.nearest(window);
    const double margin = std::ldexp(static_cast<double>(found.margin), -2 * kActivationShift);
    const bool certain = model.centroids.count == 1 || margin > fixed.error_bound(window);
    const std::span<const double> point(expected.data(), activation.size());
    const bool same = found.index == nearest_centroid(model.centroids, point).index;
    proof.certified += certain;
    proof.agreeing += same;
    proof.violations += certain && !same;
  }
  return proof;
}

}  // namespace cgphase
