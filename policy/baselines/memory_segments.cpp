#include "policy/baselines/memory_segments.h"

#include <algorithm>

namespace cgphase {
namespace {

constexpr double kEarlier = 0.85, kHigher = 1.1;  // KS+, section on prediction

// Need wasted by giving the earlier of two neighbours the peak of the later one.
double waste_of_merging(const MemorySegment& earlier, const MemorySegment& later) {
  return (later.peak_bytes - earlier.peak_bytes) * (later.start_seconds - earlier.start_seconds);
}

void merge_cheapest(MemorySegments& segments) {
  std::size_t cheapest = 0;
  for (std::size_t i = 1; i + 1 < segments.size(); ++i)
    if (waste_of_merging(segments[i], segments[i + 1]) <
        waste_of_merging(segments[cheapest], segments[cheapest + 1]))
      cheapest = i;
  segments[cheapest].peak_bytes = segments[cheapest + 1].peak_bytes;
  segments.erase(segments.begin() + static_cast<std::ptrdiff_t>(cheapest) + 1);
}

}  // namespace

MemorySegments equal_segments(const MemoryCourse& course, std::size_t count) {
  const double length = course.seconds.back() / static_cast<double>(count);
  MemorySegments segments(count);
  for (std::size_t i = 0; i < count; ++i)
    segments[i].start_seconds = length * static_cast<double>(i);
  for (std::size_t i = 0; i < course.seconds.size(); ++i) {
    const auto later = std::ranges::upper_bound(segments, course.seconds[i], {},
                                                &MemorySegment::start_seconds);
    double& peak = std::prev(later)->peak_bytes;
    peak = std::max(peak, course.bytes[i]);
  }
  return segments;
}

MemorySegments rising_segments(const MemoryCourse& course, std::size_t count) {
  MemorySegments segments = {{0, course.bytes.front()}};
  for (std::size_t i = 1; i < course.seconds.size(); ++i)
    if (course.bytes[i] > segments.back().peak_bytes)
      segments.push_back({course.seconds[i], course.bytes[i]});
  while (segments.size() > count) merge_cheapest(segments);
  return segments;
}

MemorySegments predict_k_segments(std::span<const MemoryCourse* const> runs, std::size_t count) {
  MemorySegments predicted;
  for (const MemoryCourse* run : runs) {
    const MemorySegments segments = equal_segments(*run, count);
    if (predicted.empty()) predicted = segments;
    for (std::size_t i = 0; i < count; ++i) {
      MemorySegment& segment = predicted[i];
      segment.start_seconds = std::min(segment.start_seconds, segments[i].start_seconds);
      segment.peak_bytes = std::max(segment.peak_bytes, segments[i].peak_bytes);
    }
  }
  for (std::size_t i = 1; i < predicted.size(); ++i)
    predicted[i].peak_bytes = std::max(predicted[i].peak_bytes, predicted[i - 1].peak_bytes);
  return predicted;
}

MemorySegments predict_ks_plus(std::span<const MemoryCourse* const> runs, std::size_t count) {
  if (runs.empty()) return {};
  MemorySegments predicted(count);
  const double n = static_cast<double>(runs.size());
  for (const MemoryCourse* run : runs) {
    MemorySegments segments = rising_segments(*run, count);
    segments.resize(count, {run->seconds.back(), segments.back().peak_bytes});
    for (std::size_t i = 0; i < count; ++i) {
      predicted[i].start_seconds += kEarlier * segments[i].start_seconds / n;
      predicted[i].peak_bytes += kHigher * segments[i].peak_bytes / n;
    }
  }
  return predicted;
}

}  // namespace cgphase
