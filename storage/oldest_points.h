// The oldest points of some time, out of blocks that may overlap: they do where the wall clock was
// set back.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "storage/history_point.h"

namespace cgphase {

// Blocks may be added in any order; no more than `limit` points and one block lie in memory.
class OldestPoints {
 public:
  // From <= time <= until; none where `limit` is not above 0.
  OldestPoints(WallTime from, WallTime until, int limit)
      : from_(from), until_(until), limit_(limit > 0 ? static_cast<std::size_t>(limit) : 0) {}

  // Whether a block whose first point has this time may have one of them. Where it may not, none
  // that begins later may, either.
  bool takes(std::int64_t first_ns) const {
    if (points_.size() < limit_) return true;
    return limit_ > 0 && first_ns <= points_.back().time.time_since_epoch().count();
  }

  void add(std::vector<HistoryPoint> block) {
    for (HistoryPoint& point : block)
      if (point.time >= from_ && point.time <= until_) points_.push_back(std::move(point));
    if (points_.size() >= limit_) trim();
  }

  // Those of one time in the order in which they were added. Last of all.
  std::vector<HistoryPoint> take() {
    trim();
    return std::move(points_);
  }

 private:
  void trim() {
    if (!std::ranges::is_sorted(points_, {}, &HistoryPoint::time))
      std::ranges::stable_sort(points_, {}, &HistoryPoint::time);
    if (points_.size() > limit_) points_.resize(limit_);
  }

  WallTime from_, until_;
  std::size_t limit_;
  std::vector<HistoryPoint> points_;  // sorted where there are as many as limit_
};

}  // namespace cgphase
