// A limit that goes up at once and down only when that is worth a write. A value type.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace cgphase {

class HeldLimit {
 public:
  // `steady`: demand drifts, so that a raise is soon followed by the next one. `risk`: share of
  // the samples that may be over, which tells what one that is costs: whoever accepts that share
  // takes it for worth 1 / risk samples of the limit (the critical ratio of the newsvendor).
  HeldLimit(bool steady, double risk);

  // At each sample: `next`, what the limit must not be below now, and `coming`, what it would be
  // set to (at least `next`).
  void update(double next, double coming);
  std::optional<double> level() const { return level_; }

 private:
  static constexpr std::size_t kMostHoldSamples = 10;  // the control `hold` waits as long

  void raise(double next, double coming);
  double recent() const;  // the highest `coming` of the last hold_samples_

  bool steady_;
  double lower_cost_;         // of a lowering, in samples of the limit
  std::size_t hold_samples_;  // between a change and a lowering
  std::optional<double> level_;
  std::array<double, kMostHoldSamples> comings_{};
  std::size_t samples_ = 0, since_change_ = 0, since_raise_ = 0;
  double wasted_ = 0;  // what recent() would have saved since the last change, in samples of limit
};

}  // namespace cgphase
