// Points that grow old become fewer: one stands for all of a span of time, and keeps their peaks
// (docs/internals/storage.md, "Tiers").
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "storage/block.h"
#include "storage/history_point.h"

namespace cgphase {

// Takes the points of one container, oldest first. Of each span of `step` since 1970 it makes one:
// at the time of the last, with the last reading of each counter, the highest of each gauge (the
// lowest of what is only ever subtracted from others), the limits and the phase of the last, and
// the highest usage of CPU between two readings.
class Thinner {
 public:
  // `before`: the point before the first, where there is one; usage is counted from it.
  Thinner(std::chrono::seconds step, const std::optional<HistoryPoint>& before);

  // The point of the span before, once `point` begins another.
  std::optional<HistoryPoint> add(HistoryPoint point);
  // That of the last span.
  std::optional<HistoryPoint> finish();

 private:
  struct Reading {
    WallTime time;
    Counter clock_start_ms, usage_usec;
  };
  // What stands for the span so far.
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
