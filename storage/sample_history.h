// The samples of all containers: new blocks in memory, stored blocks in three tiers.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "storage/block.h"
#include "storage/sqlite.h"
#include "storage/store.h"

namespace cgphase {

// Samples in memory that make a flush due before its time.
inline constexpr std::uint64_t kMaxUnflushedPoints = 65536;
// Blocks thinned per transaction. Fifteen full raw blocks become one medium block.
inline constexpr std::int64_t kThinnedBlocks = 16384;

// A container's row in table container, and the id that its samples get.
struct ContainerRow {
  std::int64_t row = 0;
  CgroupId id;
};

// The id of samples whose container is known by its row only.
constexpr CgroupId record_id(std::int64_t row) { return {0, static_cast<std::uint64_t>(row)}; }

// Three tables of blocks. Each has older and fewer points than the one before.
enum class Tier { raw, medium, coarse };
inline constexpr std::size_t kTiers = 3;
inline constexpr std::array<const char*, kTiers> kTierTables = {"block", "medium", "coarse"};

class OldestPoints;

class SampleHistory {
 public:
  static Result<SampleHistory> prepare(Connection& connection);

  // In memory only, so it cannot fail. `container` is the row.
  void add(std::int64_t container, const HistoryPoint& point);
  // The oldest point in memory is kFlushInterval older than `now`, or memory has too many points.
  bool flush_due(WallTime now) const;
  // Writes all new points, within the caller's transaction. A block that is not full stays in
  // memory, and the next flush replaces its row. Call flushed() after the COMMIT.
  Status flush();
  void flushed();
  // Drops all blocks in memory. Returns the number of points that were in memory only.
  std::uint64_t forget_unflushed();
  std::uint64_t unflushed() const { return unflushed_; }

  // Oldest first, from <= time <= until.
  Result<std::vector<HistoryPoint>> read(const ContainerRow& container, WallTime from,
                                         WallTime until, int limit);

  Result<std::int64_t> block_count(Tier tier);
  // Deletes the oldest `count` blocks of a tier; returns the number of deleted blocks.
  Result<std::int64_t> drop_oldest(Tier tier, std::int64_t count);
  // Moves blocks older than the maximum age of `tier` to the next tier, as one point per step. The
  // last tier deletes them. It waits until they fill a block. Returns the number of removed blocks.
  Result<std::int64_t> retire(Tier tier, const TierAges& ages, WallTime now);
  // Moves the oldest `count` blocks, whatever their age. Precondition: not the last tier.
  Result<std::int64_t> thin(Tier tier, std::int64_t count);

  std::uint64_t damaged_blocks() const { return damaged_.size(); }

 private:
  // The statements of one tier's table.
  struct Blocks {
    Statement add, read, span, drop, list, containers;
  };
  Blocks& of(Tier tier) { return blocks_[static_cast<std::size_t>(tier)]; }
  // Blocks are deleted from the front only, so row numbers have no gaps.
  Result<RowSpan> span_of(Tier tier) { return read_row_span(of(tier).span); }
  Result<std::int64_t> write_block(Tier tier, std::int64_t container, const BlockWriter& block);
  Result<std::int64_t> replace_block(std::int64_t row, std::int64_t container,
                                     const BlockWriter& block);
  Status thin_container(Tier tier, std::int64_t container, std::int64_t last_block);
  // The points of a row (first_ns, last_ns, point_count, crc32c, payload); empty if it is damaged.
  std::vector<HistoryPoint> unpack(const ContainerRow& container, const Statement& row);
  Status read_tier(Tier tier, const ContainerRow& container, WallTime from, WallTime until,
                   OldestPoints& points);

  std::array<Blocks, kTiers> blocks_;
  // A block in memory, and its row in the file as of the last flush.
  struct OpenBlock {
    BlockWriter points;
    int stored = 0;               // points in the file
    std::optional<std::int64_t> row;
    std::optional<std::int64_t> row_after_commit;
  };
  std::map<std::int64_t, std::vector<OpenBlock>> open_;  // by container
  Statement replace_;
  std::optional<WallTime> oldest_unflushed_;
  std::uint64_t unflushed_ = 0;
  // By container and first time, so that a block is counted once.
  std::set<std::pair<std::int64_t, std::int64_t>> damaged_;
};

}  // namespace cgphase
