// A log-structured cache of fixed-size responses, as in inference services. Entries go into the
// newest segment, whole old segments are dropped, and their memory is freed at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>

namespace cgphase::workloads {

// One thread owns it.
class ResponseCache {
 public:
  static constexpr std::size_t kSegmentEntries = 64;

  // Stores at most `max_segments` (at least 1) segments of 64 responses of `floats` each.
  ResponseCache(std::size_t floats, std::size_t max_segments);

  // The response under that key; empty if it is not cached. Valid until the next insert or trim.
  std::span<const float> find(std::uint64_t key) const;
  // Room for the response of a key that is not in the cache. If the cache is full, this
  // drops the oldest segment.
  std::span<float> insert(std::uint64_t key);
  // Keeps only the newest `segments`.
  void trim(std::size_t segments);

  std::size_t segment_count() const { return segments_.size(); }
  std::size_t entry_count() const { return places_.size(); }

 private:
  struct Segment {
    std::unique_ptr<float[]> values;
    std::size_t used = 0;
    std::uint64_t keys[kSegmentEntries];
  };
  void drop_oldest();

  std::size_t floats_, max_segments_;
  std::deque<Segment> segments_;  // oldest first
  std::unordered_map<std::uint64_t, float*> places_;
};

}  // namespace cgphase::workloads
