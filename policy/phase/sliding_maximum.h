// The maximum of a sliding window, in O(1) amortised per value.
#pragma once

#include <deque>
#include <optional>

namespace cgphase {

class SlidingMaximum {
 public:
  // Keys must ascend.
  void add(double key, double value) {
    while (!falling_.empty() && falling_.back().value <= value) falling_.pop_back();
    falling_.push_back({key, value});
  }
  // Drops values with a key up to `key`.
  void drop_until(double key) {
    while (!falling_.empty() && falling_.front().key <= key) falling_.pop_front();
  }
  std::optional<double> value() const {
    return falling_.empty() ? std::nullopt : std::optional(falling_.front().value);
  }

 private:
  struct Entry {
    double key, value;
  };
  std::deque<Entry> falling_;  // values that no later value reaches
};

}  // namespace cgphase
