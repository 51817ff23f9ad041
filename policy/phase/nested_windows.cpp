#include "policy/phase/nested_windows.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "base/check.h"

namespace cgphase {
namespace {

// The result is at least `value`, because a limit made from it must not be lower.
float rounded_up(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) >= value) return nearest;
  return std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

constexpr std::size_t length_of(std::size_t window) { return NestedWindows::kShortest << window; }

}  // namespace

std::size_t NestedWindows::held(std::size_t window) const {
  return std::min(count_, length_of(window));
}

double NestedWindows::mean(std::size_t window) const {
  CHECK_INVARIANT(moments_);
  return windows_[window].sum / samples(window);
}

double NestedWindows::deviation(std::size_t window) const {
  const double middle = mean(window);
  return std::sqrt(std::max(0.0, windows_[window].squares / samples(window) - middle * middle));
}

template <class Look>
void NestedWindows::each_piece(std::size_t window, Look look) const {
  const std::size_t count = held(window), end = (count_ - 1) % kLongest + 1;
  const std::size_t newer = std::min(count, end);
  look(newest_.data() + end - newer, newer);
  if (newer < count) look(newest_.data() + newest_.size() - (count - newer), count - newer);
}

// Collects the samples with ranks around the answer after `left_out`.
void NestedWindows::find_near(std::size_t window, std::size_t left_out) {
  std::array<float, kLongest> samples;
  auto end = samples.begin();
  each_piece(window, [&](const float* piece, std::size_t n) { end = std::copy_n(piece, n, end); });
  const std::size_t count = held(window), many = std::min(kNear, count);
  const std::size_t above = std::min(left_out - std::min(left_out, kNear / 2), count - many);
  const auto first = samples.begin() + static_cast<std::ptrdiff_t>(above);
  const auto last = first + static_cast<std::ptrdiff_t>(many);
  const std::greater<> falling;
  if (above > 0) std::nth_element(samples.begin(), first, end, falling);
  if (last != end) std::nth_element(first, last, end, falling);
  std::sort(first, last, falling);
  Window& one = windows_[window];
  std::copy(first, last, one.near.begin());
  one.near_count = static_cast<std::uint8_t>(many);
  one.above = static_cast<std::uint16_t>(above);
}

double NestedWindows::top(std::size_t window, double risk) {
  Window& one = windows_[window];
  const auto left_out = static_cast<std::size_t>(samples(window) * risk);
  if (left_out < one.above || left_out >= std::size_t{one.above} + one.near_count)
    find_near(window, left_out);
  one.left_out = static_cast<std::uint16_t>(left_out);
  return static_cast<double>(one.near[left_out - one.above]);
}

// For equal samples it does not matter which of them are in `near`.
void NestedWindows::enter(Window& window, float sample) {
  if (window.near_count == 0) return;
  const auto begin = window.near.begin(), end = begin + window.near_count;
  if (sample > *begin && window.above > 0) {
    window.above += 1;
    return;
  }
  if (sample <= *(end - 1)) return;
  const auto place = std::upper_bound(begin, end, sample, std::greater<>());
  if (window.near_count < kNear) {
    std::move_backward(place, end, end + 1);
    *place = sample;
    window.near_count += 1;
  } else if (window.left_out < window.above + kNear / 2) {  // the last one is dropped
    std::move_backward(place, end - 1, end);
    *place = sample;
  } else if (place == begin) {
    window.above += 1;
  } else {
    std::move(begin + 1, place, begin);
    *(place - 1) = sample;
    window.above += 1;
  }
}

void NestedWindows::leave(Window& window, float sample) {
  if (window.near_count == 0) return;
  if (sample > window.near.front()) {
    window.above -= 1;
    return;
  }
  const auto end = window.near.begin() + window.near_count;
  if (sample < *(end - 1)) return;
  const auto place = std::lower_bound(window.near.begin(), end, sample, std::greater<>());
  std::move(place + 1, end, place);
  window.near_count -= 1;
}

// Adding and subtracting leaves rounding errors. To bound them, each window is summed anew after
// all of its samples have changed.
void NestedWindows::sum_anew(std::size_t window) {
  Window& one = windows_[window];
  one.sum = one.squares = 0;
  each_piece(window, [&](const float* piece, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const auto value = static_cast<double>(piece[i]);
      one.sum += value;
      one.squares += value * value;
    }
  });
}

void NestedWindows::add_moments(Window& window, double added, double left) {
  window.sum += added - left;
  window.squares += added * added - left * left;
}

// A window starts with the contents of the one half as long when that is full.
void NestedWindows::begin_windows() {
  if (count_ % kShortest != 0 || windows_.size() == kWindows) return;
  if (!windows_.empty() && count_ != length_of(windows_.size() - 1)) return;
  windows_.reserve(windows_.size() + 1);  // exactly as many as needed: each container has several
  if (windows_.empty()) windows_.emplace_back();
  else windows_.push_back(windows_.back());
}

void NestedWindows::add(double value) {
  begin_windows();
  const float sample = rounded_up(value);
  for (std::size_t i = 0; i < windows_.size(); ++i) {
    Window& one = windows_[i];
    const bool full = count_ >= length_of(i);
    const float oldest = full ? newest_[(count_ - length_of(i)) % kLongest] : 0.0F;
    if (moments_) add_moments(one, static_cast<double>(sample), static_cast<double>(oldest));
    enter(one, sample);
    if (full) leave(one, oldest);
  }
  if (newest_.size() == newest_.capacity() && newest_.size() < kLongest)
    newest_.reserve(std::clamp(2 * newest_.size(), kShortest, kLongest));
  if (newest_.size() < kLongest) newest_.push_back(sample);
  else newest_[count_ % kLongest] = sample;
  count_ += 1;
  if (!moments_ || count_ % kShortest != 1) return;
  for (std::size_t i = 0; i < kWindows; ++i)
    if (count_ > length_of(i) && count_ % length_of(i) == 1) sum_anew(i);
}

std::size_t NestedWindows::windows() const {
  if (count_ == 0) return 0;
  std::size_t windows = 1;
  while (windows < kWindows && count_ > length_of(windows - 1)) windows += 1;
  return windows;
}

}  // namespace cgphase
