#include "tests/workloads/response_cache.h"

#include "base/check.h"

namespace cgphase::workloads {

ResponseCache::ResponseCache(std::size_t floats, std::size_t max_segments)
    : floats_(floats), max_segments_(max_segments) {
  CHECK_INVARIANT(max_segments >= 1);
}

std::span<const float> ResponseCache::find(std::uint64_t key) const {
  const auto place = places_.find(key);
  if (place == places_.end()) return {};
  return {place->second, floats_};
}

std::span<float> ResponseCache::insert(std::uint64_t key) {
  CHECK_INVARIANT(!places_.contains(key));
  if (segments_.empty() || segments_.back().used == kSegmentEntries) {
    if (segments_.size() == max_segments_) drop_oldest();
    segments_.emplace_back();
    // Not cleared: a page is touched when its first response is stored.
    segments_.back().values = std::make_unique_for_overwrite<float[]>(floats_ * kSegmentEntries);
  }
  Segment& segment = segments_.back();
  float* place = segment.values.get() + segment.used * floats_;
  segment.keys[segment.used++] = key;
  places_.emplace(key, place);
  return {place, floats_};
}

void ResponseCache::trim(std::size_t segments) {
  while (segments_.size() > segments) drop_oldest();
}

void ResponseCache::drop_oldest() {
  const Segment& oldest = segments_.front();
  for (std::size_t i = 0; i < oldest.used; ++i) places_.erase(oldest.keys[i]);
  segments_.pop_front();
}

}  // namespace cgphase::workloads
