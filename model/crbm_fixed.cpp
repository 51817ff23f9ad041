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

// Rows are filled up with zeros to whole vectors of the widest common processors: what is left over
// at the end of a row costs more, one by one, than all the rest.
constexpr int kLanes = 16;
constexpr int padded(int columns) { return (columns + kLanes - 1) / kLanes * kLanes; }
constexpr int kMostColumns = padded(kMaxFeatures * (kMaxHistory + 1));

std::array<std::int16_t, kSegments + 1> make_table() {
  std::array<std::int16_t, kSegments + 1> table{};
  for (int i = 0; i <= kSegments; ++i) {
    const double z = std::ldexp(i, kSegmentShift - kSumShift) - kTableBound;
    table[static_cast<std::size_t>(i)] = static_cast<std::int16_t>(
        std::llround(std::ldexp(portable_sigmoid(z), kActivationShift)));
  }
  return table;
}

const std::array<std::int16_t, kSegments + 1> kTable = make_table();

std::int64_t round_shift(std::int64_t value, int shift) {
  if (shift <= 0) return value << -shift;
  return (value + (std::int64_t{1} << (shift - 1))) >> shift;
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

// 32767 * 255 * 256 is below 2^31: so many products add up in an int32, which the processors
// multiply and add in one instruction.
constexpr int kProductsInInt32 = 256;
static_assert(std::int64_t{32767} * 255 * kProductsInInt32 <= INT32_MAX);

CGPHASE_CLONES void weighted_sums(const std::int16_t* high, const std::int16_t* low,
                                  const std::int16_t* window, int rows, int columns,
                                  std::int64_t* sums) {
  columns = columns / kLanes * kLanes;  // tells the compiler that nothing is left over
  for (int row = 0; row < rows; ++row) {
    std::int64_t sum = 0;
    for (int begin = 0; begin < columns; begin += kProductsInInt32) {
      const int end = std::min(begin + kProductsInInt32, columns);
      std::int32_t high_sum = 0, low_sum = 0;
      for (int i = begin; i < end; ++i) {
        high_sum += std::int32_t{high[i]} * window[i];
        low_sum += std::int32_t{low[i]} * window[i];
      }
      sum += std::int64_t{high_sum} * 256 + low_sum;
    }
    sums[row] = sum;
    high += columns;
    low += columns;
  }
}

CGPHASE_CLONES void squared_distances(const std::int16_t* centroids, const std::int16_t* point,
                                      int rows, int columns, std::int64_t* distances) {
  columns = columns / kLanes * kLanes;
  for (int row = 0; row < rows; ++row) {
    const std::int16_t* centroid = centroids + std::ptrdiff_t{row} * columns;
    std::int64_t sum = 0;
    for (int i = 0; i < columns; ++i) {
      const std::int32_t difference = std::int32_t{point[i]} - centroid[i];
      sum += difference * difference;
    }
    distances[row] = sum;
  }
}

}  // namespace

std::int16_t fixed_sigmoid(std::int64_t z) {
  constexpr std::int64_t kLimit = std::int64_t{kTableBound} << kSumShift;
  if (z <= -kLimit) return kTable.front();
  if (z >= kLimit) return kTable.back();
  const std::int64_t offset = z + kLimit;
  const auto segment = static_cast<std::size_t>(offset >> kSegmentShift);
  const std::int64_t within = offset & ((1 << kSegmentShift) - 1);
  const std::int64_t step = std::int64_t{kTable[segment + 1]} - kTable[segment];
  return static_cast<std::int16_t>(kTable[segment] + round_shift(step * within, kSegmentShift));
}

std::int16_t quantize_input(double standardised) {
  return to_int16(standardised * (1 << kInputShift));
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
      window_stride_(padded(window_size_)),
      hidden_stride_(padded(n_hid_)),
      centroid_count_(centroids.count),
      weight_shift_(weight_shifts(crbm)),
      parents_(centroids.parents) {
  const auto add_weight = [&](double value, int shift) {
    const std::int16_t whole = to_int16(std::ldexp(value, shift));
    // An arithmetic shift: low lies in 0..255.
    high_.push_back(static_cast<std::int16_t>(whole >> 8));
    low_.push_back(static_cast<std::int16_t>(whole & 0xFF));
  };
  const auto n_vis = static_cast<std::size_t>(crbm.n_vis);
  const std::size_t history = n_vis * static_cast<std::size_t>(crbm.n_his);
  for (std::size_t k = 0; k < weight_shift_.size(); ++k) {
    for (std::size_t i = 0; i < history; ++i)
      add_weight(crbm.b[k * history + i], weight_shift_[k]);
    for (std::size_t i = 0; i < n_vis; ++i) add_weight(crbm.w[k * n_vis + i], weight_shift_[k]);
    high_.resize((k + 1) * static_cast<std::size_t>(window_stride_));
    low_.resize(high_.size());
    bias_.push_back(std::llround(std::ldexp(crbm.hidden_bias[k], kSumShift)));
  }
  const auto n_hid = static_cast<std::size_t>(n_hid_);
  const auto hidden_stride = static_cast<std::size_t>(hidden_stride_);
  centroids_.resize(static_cast<std::size_t>(centroid_count_) * hidden_stride);
  for (std::size_t i = 0; i < centroids.values.size(); ++i)
    centroids_[i / n_hid * hidden_stride + i % n_hid] =
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
      const double held = std::ldexp(weight(k, i), -weight_shift_[k]);
      worst = std::max(worst, std::abs(exact - held));
      sum += std::abs(exact);
    }
    unit_bounds_[k] = {(std::ldexp(sum, -kInputShift - 1) + 0x1p-16) / 4 + kFixedSigmoidError,
                       worst / 4};
  }
  const auto rounded = [&](std::size_t row, std::size_t column) {
    const auto index = row * static_cast<std::size_t>(hidden_stride_) + column;
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

std::int16_t CrbmFixed::weight(std::size_t row, std::size_t column) const {
  const std::size_t index = row * static_cast<std::size_t>(window_stride_) + column;
  return static_cast<std::int16_t>(high_[index] * 256 + low_[index]);
}

void CrbmFixed::hidden(std::span<const std::int16_t> window, std::int16_t* activation) const {
  CHECK_INVARIANT(window.size() == static_cast<std::size_t>(window_size_));
  std::int64_t sums[kMaxHidden];
  std::int16_t whole[kMostColumns];
  std::fill(std::copy(window.begin(), window.end(), whole), whole + window_stride_, 0);
  weighted_sums(high_.data(), low_.data(), whole, n_hid_, window_stride_, sums);
  for (int k = 0; k < n_hid_; ++k) {
    const auto unit = static_cast<std::size_t>(k);
    const int shift = kInputShift + weight_shift_[unit] - kSumShift;
    activation[k] = fixed_sigmoid(round_shift(sums[k], shift) + bias_[unit]);
  }
}

void CrbmFixed::distances(std::span<const std::int16_t> window, std::int64_t* squared) const {
  std::int16_t activation[padded(kMaxHidden)];
  hidden(window, activation);
  std::fill(activation + n_hid_, activation + hidden_stride_, 0);
  squared_distances(centroids_.data(), activation, centroid_count_, hidden_stride_, squared);
}

CrbmFixed::Nearest CrbmFixed::nearest(std::span<const std::int16_t> window) const {
  std::int64_t distances[kMaxPhases];
  this->distances(window, distances);
  if (!parents_.empty()) {
    const std::span<const std::int64_t> all(distances, static_cast<std::size_t>(centroid_count_));
    const CentroidChoice<std::int64_t> choice = choose_centroid(all, parents_);
    return {choice.index, choice.distance, choice.margin};
  }
  const auto best = std::min_element(distances, distances + centroid_count_);
  std::int64_t second = std::numeric_limits<std::int64_t>::max();
  for (const std::int64_t* it = distances; it != distances + centroid_count_; ++it)
    if (it != best) second = std::min(second, *it);
  const std::int64_t margin = centroid_count_ > 1 ? second - *best : 0;
  return {static_cast<int>(best - distances), *best, margin};
}

double CrbmFixed::error_bound(std::span<const std::int16_t> window) const {
  std::int32_t sum = 0;
  for (const std::int16_t value : window) sum += std::abs(std::int32_t{value});
  return bound_constant_ + bound_per_input_ * std::ldexp(sum, -kInputShift);
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
