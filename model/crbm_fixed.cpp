#include "model/crbm_fixed.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "base/check.h"
#include "model/centroids.h"
#include "model/clones.h"
#include "model/scalar_math.h"

namespace cgphase {
namespace {

constexpr int kSumShift = 16;      // fractional bits of a weighted sum before the sigmoid
constexpr int kSegmentShift = 11;  // a table segment is 2^11 / 2^16 = 1/32 wide
constexpr int kTableBound = 11;
constexpr int kSegments = 2 * kTableBound * (1 << (kSumShift - kSegmentShift));
constexpr double kInt16Max = 32767;

// Units and centroids are stored side by side, in groups for which the widest common processors
// have registers. The remainder is padded with zeros. A weight, an input and an activation have 16
// bits, and the longest row has kMostColumns of them. So each sum is far below 2^53, and every step
// is exact in double, in any order.
constexpr int kUnitLanes = 24, kCentroidLanes = 8;
constexpr int padded(int count, int lanes) { return (count + lanes - 1) / lanes * lanes; }
constexpr int kMostColumns = kMaxFeatures * (kMaxHistory + 1);
static_assert(std::int64_t{32768} * 32768 * kMostColumns < std::int64_t{1} << 53);
static_assert(std::int64_t{65536} * 65536 * kMaxHidden < std::int64_t{1} << 53);

// The last value is stored twice, so that its segment has an end too.
std::array<std::int16_t, kSegments + 2> make_table() {
  std::array<std::int16_t, kSegments + 2> table{};
  for (int i = 0; i <= kSegments; ++i) {
    const double z = std::ldexp(i, kSegmentShift - kSumShift) - kTableBound;
    table[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(
        std::llround(std::ldexp(portable_sigmoid(z), kActivationShift)));
  }
  table.back() = table[kSegments];
  return table;
}

const std::array<std::int16_t, kSegments + 2> kTable = make_table();
constexpr std::int32_t kTableEnd = kTableBound << kSumShift;

// `offset` is the distance of z from the beginning of the table, within the table.
std::int16_t interpolated(std::int32_t offset) {
  const auto segment = static_cast<std::size_t>(offset >> kSegmentShift);
  const std::int32_t within = offset & ((1 << kSegmentShift) - 1);
  const std::int32_t step = kTable[segment + 1] - kTable[segment];
  const std::int32_t half = 1 << (kSegmentShift - 1);
  return static_cast<std::int16_t>(kTable[segment] + ((step * within + half) >> kSegmentShift));
}

std::int16_t to_int16(double value) {
  return static_cast<std::int16_t>(std::llround(std::clamp(value, -kInt16Max, kInt16Max)));
}

double row_maximum(const std::vector<double>& values, int row, int columns) {
  const auto begin = values.begin() + std::ptrdiff_t{row} * columns;
  double maximum = 0;
  for (auto it = begin; it != begin + columns; ++it) maximum = std::max(maximum, std::abs(*it));
  return maximum;
}

// sums[u] = sum over i of weights[i][u] * inputs[i], for `units` (a multiple of kUnitLanes).
CGPHASE_CLONES void weighted_sums(const double* weights, const std::int16_t* inputs, int units,
                                  int columns, double* sums) {
  for (int begin = 0; begin < units; begin += kUnitLanes) {
    double block[kUnitLanes] = {};
    for (int i = 0; i < columns; ++i) {
      const double* row = weights + std::ptrdiff_t{i} * units + begin;
      const double input = inputs[i];
#pragma GCC unroll 24
      for (int u = 0; u < kUnitLanes; ++u) block[u] += row[u] * input;
    }
    for (int u = 0; u < kUnitLanes; ++u) sums[begin + u] = block[u];
  }
}

// The table offset of each unit's sigmoid: the sum rounded to kSumShift fractional bits, half up,
// plus the bias. All steps are exact in double.
CGPHASE_CLONES void table_offsets(const double* sums, const double* halves, const double* scales,
                                  const double* biases, int units, std::int32_t* offsets) {
  constexpr double kEnd = kTableEnd;
  for (int u = 0; u < units; ++u) {
    const double z = std::floor((sums[u] + halves[u]) * scales[u]) + biases[u];
    const double low = z < -kEnd ? -kEnd : z;
    const double clamped = low > kEnd ? kEnd : low;
    offsets[u] = static_cast<std::int32_t>(clamped + kEnd);
  }
}

// distances[c] = sum over k of (point[k] - centroids[k][c])^2, for `count` centroids (a multiple of
// kCentroidLanes).
CGPHASE_CLONES void squared_distances(const double* centroids, const std::int16_t* point, int count,
                                      int dimension, double* distances) {
  for (int begin = 0; begin < count; begin += kCentroidLanes) {
    double block[kCentroidLanes] = {};
    for (int k = 0; k < dimension; ++k) {
      const double* row = centroids + std::ptrdiff_t{k} * count + begin;
      const double value = point[k];
#pragma GCC unroll 8
      for (int c = 0; c < kCentroidLanes; ++c) {
        const double difference = value - row[c];
        block[c] += difference * difference;
      }
    }
    for (int c = 0; c < kCentroidLanes; ++c) distances[begin + c] = block[c];
  }
}

}  // namespace

std::int16_t fixed_sigmoid(std::int64_t z) {
  const std::int64_t clamped = std::clamp<std::int64_t>(z, -kTableEnd, kTableEnd);
  return interpolated(static_cast<std::int32_t>(clamped + kTableEnd));
}

std::int16_t quantize_input(double standardised) {
  const double value = std::clamp(standardised * (1 << kInputShift), -kInt16Max, kInt16Max);
  const int whole = static_cast<int>(value);  // towards zero
  const double rest = value - whole;
  return static_cast<std::int16_t>(whole + (rest >= 0.5 ? 1 : 0) - (rest <= -0.5 ? 1 : 0));
}

std::vector<int> weight_shifts(const CrbmParameters& crbm) {
  std::vector<int> shifts;
  for (int k = 0; k < crbm.n_hid; ++k) {
    const double maximum = std::max(row_maximum(crbm.w, k, crbm.n_vis),
                                    row_maximum(crbm.b, k, crbm.n_vis * crbm.n_his));
    int shift = kMaxWeightShift;
    while (shift > kMinWeightShift && std::ldexp(maximum, shift) > kInt16Max) --shift;
    shifts.push_back(shift);
  }
  return shifts;
}

CrbmFixed::CrbmFixed(const CrbmParameters& crbm, const Centroids& centroids)
    : n_hid_(crbm.n_hid),
      window_size_(crbm.n_vis * (crbm.n_his + 1)),
      unit_stride_(padded(n_hid_, kUnitLanes)),
      centroid_count_(centroids.count),
      centroid_stride_(padded(centroid_count_, kCentroidLanes)),
      weight_shift_(weight_shifts(crbm)),
      parents_(centroids.parents) {
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis);
  const auto n_hid = static_cast<std::size_t>(n_hid_);
  const auto units = static_cast<std::size_t>(unit_stride_);
  const std::size_t history = n_vis * static_cast<std::size_t>(crbm.n_his);
  weights_.resize(units * static_cast<std::size_t>(window_size_));
  halves_.resize(units);
  scales_.resize(units);
  biases_.resize(units);
  for (std::size_t k = 0; k < n_hid; ++k) {
    const auto put = [&](std::size_t column, double value) {
      weights_[column * units + k] = to_int16(std::ldexp(value, weight_shift_[k]));
    };
    for (std::size_t i = 0; i < history; ++i) put(i, crbm.b[k * history + i]);
    for (std::size_t i = 0; i < n_vis; ++i) put(history + i, crbm.w[k * n_vis + i]);
    const int shift = kInputShift + weight_shift_[k] - kSumShift;
    halves_[k] = shift > 0 ? std::ldexp(1, shift - 1) : 0;
    scales_[k] = std::ldexp(1, -shift);
    biases_[k] = static_cast<double>(std::llround(std::ldexp(crbm.hidden_bias[k], kSumShift)));
  }
  const auto stride = static_cast<std::size_t>(centroid_stride_);
  centroids_.resize(n_hid * stride);
  for (std::size_t i = 0; i < centroids.values.size(); ++i)
    centroids_[i % n_hid * stride + i / n_hid] =
        to_int16(std::ldexp(centroids.values[i], kActivationShift));
  bound_errors(crbm, centroids);
}

// Per hidden unit k the weighted sum is wrong by at most
//   max|w - w^| sum|x^|  +  sum|w| 2^-13  +  2^-17 (sum) + 2^-17 (bias),
// the sigmoid passes a quarter of it on and adds its own error: eps_k. The margin of a pair (i, j)
// is sum_k (c_jk - c_ik)(c_jk + c_ik - 2 h_k), so it is wrong by at most sum_k 2 eps_k |c_jk -
// c_ik| plus what the rounding of the centroids does. Only sum|x^| depends on the window.
void CrbmFixed::bound_errors(const CrbmParameters& crbm, const Centroids& centroids) {
  const auto n_hid = static_cast<std::size_t>(n_hid_);
  const auto columns = static_cast<std::size_t>(window_size_);
  const std::size_t n_vis = static_cast<std::size_t>(crbm.n_vis), history = columns - n_vis;
  unit_bounds_.resize(n_hid);
  for (std::size_t k = 0; k < n_hid; ++k) {
    double worst = 0, sum = 0;
    for (std::size_t i = 0; i < columns; ++i) {
      const double exact =
          i < history ? crbm.b[k * history + i] : crbm.w[k * n_vis + i - history];
      const double stored = std::ldexp(weight(k, i), -weight_shift_[k]);
      worst = std::max(worst, std::abs(exact - stored));
      sum += std::abs(exact);
    }
    unit_bounds_[k] = {(std::ldexp(sum, -kInputShift - 1) + 0x1p-16) / 4 + kFixedSigmoidError,
                       worst / 4};
  }
  const auto rounded = [&](std::size_t row, std::size_t column) {
    const auto index = column * static_cast<std::size_t>(centroid_stride_) + row;
    return std::ldexp(centroids_[index], -kActivationShift);
  };
  for (std::size_t i = 0; i < static_cast<std::size_t>(centroid_count_); ++i)
    for (std::size_t j = 0; j < i; ++j) {
      double pair_constant = 0, pair_per_input = 0;
      for (std::size_t k = 0; k < n_hid; ++k) {
        const std::size_t a = i * n_hid + k, b = j * n_hid + k;
        const double apart = std::abs(centroids.values[a] - centroids.values[b]);
        const double moved_a = std::abs(centroids.values[a] - rounded(i, k));
        const double moved_b = std::abs(centroids.values[b] - rounded(j, k));
        // |c + c' - 2h| <= 2, and the difference of two rounded centroids moves by both roundings.
        pair_constant += 2 * apart * unit_bounds_[k].constant + (2 + apart) * (moved_a + moved_b);
        pair_per_input += 2 * apart * unit_bounds_[k].per_input;
      }
      bound_constant_ = std::max(bound_constant_, pair_constant);
      bound_per_input_ = std::max(bound_per_input_, pair_per_input);
    }
}

double CrbmFixed::weight(std::size_t unit, std::size_t column) const {
  return weights_[column * static_cast<std::size_t>(unit_stride_) + unit];
}

void CrbmFixed::hidden(std::span<const std::int16_t> window, std::int16_t* activation) const {
  CHECK_INVARIANT(window.size() == static_cast<std::size_t>(window_size_));
  double sums[padded(kMaxHidden, kUnitLanes)];
  std::int32_t offsets[padded(kMaxHidden, kUnitLanes)];
  weighted_sums(weights_.data(), window.data(), unit_stride_, window_size_, sums);
  table_offsets(sums, halves_.data(), scales_.data(), biases_.data(), unit_stride_, offsets);
  for (int k = 0; k < n_hid_; ++k) activation[k] = interpolated(offsets[k]);
}

void CrbmFixed::distances(std::span<const std::int16_t> window, std::int64_t* squared) const {
  std::int16_t activation[kMaxHidden];
  hidden(window, activation);
  double distances[padded(kMaxPhases, kCentroidLanes)];
  squared_distances(centroids_.data(), activation, centroid_stride_, n_hid_, distances);
  for (int c = 0; c < centroid_count_; ++c) squared[c] = static_cast<std::int64_t>(distances[c]);
}

CrbmFixed::Nearest CrbmFixed::nearest(std::span<const std::int16_t> window) const {
  std::int64_t distances[kMaxPhases];
  this->distances(window, distances);
  const std::span<const std::int64_t> all(distances, static_cast<std::size_t>(centroid_count_));
  const CentroidChoice<std::int64_t> choice = choose_centroid(all, parents_);
  return {choice.index, choice.distance, choice.margin};
}

double CrbmFixed::error_bound(std::span<const std::int16_t> window) const {
  static_assert(kInputShift == 12);
  std::int32_t sum = 0;
  for (const std::int16_t value : window) sum += std::abs(std::int32_t{value});
  return bound_constant_ + bound_per_input_ * (sum * 0x1p-12);
}

void snap_to_grid(CrbmParameters& crbm) {
  const std::vector<int> shifts = weight_shifts(crbm);
  const auto snap = [](double value, int shift) {
    return std::ldexp(static_cast<double>(std::llround(std::ldexp(value, shift))), -shift);
  };
  for (std::size_t k = 0; k < shifts.size(); ++k) {
    const std::size_t n_vis = static_cast<std::size_t>(crbm.n_vis);
    const std::size_t history = n_vis * static_cast<std::size_t>(crbm.n_his);
    for (std::size_t i = 0; i < n_vis; ++i)
      crbm.w[k * n_vis + i] = snap(crbm.w[k * n_vis + i], shifts[k]);
    for (std::size_t i = 0; i < history; ++i)
      crbm.b[k * history + i] = snap(crbm.b[k * history + i], shifts[k]);
    crbm.hidden_bias[k] = snap(crbm.hidden_bias[k], kSumShift);
  }
}

void snap_to_grid(Centroids& centroids) {
  for (double& value : centroids.values)
    value = std::ldexp(to_int16(std::ldexp(value, kActivationShift)), -kActivationShift);
}

}  // namespace cgphase
