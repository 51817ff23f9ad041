#include "policy/baselines/segment_policy.h"

#include <fmt/format.h>

#include <algorithm>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

constexpr double kSelectiveRaise = 2, kLastRaise = 1.2;

using Predict = MemorySegments (*)(std::span<const MemoryCourse* const> runs, std::size_t count);

Result<std::unique_ptr<Policy>> make(const PolicyArgs& making, Predict predict,
                                     SegmentPolicy::Retry retry) {
  const auto& courses = making.environment.earlier_courses;
  if (!courses)
    return failure(ErrorKind::invalid,
                   fmt::format("policy \"{}\" must know the courses of earlier runs, which only "
                               "cgphase replay does",
                               making.name));
  std::vector<const MemoryCourse*> runs;
  for (const auto& course : *courses)
    if (!course->seconds.empty()) runs.push_back(course.get());
  const auto count = static_cast<std::size_t>(making.values.count("segments"));
  return std::make_unique<SegmentPolicy>(predict(runs, count), retry);
}

}  // namespace

SegmentPolicy::SegmentPolicy(MemorySegments predicted, Retry retry)
    : segments_(std::move(predicted)), retry_(retry) {
  // A correction is a factor, so a peak of 0 would stay 0.
  for (MemorySegment& segment : segments_) segment.peak_bytes = std::max(segment.peak_bytes, 1.0);
}

std::size_t SegmentPolicy::segment_at(double seconds) const {
  const auto later =
      std::ranges::upper_bound(segments_, seconds, {}, &MemorySegment::start_seconds);
  return static_cast<std::size_t>(std::max<std::ptrdiff_t>(later - segments_.begin(), 1)) - 1;
}

void SegmentPolicy::correct(double now) {
  const std::size_t failed = segment_at(now);
  if (retry_ == Retry::selective) {
    segments_[failed].peak_bytes *= kSelectiveRaise;
  } else if (failed + 1 == segments_.size()) {
    segments_[failed].peak_bytes *= kLastRaise;
  } else {
    const double factor = now / segments_[failed + 1].start_seconds;
    for (MemorySegment& segment : segments_) segment.start_seconds *= factor;
    segments_[failed + 1].start_seconds = now;  // whatever rounding says
  }
}

void SegmentPolicy::observe(const Observation& observation) {
  const double time = seconds_at(observation);
  if (!began_) began_ = time;
  const double now = time - *began_;
  next_ = now + observation.interval_seconds;
  count_ += 1;
  if (segments_.empty() || !observation.memory_need_bytes) return;
  while (*observation.memory_need_bytes > segments_[segment_at(now)].peak_bytes) correct(now);
}

Recommendation SegmentPolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  allocation.reason = Reason::window_statistics;
  if (segments_.empty()) return allocation;
  allocation.memory = capped_bytes(segments_[segment_at(next_)].peak_bytes, original, host);
  allocation.memory_sample_count = count_;
  return allocation;
}

Result<std::unique_ptr<Policy>> make_k_segments(const PolicyArgs& making) {
  return make(making, predict_k_segments, SegmentPolicy::Retry::selective);
}

Result<std::unique_ptr<Policy>> make_ks_plus(const PolicyArgs& making) {
  return make(making, predict_ks_plus, SegmentPolicy::Retry::ks_plus);
}

}  // namespace cgphase
