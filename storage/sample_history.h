// The samples: a writer of blocks for each live container, and what is stored of them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "storage/block.h"
#include "storage/sqlite.h"

namespace cgphase {

inline constexpr std::size_t kMaxSealedBlocks = 1024;  // in memory, about 2 KB each

// A container's row in table container, and who it is.
struct ContainerRow {
  std::int64_t row = 0;
  CgroupId id;
};

// What a container's samples carry where only its row is known.
constexpr CgroupId record_id(std::int64_t row) { return {0, static_cast<std::uint64_t>(row)}; }

// The checksum of a packed block: of what stands beside the payload, too, because a block that says
// the wrong container is as bad as a damaged one.
std::int64_t block_checksum(std::int64_t container, std::int64_t first_ns, std::int64_t last_ns,
                            std::int64_t count, std::string_view payload);

// Points lie in memory until flush() packs them into the file: full blocks into table block, which
// only ever grows at its end, the open one of each container into table tail, in place.
class SampleHistory {
 public:
  // Turns the tails that the process before this one left into blocks.
  static Result<SampleHistory> open(Connection& connection);

  // Cannot fail: in memory only.
  void add(std::int64_t container, const HistoryPoint& point);
  // The oldest point in memory is kFlushInterval older than `now`, or memory holds many full
  // blocks.
  bool flush_due(WallTime now) const;
  // Points of this container are in memory.
  bool holds(std::int64_t container) const { return tails_.contains(container); }
  // Within the caller's transaction, which must be reported: flushed() after its COMMIT.
  Status flush();
  void flushed();

  // Oldest first, from <= time <= until.
  Result<std::vector<HistoryPoint>> read(const ContainerRow& container, WallTime from,
                                         WallTime until, int limit);

  // Deletes the oldest `count` blocks; the number deleted.
  Result<std::int64_t> drop_oldest(std::int64_t count);

  std::uint64_t damaged_blocks() const { return damaged_blocks_; }

 private:
  struct Tail {
    std::vector<BlockWriter> sealed;
    BlockWriter open;
    bool stored = false;  // table tail has a row of it
    bool dirty = false;   // points came since the last flush
  };
  Status store(std::int64_t container, Tail& tail);
  Status write_block(std::int64_t container, const BlockWriter& block);
  // Appends those points of one packed block that were asked for.
  void select(const ContainerRow& container, std::string_view payload, std::int64_t from_ns,
              std::int64_t until_ns, std::vector<HistoryPoint>& points);

  Statement add_block_, put_tail_, drop_tail_, read_blocks_, block_span_, drop_blocks_;
  std::map<std::int64_t, Tail> tails_;
  std::optional<WallTime> oldest_unflushed_;
  std::size_t sealed_count_ = 0;
  std::uint64_t damaged_blocks_ = 0;
};

}  // namespace cgphase
