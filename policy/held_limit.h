// A limit that goes up at once and down only when that is worth a write. A value type.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace cgphase {

class HeldLimit {
 public:
  // `steady`: demand drifts, so that a raise is soon followed by the next one.
  explicit HeldLimit(bool steady) : steady_(steady) {}

  // At each sample: `next`, what the limit must not be below now, and `coming`, what it would be
  // set to (at least `next`).
  void update(double next, double coming);
  std::optional<double> level() const { return level_; }

 private:
  static constexpr std::size_t kHoldSamples = 10;  // the control `hold` waits as long

  void raise(double next, double coming);
  double recent() const;  // the highest `coming` of the last kHoldSamples

  bool steady_;
  std::optional<double> level_;
  std::array<double, kHoldSamples> comings_{};
  std::size_t samples_ = 0, since_change_ = 0, since_raise_ = 0;
  double wasted_ = 0;  // what recent() would have saved since the last change, in samples of limit
};

}  // namespace cgphase
