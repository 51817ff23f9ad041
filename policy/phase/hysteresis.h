// A limit with hysteresis: it rises at once and falls only if that is worth a write. A value type.
#pragma once

#include <array>
#include <cstddef>
#include <optional>

namespace cgphase {

class Hysteresis {
 public:
  // `steady`: demand drifts, so that the next raise soon follows. `risk`: the accepted share of
  // samples above the limit. It defines the cost of such a sample as 1 / risk samples of the limit
  // (the critical ratio of the newsvendor problem).
  Hysteresis(bool steady, double risk);

  // Called for each sample. The limit must not be below `next` now. `coming` (at least `next`) is
  // the value that the limit would be set to.
  void update(double next, double coming);
  std::optional<double> level() const { return level_; }

 private:
  static constexpr std::size_t kMostHoldSamples = 10;  // the same wait as the control `hold`

  void raise(double next, double coming);
  double recent() const;  // the highest `coming` of the last hold_samples_

  bool steady_;
  double lower_cost_;         // in samples of the limit
  std::size_t hold_samples_;  // between a change and a lowering
  std::optional<double> level_;
  std::array<double, kMostHoldSamples> comings_{};
  std::size_t samples_ = 0, since_change_ = 0, since_raise_ = 0;
  double wasted_ = 0;  // savings missed since the last change, in samples of the limit
};

}  // namespace cgphase
