// `k-segments` and `ks-plus` predict the memory need of a run over time from the courses of earlier
// runs of the same service (memory_segments.h), and allocate the predicted segments one after the
// other. They ignore CPU, and have no opinion before the first earlier run. Only replay has the
// courses.
//
// In the papers a run that needs more than its segment is killed and started anew with a corrected
// prediction. Here the correction comes with the next sample, and the run goes on. k-Segments
// doubles the segment (selective retry). KS+ moves the next segment to this moment and scales the
// other starts alike; it raises a last segment by 20 %.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>

#include "policy/baselines/memory_segments.h"
#include "policy/policy_entry.h"

namespace cgphase {

inline constexpr std::array kSegmentParameters = {PolicyParameter{"segments", 4, 1, 64, true}};

class SegmentPolicy final : public Policy {
 public:
  enum class Retry : std::uint8_t { selective, ks_plus };
  SegmentPolicy(MemorySegments predicted, Retry retry);

  void observe(const Observation& observation) override;
  Recommendation allocate(const Limits& original, const HostCapacity& host) const override;

 private:
  std::size_t segment_at(double seconds) const;  // since the start
  void correct(double now);

  MemorySegments segments_;
  Retry retry_;
  std::optional<double> began_;
  double next_ = 0;  // seconds since the start, at the next sample
  double count_ = 0;
};

// Errors: invalid, if the surroundings have no courses of earlier runs.
Result<std::unique_ptr<Policy>> make_k_segments(const PolicyArgs& making);
Result<std::unique_ptr<Policy>> make_ks_plus(const PolicyArgs& making);

}  // namespace cgphase
