#include "policy/nested_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cgphase {
namespace {

// Not below `value`: a limit that is made of it must hold it.
float rounded_up(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) >= value) return nearest;
  return std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

}  // namespace

void NestedWindows::Window::push(float value) {
  sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), value), value);
  sum_ += static_cast<double>(value);
  squares_ += static_cast<double>(value) * static_cast<double>(value);
}

// The samples between the place of the one and that of the other move by one.
void NestedWindows::Window::replace(float oldest, float value) {
  sum_ += static_cast<double>(value) - static_cast<double>(oldest);
  squares_ += static_cast<double>(value) * static_cast<double>(value) -
              static_cast<double>(oldest) * static_cast<double>(oldest);
  const auto from = std::lower_bound(sorted_.begin(), sorted_.end(), oldest);
  const auto to = std::lower_bound(sorted_.begin(), sorted_.end(), value);
  if (from < to) {
    std::move(from + 1, to, from);
    *(to - 1) = value;
  } else {
    std::move_backward(to, from, from + 1);
    *to = value;
  }
}

double NestedWindows::Window::mean() const { return sum_ / samples(); }

double NestedWindows::Window::deviation() const {
  return std::sqrt(std::max(0.0, squares_ / samples() - mean() * mean()));
}

double NestedWindows::Window::top(double risk) const {
  const auto left_out = static_cast<std::size_t>(samples() * risk);
  return static_cast<double>(sorted_[sorted_.size() - 1 - left_out]);
}

// What is added and taken away again leaves its rounding: so that this does not add up for ever,
// each window is summed up anew as often as all of its samples have changed.
void NestedWindows::sum_anew(std::size_t index) {
  Window& window = windows_[index];
  window.sum_ = window.squares_ = 0;
  for (const float sample : window.sorted_) {
    const double value = static_cast<double>(sample);
    window.sum_ += value;
    window.squares_ += value * value;
  }
}

// A window begins as what the one half as long holds when that is full.
void NestedWindows::begin_windows() {
  for (std::size_t i = 1; i < kWindows; ++i)
    if (count_ == kShortest << (i - 1)) windows_[i] = windows_[i - 1];
}

void NestedWindows::add(double value) {
  begin_windows();
  const float sample = rounded_up(value);
  for (std::size_t i = 0; i < kWindows; ++i) {
    const std::size_t length = kShortest << i;
    if (i > 0 && count_ < length / 2) break;  // a shorter one holds all that there is
    if (count_ < length) {
      windows_[i].push(sample);
      continue;
    }
    windows_[i].replace(newest_[(count_ - length) % kLongest], sample);
    if (count_ % length == 0) sum_anew(i);
  }
  if (newest_.size() < kLongest) newest_.push_back(sample);
  else newest_[count_ % kLongest] = sample;
  count_ += 1;
}

std::size_t NestedWindows::windows() const {
  if (count_ == 0) return 0;
  std::size_t windows = 1;
  while (windows < kWindows && count_ > kShortest << (windows - 1)) windows += 1;
  return windows;
}

}  // namespace cgphase
