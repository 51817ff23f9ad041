#include "storage/sample_history.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/crc32.h"
#include "storage/thinning.h"

namespace cgphase {
namespace {

// kFlushInterval in either direction: the wall clock may have been set back.
bool far_apart(WallTime a, WallTime b) { return (a > b ? a - b : b - a) >= Store::kFlushInterval; }

}  // namespace

std::int64_t block_checksum(std::int64_t container, std::int64_t first_ns, std::int64_t last_ns,
                            std::int64_t count, std::string_view payload) {
  const std::string columns = std::to_string(container) + ' ' + std::to_string(first_ns) + ' ' +
                              std::to_string(last_ns) + ' ' + std::to_string(count);
  return std::int64_t{crc32c(payload, crc32c(columns))};
}

// Statements on a table of blocks, but for its name.
Status SampleHistory::prepare_blocks(Connection& connection) {
  static constexpr std::array kTables = {"block", "medium", "coarse"};
  static_assert(kTables.size() == kTiers);
  const std::string columns = "first_ns,last_ns,point_count,crc32c,payload";
  for (std::size_t tier = 0; tier < kTiers; ++tier) {
    const std::string table = kTables[tier];
    Blocks& blocks = blocks_[tier];
    const std::pair<Statement*, std::string> wanted[] = {
        {&blocks.add, "INSERT INTO " + table + " (container," + columns + ") VALUES (?,?,?,?,?,?)"},
        {&blocks.read, "SELECT " + columns + " FROM " + table +
                           " WHERE container = ? AND first_ns <= ? AND last_ns >= ?"
                           " ORDER BY first_ns, block"},
        {&blocks.span, row_span_sql(table)},
        {&blocks.drop, "DELETE FROM " + table + " WHERE block < ?"},
        {&blocks.list, "SELECT block,first_ns,last_ns FROM " + table + " ORDER BY block LIMIT ?"},
        {&blocks.containers, "SELECT DISTINCT container FROM " + table + " WHERE block <= ?"},
        {&blocks.read_prefix, "SELECT " + columns + " FROM " + table +
                                  " WHERE container = ? AND block <= ? ORDER BY first_ns, block"},
        {&blocks.last, "SELECT " + columns + " FROM " + table +
                           " WHERE container = ? ORDER BY first_ns DESC LIMIT 1"},
    };
    for (const auto& [statement, sql] : wanted) {
      Result<Statement> prepared = connection.prepare(sql);
      if (!prepared) return std::unexpected(prepared.error());
      *statement = std::move(*prepared);
    }
  }
  return {};
}

Result<SampleHistory> SampleHistory::prepare(Connection& connection) {
  SampleHistory history;
  if (Status ready = history.prepare_blocks(connection); !ready)
    return std::unexpected(ready.error());
  Result<RecentRing> recent = RecentRing::prepare(connection);
  if (!recent) return std::unexpected(recent.error());
  history.recent_ = std::move(*recent);
  return history;
}

SampleHistory::Memory SampleHistory::leave() {
  Memory kept;
  kept.tails_ = std::exchange(tails_, {});
  kept.oldest_unflushed_ = oldest_unflushed_;
  kept.sealed_count_ = std::exchange(sealed_count_, 0);
  return kept;
}

void SampleHistory::go_on(Memory kept, const Rows& rows) {
  for (auto& [container, tail] : kept.tails_) {
    tail.place = {};
    tails_[rows.at(container)] = std::move(tail);
  }
  oldest_unflushed_ = kept.oldest_unflushed_;
  sealed_count_ = kept.sealed_count_;
  left_.reset();
  overdue_ = !tails_.empty();
}

bool SampleHistory::has(const Memory& kept, const Rows& rows, const RecentBlock& block) {
  return std::ranges::any_of(kept.tails_, [&](const auto& entry) {
    const auto& [container, tail] = entry;
    const auto same = [&](const BlockWriter& other) {
      return other.count() > 0 && other.first_ns() == block.first_ns;
    };
    return rows.at(container) == block.container &&
           (same(tail.open) || std::ranges::any_of(tail.sealed, same));
  });
}

Status SampleHistory::adopt(Connection& connection, const Memory& kept, const Rows& rows) {
  damaged_recent_ = 0;  // of an attempt before this one
  Result<std::vector<RecentBlock>> left = read_recent(connection, damaged_recent_);
  if (!left) return std::unexpected(left.error());
  std::erase_if(*left, [&](const RecentBlock& block) { return has(kept, rows, block); });
  left_ = *std::move(left);
  overdue_ = true;
  return store_left();
}

Status SampleHistory::store_left() {
  if (!left_) return {};
  if (Status cleared = recent_.clear(); !cleared) return cleared;
  for (const RecentBlock& block : *left_)
    if (Status written = of(Tier::raw).add.run(
            block.container, block.first_ns, block.last_ns, block.count,
            block_checksum(block.container, block.first_ns, block.last_ns, block.count,
                           block.payload),
            Blob{block.payload});
        !written)
      return written;
  return {};
}

void SampleHistory::add(std::span<const std::int64_t> containers,
                        std::span<const HistoryPoint> points) {
  auto at = tails_.begin();
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (at == tails_.end() || at->first != containers[i])
      at = tails_.try_emplace(containers[i]).first;
    add(at->second, points[i]);
    ++at;
  }
}

void SampleHistory::add(Tail& tail, const HistoryPoint& point) {
  if (!tail.open.accepts(point.time)) seal(tail);
  tail.open.add(point);
  tail.dirty = true;
  if (!oldest_unflushed_) oldest_unflushed_ = point.time;
}

void SampleHistory::seal(Tail& tail) {
  tail.sealed.push_back(std::move(tail.open));
  tail.open = BlockWriter();
  tail.place = {};
  ++sealed_count_;
}

// An open block that got no point since the last call may be of a container that has ended: it is
// sealed, so that it can go. More than necessary goes, so that this is not called for each point.
std::uint64_t SampleHistory::keep_in_memory(WallTime now) {
  for (auto& [container, tail] : tails_) {
    if (!tail.dirty && tail.open.count() > 0) seal(tail);
    tail.dirty = false;
  }
  oldest_unflushed_ = now;
  overdue_ = false;
  std::uint64_t dropped = 0;
  if (sealed_count_ >= kMaxSealedBlocks)
    while (sealed_count_ > kMaxSealedBlocks - kMaxSealedBlocks / 8) dropped += drop_oldest_sealed();
  return dropped;
}

std::uint64_t SampleHistory::drop_oldest_sealed() {
  const auto begin_of = [](const auto& entry) {
    return entry.second.sealed.empty() ? INT64_MAX : entry.second.sealed.front().first_ns();
  };
  const auto oldest = std::ranges::min_element(tails_, {}, begin_of);
  Tail& tail = oldest->second;
  const auto points = static_cast<std::uint64_t>(tail.sealed.front().count());
  tail.sealed.erase(tail.sealed.begin());
  --sealed_count_;
  if (tail.sealed.empty() && tail.open.count() == 0) tails_.erase(oldest);
  return points;
}

bool SampleHistory::flush_due(WallTime now) const {
  return overdue_ || sealed_count_ >= kMaxSealedBlocks ||
         (oldest_unflushed_ && far_apart(*oldest_unflushed_, now));
}

Status SampleHistory::write_block(Tier tier, std::int64_t container, const BlockWriter& block) {
  return of(tier).add.run(
      container, block.first_ns(), block.last_ns(), block.count(),
      block_checksum(container, block.first_ns(), block.last_ns(), block.count(), block.payload()),
      Blob{block.payload()});
}

// A container without new points since the last flush has most likely ended: its open block becomes
// a block and leaves memory. If it comes back it begins a new one.
Status SampleHistory::store(std::int64_t container, Tail& tail) {
  for (const BlockWriter& block : tail.sealed)
    if (Status written = write_block(Tier::raw, container, block); !written) return written;
  if (tail.dirty)
    tail.next_place = recent_.add(container, tail.place, tail.open.payload());
  else if (tail.open.count() > 0)
    return write_block(Tier::raw, container, tail.open);
  return {};
}

Status SampleHistory::flush() {
  if (Status stored = store_left(); !stored) return stored;
  recent_.begin();
  for (const auto& [container, tail] : tails_)
    if (tail.dirty) recent_.keep(tail.place);
  for (auto& [container, tail] : tails_)
    if (Status stored = store(container, tail); !stored) return stored;
  return recent_.write();
}

void SampleHistory::flushed() {
  recent_.written();
  left_.reset();
  std::erase_if(tails_, [](const auto& entry) { return !entry.second.dirty; });
  for (auto& [container, tail] : tails_) {
    tail.sealed.clear();
    tail.place = std::exchange(tail.next_place, {});
    tail.dirty = false;
  }
  sealed_count_ = 0;
  oldest_unflushed_.reset();
  overdue_ = false;
}

void SampleHistory::select(const ContainerRow& container, std::int64_t first_ns,
                           std::string_view payload, OldestPoints& points) {
  if (!points.takes(first_ns)) return;
  Result<std::vector<HistoryPoint>> block = read_block(payload, container.id);
  if (block)
    points.add(*std::move(block));
  else
    damaged_blocks_.emplace(container.row, 0);  // what is packed in memory has no first time here
}

std::vector<HistoryPoint> SampleHistory::unpack(const ContainerRow& container,
                                                const Statement& row) {
  const std::string_view payload = row.blob(4);
  if (block_checksum(container.row, row.integer(0), row.integer(1), row.integer(2), payload) ==
      row.integer(3))
    if (Result<std::vector<HistoryPoint>> points = read_block(payload, container.id))
      return *std::move(points);
  damaged_blocks_.emplace(container.row, row.integer(0));
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

Result<std::vector<HistoryPoint>> SampleHistory::read(const ContainerRow& container, WallTime from,
                                                      WallTime until, int limit) {
  OldestPoints points(from, until, limit);
  for (const Tier tier : {Tier::coarse, Tier::medium, Tier::raw})
    if (Status done = read_tier(tier, container, from, until, points); !done)
      return std::unexpected(done.error());
  if (left_)
    for (const RecentBlock& block : *left_)
      if (block.container == container.row)
        select(container, block.first_ns, block.payload, points);
  // What table recent holds is in memory, too.
  if (const auto found = tails_.find(container.row); found != tails_.end()) {
    const Tail& tail = found->second;
    for (const BlockWriter& block : tail.sealed)
      select(container, block.first_ns(), block.payload(), points);
    if (tail.open.count() > 0)
      select(container, tail.open.first_ns(), tail.open.payload(), points);
  }
  return points.take();
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

Result<std::int64_t> SampleHistory::drop_oldest(std::int64_t count) {
  for (const Tier tier : {Tier::coarse, Tier::medium, Tier::raw})
    if (const Result<std::int64_t> dropped = drop_oldest(tier, count); !dropped || *dropped > 0)
      return dropped;
  return 0;
}

// Blocks whose times are ahead of the clock have no age: they stay, with what came after them,
// until the clock is past them or the cap is near.
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

// Usage is counted from the last point of the next tier, which is the one before the first here.
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
