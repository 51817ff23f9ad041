// The samples: a writer of blocks for each live container, and what is stored of them.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "storage/block.h"
#include "storage/oldest_points.h"
#include "storage/recent_ring.h"
#include "storage/retention.h"
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

// Three tables of blocks, each of older points than the one before and of fewer.
enum class Tier { raw, medium, coarse };
inline constexpr std::size_t kTiers = 3;
// What is thinned at once. Fifteen full blocks become one: the more at once, the fuller those are.
inline constexpr std::int64_t kThinnedBlocks = 16384;

// Points lie in memory until flush() packs them into the file: full blocks into table block, which
// only ever grows at its end, what came of the open ones into table recent. Those that grow old go
// to table medium, and from there to table coarse, one for several.
class SampleHistory {
 public:
  static Result<SampleHistory> prepare(Connection& connection);
  // What lies in memory.
  class Memory;
  // Before the file is closed and opened anew; the rest of it goes with the file.
  Memory leave();
  // Turns the open blocks of the file into blocks, but for those that `kept` has. Before all else,
  // within the caller's transaction. `rows` are those in this file of the rows in `kept`. Where it
  // is not committed the next flush does it, which is due.
  using Rows = std::map<std::int64_t, std::int64_t>;
  Status adopt(Connection& connection, const Memory& kept, const Rows& rows);
  // After its COMMIT: all of `kept` is written by the next flush, which is due.
  void go_on(Memory kept, const Rows& rows);

  // Cannot fail: in memory only. `containers`: those of the points. Quick where both ascend.
  void add(std::span<const std::int64_t> containers, std::span<const HistoryPoint> points);
  // The oldest point in memory is kFlushInterval older than `now`, or memory holds many full
  // blocks.
  bool flush_due(WallTime now) const;
  // Points of this container are in memory.
  bool holds(std::int64_t container) const { return tails_.contains(container); }
  // Within the caller's transaction, which must be reported: flushed() after its COMMIT.
  Status flush();
  void flushed();
  // Instead of flush(), where nothing may be written at `now`: what is in memory stays there, until
  // another flush() or until newer points take its place; that is due after kFlushInterval. The
  // number of points that went.
  std::uint64_t keep_in_memory(WallTime now);

  // Oldest first, from <= time <= until.
  Result<std::vector<HistoryPoint>> read(const ContainerRow& container, WallTime from,
                                         WallTime until, int limit);

  // The number of blocks of a tier.
  Result<std::int64_t> block_count(Tier tier);
  // Deletes the oldest `count` blocks, of the coarsest tier that has any; the number deleted.
  Result<std::int64_t> drop_oldest(std::int64_t count);
  // Of at most `count` blocks that are as old as the tier may grow at `now`, one point for each
  // `medium_step` or `coarse_step` goes to the next tier, from the last to none. Nothing until it
  // is worth it: until the oldest would fill a block. The number of blocks that went. Within the
  // caller's transaction.
  Result<std::int64_t> retire(Tier tier, const Retention& retention, WallTime now);
  // The same with the oldest blocks, whatever their age. Precondition: a tier with a next one.
  Result<std::int64_t> thin(Tier tier, const Retention& retention, std::int64_t count);

  std::uint64_t damaged_blocks() const { return damaged_blocks_.size() + damaged_recent_; }

 private:
  struct Tail {
    std::vector<BlockWriter> sealed;
    BlockWriter open;
    RecentPlace place;   // of the open one
    RecentPlace next_place;  // when the flush that has begun is committed
    bool dirty = false;  // points came since the last flush
  };
  static bool has(const Memory& kept, const Rows& rows, const RecentBlock& block);
  Status store_left();
  Status store(std::int64_t container, Tail& tail);
  void add(Tail& tail, const HistoryPoint& point);
  void seal(Tail& tail);
  std::uint64_t drop_oldest_sealed();
  Status write_block(Tier tier, std::int64_t container, const BlockWriter& block);
  // Adds the points of one packed block in memory.
  void select(const ContainerRow& container, std::int64_t first_ns, std::string_view payload,
              OldestPoints& points);

  // Of one table of blocks.
  struct Blocks {
    Statement add, read, span, drop, list, containers, read_prefix, last;
  };
  Status prepare_blocks(Connection& connection);
  Blocks& of(Tier tier) { return blocks_[static_cast<std::size_t>(tier)]; }
  // Blocks are only ever deleted from the front, so there are no gaps.
  Result<RowSpan> span_of(Tier tier) { return read_row_span(of(tier).span); }
  Result<std::int64_t> drop_oldest(Tier tier, std::int64_t count);
  Status thin_container(Tier tier, std::int64_t container, std::int64_t last_block,
                        std::chrono::seconds step);
  Result<std::optional<HistoryPoint>> last_point(Tier tier, std::int64_t container);
  // The points of a row (first_ns, last_ns, point_count, crc32c, payload); none of a damaged one.
  std::vector<HistoryPoint> unpack(const ContainerRow& container, const Statement& row);
  // Adds those of table `tier`.
  Status read_tier(Tier tier, const ContainerRow& container, WallTime from, WallTime until,
                   OldestPoints& points);

  std::array<Blocks, kTiers> blocks_;
  RecentRing recent_;
  std::optional<std::vector<RecentBlock>> left_;  // in table recent at the open, until it is empty
  std::map<std::int64_t, Tail> tails_;
  std::optional<WallTime> oldest_unflushed_;
  bool overdue_ = false;  // table recent tells of something else than what memory holds
  std::size_t sealed_count_ = 0;
  // Once each, however often they are read: by container and first time.
  std::set<std::pair<std::int64_t, std::int64_t>> damaged_blocks_;
  std::uint64_t damaged_recent_ = 0;
};

class SampleHistory::Memory {
 private:
  friend SampleHistory;
  std::map<std::int64_t, Tail> tails_;
  std::optional<WallTime> oldest_unflushed_;
  std::size_t sealed_count_ = 0;
};

}  // namespace cgphase
