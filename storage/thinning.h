// Thinning of old points: one point covers a span of time and keeps its peaks
// (docs/internals/storage.md, "Tiers").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "storage/history_point.h"

namespace cgphase {

// Takes the points of one container, oldest first, and makes one point per span of `step` since
// 1970: the last point of the span, with the highest gauges of all its points. memory.current,
// memory.stat and swap are those of the reading with the highest need. The peak is the highest CPU
// use between two readings.
class Thinner {
 public:
  explicit Thinner(std::chrono::seconds step);

  // The finished point of the previous span, if `point` begins a new one.
  std::optional<HistoryPoint> add(const HistoryPoint& point);
  // The point of the last span.
  std::optional<HistoryPoint> finish();

 private:
  std::int64_t span_of(WallTime time) const;

  std::int64_t step_ns_;
  std::optional<HistoryPoint> last_;  // as it was read
  std::optional<HistoryPoint> open_;  // the span so far
};

}  // namespace cgphase
