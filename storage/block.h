// A block: up to sixty points of one container, packed (docs/internals/storage.md, "A block").
#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "storage/store.h"

namespace cgphase {

inline constexpr int kBlockPoints = 60;
// Columns of a point: every field of Sample and Phase, the original limits, the host, the peak of
// usage; a field of three states ("max", a number, absent) as two. The list in block.cpp is the
// format: it only ever grows at its end.
inline constexpr std::size_t kColumnCount = 104;

// A point as optional integers; a double is its bit pattern, so no precision is lost.
struct ColumnRow {
  std::array<std::uint64_t, kColumnCount> values{};
  std::bitset<kColumnCount> present;
  friend bool operator==(const ColumnRow&, const ColumnRow&) = default;
};
ColumnRow to_columns(const HistoryPoint& point);
// Sets all fields except the time. False if columns contradict each other (a quota that is neither
// "max" nor a number).
bool from_columns(const ColumnRow& row, HistoryPoint& point);

using ColumnWords = std::array<std::uint64_t, 2>;  // a bit for each column

// Packs points as they come. It keeps the packed bytes and the last point, not the samples.
class BlockWriter {
 public:
  // False if the block is full or the wall clock went back: time ascends within a block.
  bool accepts(WallTime time) const;
  // Precondition: accepts(point.time).
  void add(const HistoryPoint& point);
  // Removes the packed bytes, which are elsewhere now. Later points continue the same block.
  void drain() {
    payload_.clear();
    drained_ = count_;
  }

  int count() const { return count_; }
  std::int64_t first_ns() const { return first_ns_; }
  std::int64_t last_ns() const { return last_ns_; }
  std::string_view payload() const { return payload_; }  // since the last drain()
  int undrained_count() const { return count_ - drained_; }
  bool drained() const { return drained_ > 0; }

 private:
  char* put_row(char* end, const HistoryPoint& point);

  int count_ = 0, drained_ = 0;
  std::int64_t first_ns_ = 0, last_ns_ = 0;
  std::uint64_t step_ns_ = 0;
  std::array<std::uint64_t, kColumnCount> last_{};
  ColumnWords present_{};  // of the last point
  std::string payload_;
};

// The points of a payload, oldest first, with `id` in their samples. Every length of these foreign
// bytes is checked. Error: io.
Result<std::vector<HistoryPoint>> read_block(std::string_view payload, CgroupId id);

}  // namespace cgphase
