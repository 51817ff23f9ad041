// The daemon's engine: CRBM and nearest centroid in integers, bit-identical on every machine.
//
//   inputs       int16, 12 fractional bits (kStandardisedBound)
//   weights      int16, one power-of-two scale per hidden unit: weight = integer / 2^shift
//   sums         of up to 2112 such products, less than 2^42: integers that are exact in a double,
//                so that processors may add them in any order, several at a time
//   sigmoid      table of 1/32 steps on [-11, 11], linear interpolation, 15 fractional bits
//   distances    squared, 30 fractional bits; sums are exact in the same way
//
// error_bound() limits the difference from the double engine. A phase whose margin exceeds the
// bound is certified to be the phase of the double engine.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/model.h"

namespace cgphase {

inline constexpr int kInputShift = 12;
inline constexpr int kActivationShift = 15;
inline constexpr int kMinWeightShift = -6;
inline constexpr int kMaxWeightShift = 30;

// The sigmoid of z. z has 16 fractional bits, the result 15.
std::int16_t fixed_sigmoid(std::int64_t z);
// Largest |fixed_sigmoid(z) - sigmoid(z)|: interpolation, two roundings, saturation.
inline constexpr double kFixedSigmoidError = 4.4e-5;

// Read-only after construction; any thread may use it.
class CrbmFixed {
 public:
  // The arguments must have passed check_model().
  CrbmFixed(const CrbmParameters& crbm, const Centroids& centroids);

  struct Nearest {
    int index = 0;
    std::int64_t distance = 0, margin = 0;  // squared, in units of 2^-30
  };
  // `window` is n_his + 1 quantized vectors, oldest first.
  Nearest nearest(std::span<const std::int16_t> window) const;
  // Only the squared distances, one per centroid, in units of 2^-30.
  void distances(std::span<const std::int16_t> window, std::int64_t* squared) const;
  // Only the activations, n_hid values.
  void hidden(std::span<const std::int16_t> window, std::int16_t* activation) const;

  // "2 eps": the margin between any two centroids for this window is wrong by at most this. It
  // holds for windows of values within kStandardisedBound.
  double error_bound(std::span<const std::int16_t> window) const;

  // The largest error of a unit's activation: constant + per_input * sum|standardised input|.
  struct UnitBound {
    double constant = 0, per_input = 0;
  };
  const std::vector<UnitBound>& unit_bounds() const { return unit_bounds_; }

  int window_size() const { return window_size_; }

 private:
  void bound_errors(const CrbmParameters& crbm, const Centroids& centroids);

  double weight(std::size_t unit, std::size_t column) const;

  int n_hid_, window_size_;
  int unit_stride_;  // number of units, padded with zeros
  int centroid_count_, centroid_stride_;

  // Integers stored as doubles. Per unit: halves_ are added to its sum before that is scaled and
  // rounded down.
  std::vector<double> weights_;  // [window_size * unit_stride]
  std::vector<double> halves_, scales_, biases_;
  std::vector<int> weight_shift_;
  std::vector<double> centroids_;  // [n_hid * centroid_stride]
  std::vector<int> parents_;             // as in Centroids
  std::vector<UnitBound> unit_bounds_;   // eps_k
  double bound_constant_ = 0, bound_per_input_ = 0;
};

// Rounds to nearest, ties away from zero. `standardised` is within kStandardisedBound.
std::int16_t quantize_input(double standardised);

// One shift per hidden unit: the finest scale at which all weights of its row fit an int16. Stored
// in the model file and verified on load.
std::vector<int> weight_shifts(const CrbmParameters& crbm);

// Moves weights, hidden biases and centroids to the nearest values that the integers represent
// exactly. The trainer does so at the end, so that only input and table add to the error bound.
void snap_to_grid(CrbmParameters& crbm);
void snap_to_grid(Centroids& centroids);

}  // namespace cgphase
