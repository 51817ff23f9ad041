#include "storage/sample_history.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/crc32.h"
#include "storage/thinning.h"

namespace cgphase {
namespace {

// What one point of the next tier covers.
constexpr std::array<std::chrono::seconds, kTiers> kStep{
    std::chrono::seconds(15), std::chrono::minutes(1), std::chrono::seconds(0)};

// The wall clock may have been set back, so either direction counts.
bool far_apart(WallTime a, WallTime b) { return std::chrono::abs(a - b) >= Store::kFlushInterval; }

// It covers the columns next to the payload too: a block of the wrong container is as bad as a
// damaged one.
std::int64_t block_checksum(std::int64_t container, std::int64_t first_ns, std::int64_t last_ns,
                            std::int64_t count, std::string_view payload) {
  const std::string columns = std::to_string(container) + ' ' + std::to_string(first_ns) + ' ' +
                              std::to_string(last_ns) + ' ' + std::to_string(count);
  return std::int64_t{crc32c(payload, crc32c(columns))};
}

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

Result<SampleHistory> SampleHistory::prepare(Connection& connection) {
  SampleHistory history;
  const std::string columns = "first_ns,last_ns,point_count,crc32c,payload";
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    const std::string table = kTierTables[tier];
    Blocks& blocks = history.blocks_[tier];
    const Status prepared = connection.prepare_all(
        {{&blocks.add,
          "INSERT INTO " + table + " (container," + columns +
              ") VALUES (?,?,?,?,?,?) RETURNING block"},
         {&blocks.read, "SELECT " + columns + ",block FROM " + table +
                            " WHERE container = ? AND first_ns <= ? AND last_ns >= ?"
                            " AND block <= ? ORDER BY first_ns, block"},
         {&blocks.span, row_span_sql(table)},
         {&blocks.drop, "DELETE FROM " + table + " WHERE block < ?"},
         {&blocks.list,
          "SELECT first_ns,last_ns FROM " + table + " ORDER BY block LIMIT ?"},
         {&blocks.containers, "SELECT DISTINCT container FROM " + table + " WHERE block <= ?"}});
    if (!prepared) return std::unexpected(prepared.error());
  }
  const Status prepared = connection.prepare_all(
      {{&history.replace_,
        "UPDATE block SET container = ?, first_ns = ?, last_ns = ?, point_count = ?, crc32c = ?,"
        " payload = ? WHERE block = ? RETURNING block"}});
  if (!prepared) return std::unexpected(prepared.error());
  return history;
}

void SampleHistory::add(std::int64_t container, const HistoryPoint& point) {
  std::vector<OpenBlock>& blocks = open_[container];
  if (blocks.empty() || !blocks.back().points.accepts(point.time)) blocks.emplace_back();
  blocks.back().points.add(point);
  ++unflushed_;
  if (!oldest_unflushed_) oldest_unflushed_ = point.time;
}

bool SampleHistory::flush_due(WallTime now) const {
  return unflushed_ >= kMaxUnflushedPoints ||
         (oldest_unflushed_ && far_apart(*oldest_unflushed_, now));
}

// Returns the number of the row.
Result<std::int64_t> SampleHistory::write_block(Tier tier, std::int64_t container,
                                                const BlockWriter& block) {
  const auto row = of(tier).add.first_integer(
      container, block.first_ns(), block.last_ns(), block.count(),
      block_checksum(container, block.first_ns(), block.last_ns(), block.count(), block.payload()),
      Blob{block.payload()});
  if (!row) return std::unexpected(row.error());
  return row->value_or(0);
}

// A row that was removed to make room is written anew.
Result<std::int64_t> SampleHistory::replace_block(std::int64_t row, std::int64_t container,
                                                  const BlockWriter& block) {
  const auto replaced = replace_.first_integer(
      container, block.first_ns(), block.last_ns(), block.count(),
      block_checksum(container, block.first_ns(), block.last_ns(), block.count(), block.payload()),
      Blob{block.payload()}, row);
  if (!replaced) return std::unexpected(replaced.error());
  return *replaced ? row : write_block(Tier::raw, container, block);
}

Status SampleHistory::flush() {
  for (auto& [container, blocks] : open_)
    for (OpenBlock& block : blocks) {
      if (block.points.count() == block.stored) continue;
      const auto row = block.row ? replace_block(*block.row, container, block.points)
                                 : write_block(Tier::raw, container, block.points);
      if (!row) return std::unexpected(row.error());
      block.row_after_commit = *row;
    }
  return {};
}

// Only the last block of a container grows. A container without new points has probably ended.
void SampleHistory::flushed() {
  for (auto& [container, blocks] : open_) {
    blocks.erase(blocks.begin(), blocks.end() - 1);
    OpenBlock& last = blocks.back();
    const bool grows = last.points.count() > last.stored && last.points.count() < kBlockPoints;
    last.stored = last.points.count();
    last.row = last.row_after_commit;
    if (!grows) blocks.clear();
  }
  std::erase_if(open_, [](const auto& entry) { return entry.second.empty(); });
  oldest_unflushed_.reset();
  unflushed_ = 0;
}

std::uint64_t SampleHistory::forget_unflushed() {
  open_.clear();
  oldest_unflushed_.reset();
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
  const auto open = open_.find(container.row);
  const auto in_memory = [&](std::int64_t row) {
    return tier == Tier::raw && open != open_.end() &&
           std::ranges::any_of(open->second, [&](const OpenBlock& one) { return one.row == row; });
  };
  Statement& read = of(tier).read;
  read.begin(container.row, ns_of(until), ns_of(from), INT64_MAX);
  for (;;) {
    const Result<bool> row = read.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return {};
    if (!points.takes(read.integer(0))) break;
    if (!in_memory(read.integer(5))) points.add(unpack(container, read));
  }
  read.stop();
  return {};
}

Result<std::vector<HistoryPoint>> SampleHistory::read(const ContainerRow& container, WallTime from,
                                                      WallTime until, int limit) {
  OldestPoints points(from, until, limit);
  for (const Tier tier : {Tier::coarse, Tier::medium, Tier::raw})
    if (Status done = read_tier(tier, container, from, until, points); !done)
      return std::unexpected(done.error());
  if (const auto found = open_.find(container.row); found != open_.end())
    for (const OpenBlock& block : found->second)
      if (points.takes(block.points.first_ns()))
        points.add(read_block(block.points.payload(), container.id).value());
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
Result<std::int64_t> SampleHistory::retire(Tier tier, const TierAges& ages, WallTime now) {
  const auto place = static_cast<std::size_t>(tier);
  const WallTime aged = now - ages[place], worth = aged - kStep[place] * kBlockPoints;
  Statement& list = of(tier).list;
  list.begin(kThinnedBlocks);
  std::int64_t count = 0;
  for (;; ++count) {
    const Result<bool> row = list.next();
    if (!row) return std::unexpected(row.error());
    if (!*row || list.integer(1) > ns_of(aged)) break;
    if (count == 0 && list.integer(0) > ns_of(worth)) break;
  }
  list.stop();
  if (count == 0) return 0;
  return tier == Tier::coarse ? drop_oldest(tier, count) : thin(tier, count);
}

Result<std::int64_t> SampleHistory::thin(Tier tier, std::int64_t count) {
  CHECK_INVARIANT(tier != Tier::coarse);
  const Result<RowSpan> span = span_of(tier);
  if (!span) return std::unexpected(span.error());
  const std::int64_t last = std::min(span->last, span->first + count - 1);
  std::vector<std::int64_t> containers;
  Statement& list = of(tier).containers;
  list.begin(last);
  const Status listed = list.each([&] { containers.push_back(list.integer(0)); });
  if (!listed) return std::unexpected(listed.error());
  for (const std::int64_t container : containers)
    if (Status done = thin_container(tier, container, last); !done)
      return std::unexpected(done.error());
  return drop_oldest(tier, count);
}

Status SampleHistory::thin_container(Tier tier, std::int64_t container, std::int64_t last_block) {
  const Tier next = tier == Tier::raw ? Tier::medium : Tier::coarse;
  Thinner thinner(kStep[static_cast<std::size_t>(tier)]);
  BlockWriter block;
  const auto put = [&](const std::optional<HistoryPoint>& point) -> Status {
    if (!point) return {};
    if (!block.accepts(point->time)) {
      if (auto written = write_block(next, container, block); !written)
        return std::unexpected(written.error());
      block = {};
    }
    block.add(*point);
    return {};
  };
  Statement& read = of(tier).read;
  read.begin(container, INT64_MAX, INT64_MIN, last_block);
  for (;;) {
    const Result<bool> row = read.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    for (const HistoryPoint& point : unpack({container, record_id(container)}, read))
      if (Status done = put(thinner.add(point)); !done) return done;
  }
  if (Status done = put(thinner.finish()); !done) return done;
  if (block.count() == 0) return {};
  if (auto written = write_block(next, container, block); !written)
    return std::unexpected(written.error());
  return {};
}

}  // namespace cgphase
