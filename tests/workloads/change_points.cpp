#include "tests/workloads/change_points.h"

#include <algorithm>

#include "model/scalar_math.h"

namespace cgphase::workloads {
namespace {

class Sums {
 public:
  Sums(std::span<const double> points, std::size_t dimension)
      : dimension_(dimension), sum_(points.size() + dimension, 0) {
    for (std::size_t i = 0; i < points.size(); ++i) sum_[i + dimension] = sum_[i] + points[i];
  }
  // How much a cut of begin..end at `cut` lowers the sum of squared distances to the means: n1 n2 /
  // (n1 + n2) times the squared distance of the two means.
  double gain(std::size_t begin, std::size_t cut, std::size_t end) const {
    const auto left = static_cast<double>(cut - begin), right = static_cast<double>(end - cut);
    double squared = 0;
    for (std::size_t d = 0; d < dimension_; ++d) {
      const double away = (at(cut, d) - at(begin, d)) / left - (at(end, d) - at(cut, d)) / right;
      squared += away * away;
    }
    return squared * left * right / (left + right);
  }

 private:
  double at(std::size_t point, std::size_t d) const { return sum_[point * dimension_ + d]; }
  std::size_t dimension_;
  std::vector<double> sum_;  // the sum of all earlier points
};

void cut(const Sums& sums, std::size_t begin, std::size_t end, double penalty,
         std::vector<std::size_t>& starts) {
  double most = penalty;
  std::size_t best = begin;
  for (std::size_t i = begin + 1; i < end; ++i)
    if (const double gain = sums.gain(begin, i, end); gain > most) most = gain, best = i;
  if (best == begin) return;
  starts.push_back(best);
  cut(sums, begin, best, penalty, starts);
  cut(sums, best, end, penalty, starts);
}

}  // namespace

std::vector<std::size_t> segments(std::span<const double> points, std::size_t dimension,
                                  double penalty) {
  std::vector<std::size_t> starts{0};
  cut(Sums(points, dimension), 0, points.size() / dimension, penalty, starts);
  std::ranges::sort(starts);
  return starts;
}

double segment_penalty(std::span<const double> points, std::size_t dimension) {
  constexpr double kLeastVariance = 0.01;
  constexpr double kMedianOfChiSquared = 0.454936;  // one degree of freedom
  const std::size_t count = points.size() / dimension;
  double variance = 0;
  for (std::size_t d = 0; d < dimension && count > 1; ++d) {
    std::vector<double> squares;
    for (std::size_t i = dimension + d; i < points.size(); i += dimension)
      squares.push_back((points[i] - points[i - dimension]) * (points[i] - points[i - dimension]));
    const auto middle = squares.begin() + static_cast<std::ptrdiff_t>(squares.size() / 2);
    std::ranges::nth_element(squares, middle);
    variance += *middle / (2 * kMedianOfChiSquared) / static_cast<double>(dimension);
  }
  return std::max(variance, kLeastVariance) * static_cast<double>(dimension + 1) *
         portable_log(static_cast<double>(count));
}

}  // namespace cgphase::workloads
