// A block: up to sixty points of one container, packed (docs/internals/storage.md, "A block").
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/history_point.h"

namespace cgphase {

inline constexpr int kBlockPoints = 60;
// Columns of a point: every field of Sample and Phase, the original limits, the host, the peak of
// usage. The list in block.cpp is the format: it only ever grows at its end.
inline constexpr std::size_t kColumnCount = 95;
using Columns = std::array<std::uint64_t, kColumnCount>;
Columns to_columns(const HistoryPoint& point);

// Packs points as they come. It keeps the packed bytes and the last point, not the samples.
class BlockWriter {
 public:
  // False if the block is full or the wall clock went back: time ascends within a block.
  bool accepts(WallTime time) const;
  // Precondition: accepts(point.time).
  void add(const HistoryPoint& point);
  int count() const { return count_; }
  std::int64_t first_ns() const { return first_ns_; }
  std::int64_t last_ns() const { return last_ns_; }
  std::string_view payload() const { return payload_; }

 private:
  char* put_row(char* end, const Columns& columns);

  int count_ = 0;
  std::int64_t first_ns_ = 0, last_ns_ = 0;
  std::uint64_t step_ns_ = 0;
  Columns last_{};  // of the last point
  std::string payload_;
};

// The points of a payload, oldest first, with `id` in their samples. Every length of these foreign
// bytes is checked. Error: io.
Result<std::vector<HistoryPoint>> read_block(std::string_view payload, CgroupId id);

}  // namespace cgphase
