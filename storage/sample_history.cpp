#include "storage/sample_history.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32.h"
#include "storage/thinning.h"

namespace cgphase {
namespace {

// The wall clock may have been set back, so either direction counts.
bool far_apart(WallTime a, WallTime b) { return (a > b ? a - b : b - a) >= Store::kFlushInterval; }

constexpr const char* kBlockColumns = "first_ns,last_ns,point_count,crc32c,payload";

}  // namespace

// The oldest points of a time span. Blocks overlap if the wall clock was set back, so they may be
// added in any order. Memory has at most `limit` points and one block.
class OldestPoints {
 public:
  // From <= time <= until; no points if `limit` is not above 0.
  OldestPoints(WallTime from, WallTime until, int limit)
      : from_(from), until_(until), limit_(limit > 0 ? static_cast<std::size_t>(limit) : 0) {}

  // Whether a block with this first time may have such a point. If not, no later block has one.
  bool takes(std::int64_t first_ns) const {
    if (points_.size() < limit_) return true;
    return limit_ > 0 && first_ns <= ns_of(points_.back().time);
  }

  void add(std::vector<HistoryPoint> block) {
    for (HistoryPoint& point : block)
      if (point.time >= from_ && point.time <= until_) points_.push_back(std::move(point));
    if (points_.size() >= limit_) trim();
  }

  // Call this last. Points of one time keep the order in which they were added.
  std::vector<HistoryPoint> drain() {
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
  std::vector<HistoryPoint> points_;  // sorted once there are limit_
};

std::int64_t block_checksum(std::int64_t container, std::int64_t first_ns, std::int64_t last_ns,
                            std::int64_t count, std::string_view payload) {
  const std::string columns = std::to_string(container) + ' ' + std::to_string(first_ns) + ' ' +
                              std::to_string(last_ns) + ' ' + std::to_string(count);
  return std::int64_t{crc32c(payload, crc32c(columns))};
}

Status SampleHistory::prepare_blocks(Connection& connection) {
  static constexpr std::array kTables = {"block", "medium", "coarse"};
  static_assert(kTables.size() == kTiers);
  const std::string columns = kBlockColumns;
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    const std::string table = kTables[tier];
    Blocks& blocks = blocks_[tier];
    const Status prepared = connection.prepare_all(
        {{&blocks.add,
          "INSERT INTO " + table + " (container," + columns + ") VALUES (?,?,?,?,?,?)"},
         {&blocks.read, "SELECT " + columns + " FROM " + table +
                            " WHERE container = ? AND first_ns <= ? AND last_ns >= ?"
                            " ORDER BY first_ns, block"},
         {&blocks.span, row_span_sql(table)},
         {&blocks.drop, "DELETE FROM " + table + " WHERE block < ?"},
         {&blocks.list,
          "SELECT block,first_ns,last_ns FROM " + table + " ORDER BY block LIMIT ?"},
         {&blocks.containers, "SELECT DISTINCT container FROM " + table + " WHERE block <= ?"},
         {&blocks.read_prefix, "SELECT " + columns + " FROM " + table +
                                   " WHERE container = ? AND block <= ? ORDER BY first_ns, block"},
         {&blocks.last, "SELECT " + columns + " FROM " + table +
                            " WHERE container = ? ORDER BY first_ns DESC LIMIT 1"}});
    if (!prepared) return prepared;
  }
  return {};
}

Result<SampleHistory> SampleHistory::prepare(Connection& connection) {
  SampleHistory history;
  Status ready = history.prepare_blocks(connection);
  const std::string columns = kBlockColumns;
  if (ready)
    ready = connection.prepare_all(
        {{&history.add_recent_,
          "INSERT INTO recent (container," + columns + ") VALUES (?,?,?,?,?,?)"},
         {&history.read_recent_,
          "SELECT " + columns + " FROM recent WHERE container = ? ORDER BY part"},
         {&history.drop_recent_, "DELETE FROM recent WHERE container = ?"},
         {&history.recent_containers_, "SELECT DISTINCT container FROM recent"}});
  if (!ready) return std::unexpected(ready.error());
  return history;
}

void SampleHistory::add(std::int64_t container, const HistoryPoint& point) {
  OpenBlocks& blocks = open_[container];
  if (!blocks.open.accepts(point.time))
    blocks.full.push_back(std::exchange(blocks.open, BlockWriter()));
  blocks.open.add(point);
  ++unflushed_;
  if (!oldest_unflushed_) oldest_unflushed_ = point.time;
}

bool SampleHistory::flush_due(WallTime now) const {
  return unflushed_ >= kMaxUnflushedPoints ||
         (oldest_unflushed_ && far_apart(*oldest_unflushed_, now));
}

Status SampleHistory::write_block(Tier tier, std::int64_t container, const BlockWriter& block) {
  return of(tier).add.run(
      container, block.first_ns(), block.last_ns(), block.count(),
      block_checksum(container, block.first_ns(), block.last_ns(), block.count(), block.payload()),
      Blob{block.payload()});
}

Result<SampleHistory::RecentBlock> SampleHistory::read_recent(std::int64_t container) {
  RecentBlock block;
  read_recent_.begin(container);
  for (;;) {
    const Result<bool> row = read_recent_.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return block;
    const std::int64_t first_ns = read_recent_.integer(0), last_ns = read_recent_.integer(1),
                       count = read_recent_.integer(2);
    const std::string_view payload = read_recent_.blob(4);
    if (block_checksum(container, first_ns, last_ns, count, payload) != read_recent_.integer(3)) {
      block.whole = false;
      damaged_.emplace(container, first_ns);
      read_recent_.stop();
      return block;
    }
    block.first_ns = first_ns;
    block.last_ns = last_ns;
    block.count += count;
    block.payload += payload;
  }
}

Status SampleHistory::seal(std::int64_t container, const BlockWriter* more) {
  Result<RecentBlock> block = read_recent(container);
  if (!block) return std::unexpected(block.error());
  if (block->whole && more != nullptr) {
    block->last_ns = more->last_ns();
    block->count += more->undrained_count();
    block->payload += more->payload();
  }
  if (Status dropped = drop_recent_.run(container); !dropped) return dropped;
  if (block->count == 0) return {};
  return of(Tier::raw).add.run(container, block->first_ns, block->last_ns, block->count,
                               block_checksum(container, block->first_ns, block->last_ns,
                                              block->count, block->payload),
                               Blob{block->payload});
}

// After an open, and after points were dropped: no writer continues the blocks of table recent.
Status SampleHistory::seal_all() {
  std::vector<std::int64_t> containers;
  recent_containers_.begin();
  for (;;) {
    const Result<bool> row = recent_containers_.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    containers.push_back(recent_containers_.integer(0));
  }
  for (const std::int64_t container : containers)
    if (Status sealed = seal(container, nullptr); !sealed) return sealed;
  return {};
}

Status SampleHistory::flush() {
  if (seal_all_)
    if (Status sealed = seal_all(); !sealed) return sealed;
  const auto finish = [this](std::int64_t container, const BlockWriter& block) {
    return block.drained() ? seal(container, &block) : write_block(Tier::raw, container, block);
  };
  for (const auto& [container, blocks] : open_) {
    for (const BlockWriter& block : blocks.full)
      if (Status written = finish(container, block); !written) return written;
    const BlockWriter& open = blocks.open;
    const Status written =
        open.undrained_count() == 0
            ? finish(container, open)  // the container has most likely ended
            : add_recent_.run(container, open.first_ns(), open.last_ns(), open.undrained_count(),
                              block_checksum(container, open.first_ns(), open.last_ns(),
                                             open.undrained_count(), open.payload()),
                              Blob{open.payload()});
    if (!written) return written;
  }
  return {};
}

void SampleHistory::flushed() {
  std::erase_if(open_, [](const auto& entry) { return entry.second.open.undrained_count() == 0; });
  for (auto& [container, blocks] : open_) {
    blocks.full.clear();
    blocks.open.drain();
  }
  oldest_unflushed_.reset();
  unflushed_ = 0;
  seal_all_ = false;
}

std::uint64_t SampleHistory::drop_unflushed() {
  open_.clear();
  oldest_unflushed_.reset();
  seal_all_ = true;
  return std::exchange(unflushed_, 0);
}

std::vector<HistoryPoint> SampleHistory::unpack(const ContainerRow& container,
                                                const Statement& row) {
  const std::string_view payload = row.blob(4);
  if (block_checksum(container.row, row.integer(0), row.integer(1), row.integer(2), payload) ==
      row.integer(3))
    if (Result<std::vector<HistoryPoint>> points = read_block(payload, container.id))
      return *std::move(points);
  damaged_.emplace(container.row, row.integer(0));
  return {};
}

Status SampleHistory::read_tier(Tier tier, const ContainerRow& container, WallTime from,
                                WallTime until, OldestPoints& points) {
  Statement& read = of(tier).read;
  read.begin(container.row, ns_of(until), ns_of(from));
  for (;;) {
    const Result<bool> row = read.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    if (!points.takes(read.integer(0))) break;
    points.add(unpack(container, read));
  }
  read.stop();
  return {};
}

void SampleHistory::read_payload(const ContainerRow& container, std::int64_t first_ns,
                                 std::string_view payload, OldestPoints& points) {
  if (payload.empty() || !points.takes(first_ns)) return;
  if (Result<std::vector<HistoryPoint>> block = read_block(payload, container.id))
    points.add(*std::move(block));
  else
    damaged_.emplace(container.row, first_ns);
}

Result<std::vector<HistoryPoint>> SampleHistory::read(const ContainerRow& container, WallTime from,
                                                      WallTime until, int limit) {
  OldestPoints points(from, until, limit);
  for (const Tier tier : {Tier::coarse, Tier::medium, Tier::raw})
    if (Status done = read_tier(tier, container, from, until, points); !done)
      return std::unexpected(done.error());
  Result<RecentBlock> recent = read_recent(container.row);
  if (!recent) return std::unexpected(recent.error());
  std::vector<const BlockWriter*> unstored;
  if (const auto found = open_.find(container.row); found != open_.end()) {
    for (const BlockWriter& block : found->second.full) unstored.push_back(&block);
    unstored.push_back(&found->second.open);
  }
  // Only the first can continue the block in table recent.
  if (!unstored.empty() && unstored.front()->drained()) {
    if (recent->whole) recent->payload += unstored.front()->payload();
    unstored.erase(unstored.begin());
  }
  read_payload(container, recent->first_ns, recent->payload, points);
  for (const BlockWriter* block : unstored)
    read_payload(container, block->first_ns(), block->payload(), points);
  return points.drain();
}

Result<std::int64_t> SampleHistory::block_count(Tier tier) {
  const Result<RowSpan> span = span_of(tier);
  if (!span) return std::unexpected(span.error());
  return span->count();
}

Result<std::int64_t> SampleHistory::drop_oldest(Tier tier, std::int64_t count) {
  const Result<RowSpan> span = span_of(tier);
  if (!span) return std::unexpected(span.error());
  const std::int64_t dropped = std::min(count, span->count());
  if (dropped == 0) return 0;
  if (Status done = of(tier).drop.run(span->first + dropped); !done)
    return std::unexpected(done.error());
  return dropped;
}

// Blocks whose times are ahead of the clock stay, with all later blocks, until the clock has passed
// them or the file is near its cap.
Result<std::int64_t> SampleHistory::retire(Tier tier, const Retention& retention, WallTime now) {
  const std::array ages = {retention.raw_for, retention.medium_for, retention.coarse_for};
  const std::array steps = {retention.medium_step, retention.coarse_step, std::chrono::seconds(0)};
  const auto place = static_cast<std::size_t>(tier);
  const WallTime aged = now - ages[place], worth = aged - steps[place] * kBlockPoints;
  Statement& list = of(tier).list;
  list.begin(kThinnedBlocks);
  std::int64_t count = 0;
  for (;; ++count) {
    const Result<bool> row = list.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    if (list.integer(2) > ns_of(aged) || (count == 0 && list.integer(1) > ns_of(worth))) break;
  }
  list.stop();
  if (count == 0) return 0;
  return tier == Tier::coarse ? drop_oldest(tier, count) : thin(tier, retention, count);
}

Result<std::int64_t> SampleHistory::thin(Tier tier, const Retention& retention,
                                         std::int64_t count) {
  CHECK_INVARIANT(tier != Tier::coarse);
  const Result<RowSpan> span = span_of(tier);
  if (!span) return std::unexpected(span.error());
  const std::int64_t last = std::min(span->last, span->first + count - 1);
  std::vector<std::int64_t> containers;
  Statement& list = of(tier).containers;
  list.begin(last);
  for (;;) {
    const Result<bool> row = list.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    containers.push_back(list.integer(0));
  }
  const auto step = tier == Tier::raw ? retention.medium_step : retention.coarse_step;
  for (const std::int64_t container : containers)
    if (Status done = thin_container(tier, container, last, step); !done)
      return std::unexpected(done.error());
  return drop_oldest(tier, count);
}

Result<std::optional<HistoryPoint>> SampleHistory::last_point(Tier tier, std::int64_t container) {
  Statement& last = of(tier).last;
  last.begin(container);
  const Result<bool> row = last.next();
  if (!row) return std::unexpected(row.error());
  std::optional<HistoryPoint> point;
  if (*row)
    if (const auto points = unpack({container, record_id(container)}, last); !points.empty())
      point = points.back();
  last.stop();
  return point;
}

// CPU use is counted from the last point of the next tier, which precedes the first point here.
Status SampleHistory::thin_container(Tier tier, std::int64_t container, std::int64_t last_block,
                                     std::chrono::seconds step) {
  const Tier next = tier == Tier::raw ? Tier::medium : Tier::coarse;
  const Result<std::optional<HistoryPoint>> before = last_point(next, container);
  if (!before) return std::unexpected(before.error());
  Thinner thinner(step, *before);
  BlockWriter block;
  const auto put = [&](const std::optional<HistoryPoint>& point) -> Status {
    if (!point) return {};
    if (!block.accepts(point->time)) {
      if (Status written = write_block(next, container, block); !written) return written;
      block = {};
    }
    block.add(*point);
    return {};
  };
  Statement& read = of(tier).read_prefix;
  read.begin(container, last_block);
  for (;;) {
    const Result<bool> row = read.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    for (HistoryPoint& point : unpack({container, record_id(container)}, read))
      if (Status done = put(thinner.add(std::move(point))); !done) return done;
  }
  if (Status done = put(thinner.finish()); !done) return done;
  return block.count() == 0 ? Status{} : write_block(next, container, block);
}

}  // namespace cgphase
