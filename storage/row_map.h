// The rows in table container of containers that have points in memory.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cgroupfs/cgroup_id.h"
#include "storage/history_point.h"

namespace cgphase {

using RowMap = std::map<CgroupId, std::int64_t>;

// Those of `points`, one for each; false where one is not known. Quick where points ascend by id.
inline bool find_known_rows(const RowMap& rows, std::span<const HistoryPoint> points,
                            std::vector<std::int64_t>& found) {
  found.clear();
  auto at = rows.begin();
  for (const HistoryPoint& point : points) {
    if (at == rows.end() || at->first != point.sample.id) at = rows.find(point.sample.id);
    if (at == rows.end()) return false;
    found.push_back(at->second);
    ++at;
  }
  return true;
}

}  // namespace cgphase
