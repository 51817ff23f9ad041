#include "lab/replay/oracle.h"

#include <cstddef>
#include <deque>

namespace cgphase {

std::vector<std::optional<double>> coming_maximum(std::span<const double> seconds,
                                                  std::span<const std::optional<double>> values,
                                                  double window_seconds) {
  std::vector<std::optional<double>> maximum(values.size());
  if (values.empty()) return maximum;
  maximum.back() = values.back();
  std::deque<std::size_t> ahead;    // nearest first; values rise towards the back
  for (std::size_t i = values.size() - 1; i > 0; --i) {
    if (values[i]) {
      while (!ahead.empty() && *values[ahead.front()] <= *values[i]) ahead.pop_front();
      ahead.push_front(i);
    }
    const double end = seconds[i - 1] + window_seconds;
    while (ahead.size() > 1 && seconds[ahead.back()] > end) ahead.pop_back();
    if (!ahead.empty()) maximum[i - 1] = values[ahead.back()];
  }
  return maximum;
}

}  // namespace cgphase
