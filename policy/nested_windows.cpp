#include "policy/nested_windows.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cgphase {
namespace {

static_assert(NestedWindows::kLongest <= std::numeric_limits<std::uint16_t>::max());

// Not below `value`: a limit that is made of it must hold it.
float rounded_up(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) >= value) return nearest;
  return std::nextafter(nearest, std::numeric_limits<float>::infinity());
}

constexpr std::size_t length_of(std::size_t window) { return NestedWindows::kShortest << window; }

// Room for one more, and never for more than there can be: there are many of these.
template <class Value>
void make_room(std::vector<Value>& values, std::size_t most) {
  if (values.size() == values.capacity())
    values.reserve(std::clamp(2 * values.size(), NestedWindows::kShortest, most));
}

}  // namespace

double NestedWindows::samples(std::size_t window) const {
  return static_cast<double>(windows_[window].rising.size());
}

double NestedWindows::mean(std::size_t window) const {
  return windows_[window].sum / samples(window);
}

double NestedWindows::deviation(std::size_t window) const {
  const double middle = mean(window);
  return std::sqrt(std::max(0.0, windows_[window].squares / samples(window) - middle * middle));
}

double NestedWindows::top(std::size_t window, double risk) const {
  const auto left_out = static_cast<std::size_t>(samples(window) * risk);
  const std::vector<std::uint16_t>& rising = windows_[window].rising;
  return static_cast<double>(newest_[rising[rising.size() - 1 - left_out]]);
}

// What is added and taken away again leaves its rounding: so that this does not add up for ever,
// each window is summed up anew as often as all of its samples have changed.
void NestedWindows::sum_anew(std::size_t window) {
  Window& one = windows_[window];
  one.sum = one.squares = 0;
  for (const std::uint16_t place : one.rising) {
    const auto value = static_cast<double>(newest_[place]);
    one.sum += value;
    one.squares += value * value;
  }
}

// Once the window is full, instead of the oldest: those between the two places move by one.
void NestedWindows::put_in_order(std::size_t window, float sample) {
  std::vector<std::uint16_t>& rising = windows_[window].rising;
  const auto place = static_cast<std::uint16_t>(count_ % kLongest);
  const auto value_of = [this](std::uint16_t at) { return newest_[at]; };
  if (count_ < length_of(window)) {
    make_room(rising, length_of(window));
    rising.insert(std::ranges::upper_bound(rising, sample, {}, value_of), place);
    return;
  }
  const float oldest = newest_[(count_ - length_of(window)) % kLongest];
  const auto to = std::ranges::upper_bound(rising, sample, {}, value_of);
  const auto from = std::ranges::lower_bound(rising, oldest, {}, value_of);
  if (from < to) {
    std::move(from + 1, to, from);
    *(to - 1) = place;
  } else {
    std::move_backward(to, from, from + 1);
    *to = place;
  }
}

// A window begins as what the one half as long holds when that is full.
void NestedWindows::begin_windows() {
  for (std::size_t i = 1; i < kWindows; ++i)
    if (count_ == length_of(i - 1)) windows_[i] = windows_[i - 1];
}

void NestedWindows::add(double value) {
  begin_windows();
  const float sample = rounded_up(value);
  const auto added = static_cast<double>(sample);
  for (std::size_t i = 0; i < kWindows; ++i) {
    if (i > 0 && count_ < length_of(i - 1)) break;  // a shorter one holds all that there is
    const bool full = count_ >= length_of(i);
    const auto left =
        full ? static_cast<double>(newest_[(count_ - length_of(i)) % kLongest]) : 0.0;
    windows_[i].sum += full ? added - left : added;
    windows_[i].squares += full ? added * added - left * left : added * added;
    put_in_order(i, sample);
  }
  make_room(newest_, kLongest);
  if (newest_.size() < kLongest) newest_.push_back(sample);
  else newest_[count_ % kLongest] = sample;
  for (std::size_t i = 0; i < kWindows; ++i)
    if (count_ >= length_of(i) && count_ % length_of(i) == 0) sum_anew(i);
  count_ += 1;
}

std::size_t NestedWindows::windows() const {
  if (count_ == 0) return 0;
  std::size_t windows = 1;
  while (windows < kWindows && count_ > length_of(windows - 1)) windows += 1;
  return windows;
}

}  // namespace cgphase
