// Thinning of old points: one point covers a span of time and keeps its peaks
// (docs/internals/storage.md, "Tiers").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "storage/block.h"
#include "storage/history_point.h"

namespace cgphase {

// Takes the points of one container, oldest first, and makes one point per span of `step` since
// 1970. It has the time, counters, limits and phase of the last point, and the highest reading of
// each gauge. Values that are subtracted from others keep the lowest reading. The peak is the
// highest CPU use between two readings.
class Thinner {
 public:
  // `before`: the point before the first, if any; CPU use is counted from it.
  Thinner(std::chrono::seconds step, const std::optional<HistoryPoint>& before);

  // The finished point of the previous span, if `point` begins a new one.
  std::optional<HistoryPoint> add(HistoryPoint point);
  // The point of the last span.
  std::optional<HistoryPoint> finish();

 private:
  struct Reading {
    WallTime time;
    Counter clock_start_ms, usage_usec;
  };
  // The span so far.
  struct Open {
    WallTime time;
    CgroupId id;
    ColumnRow row;
    std::optional<std::uint64_t> charged_need, working_set;  // the highest
  };
  std::optional<double> usage_since_before(const HistoryPoint& point) const;
  std::int64_t span_of(WallTime time) const;

  std::int64_t step_ns_;
  Reading before_;
  std::optional<Open> open_;
};

}  // namespace cgphase
