#include "storage/sample_history.h"

#include <algorithm>
#include <iterator>

#include "base/crc32.h"

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

Result<SampleHistory> SampleHistory::open(Connection& connection) {
  SampleHistory history;
  const std::pair<Statement*, const char*> wanted[] = {
      {&history.add_block_,
       "INSERT INTO block (container,first_ns,last_ns,point_count,crc32c,payload)"
       " VALUES (?,?,?,?,?,?)"},
      {&history.put_tail_,
       "INSERT INTO tail (container,first_ns,last_ns,point_count,crc32c,payload)"
       " VALUES (?,?,?,?,?,?) ON CONFLICT (container) DO UPDATE SET first_ns=excluded.first_ns,"
       "last_ns=excluded.last_ns,point_count=excluded.point_count,crc32c=excluded.crc32c,"
       "payload=excluded.payload"},
      {&history.drop_tail_, "DELETE FROM tail WHERE container = ?"},
      {&history.read_blocks_,
       "SELECT first_ns,last_ns,point_count,crc32c,payload FROM block"
       " WHERE container = ? AND first_ns <= ? AND last_ns >= ? ORDER BY first_ns, block"},
      {&history.block_span_, "SELECT min(block), max(block) FROM block"},
      {&history.drop_blocks_, "DELETE FROM block WHERE block < ?"},
  };
  for (const auto& [statement, sql] : wanted) {
    Result<Statement> prepared = connection.prepare(sql);
    if (!prepared) return std::unexpected(prepared.error());
    *statement = std::move(*prepared);
  }
  const Status adopted = connection.execute(
      "BEGIN IMMEDIATE;"
      "INSERT INTO block (container,first_ns,last_ns,point_count,crc32c,payload)"
      " SELECT container,first_ns,last_ns,point_count,crc32c,payload FROM tail ORDER BY first_ns;"
      "DELETE FROM tail; COMMIT");
  if (!adopted) {
    if (connection.in_transaction()) static_cast<void>(connection.execute("ROLLBACK"));
    return std::unexpected(adopted.error());
  }
  return history;
}

void SampleHistory::add(std::int64_t container, const HistoryPoint& point) {
  Tail& tail = tails_[container];
  if (!tail.open.accepts(point.time)) {
    tail.sealed.push_back(std::move(tail.open));
    tail.open = BlockWriter();
    ++sealed_count_;
  }
  tail.open.add(point);
  tail.dirty = true;
  if (!oldest_unflushed_) oldest_unflushed_ = point.time;
}

bool SampleHistory::flush_due(WallTime now) const {
  return sealed_count_ >= kMaxSealedBlocks ||
         (oldest_unflushed_ && far_apart(*oldest_unflushed_, now));
}

Status SampleHistory::write_block(std::int64_t container, const BlockWriter& block) {
  return add_block_.run(
      container, block.first_ns(), block.last_ns(), block.count(),
      block_checksum(container, block.first_ns(), block.last_ns(), block.count(), block.payload()),
      Blob{block.payload()});
}

// A container without new points since the last flush has most likely ended: its tail becomes a
// block and leaves memory. If it comes back it begins a new block.
Status SampleHistory::store(std::int64_t container, Tail& tail) {
  for (const BlockWriter& block : tail.sealed)
    if (Status written = write_block(container, block); !written) return written;
  if (tail.dirty)
    return put_tail_.run(container, tail.open.first_ns(), tail.open.last_ns(), tail.open.count(),
                         block_checksum(container, tail.open.first_ns(), tail.open.last_ns(),
                                  tail.open.count(), tail.open.payload()),
                         Blob{tail.open.payload()});
  if (Status written = write_block(container, tail.open); !written) return written;
  return drop_tail_.run(container);
}

Status SampleHistory::flush() {
  for (auto& [container, tail] : tails_)
    if (Status stored = store(container, tail); !stored) return stored;
  return {};
}

void SampleHistory::flushed() {
  std::erase_if(tails_, [](const auto& entry) { return !entry.second.dirty; });
  for (auto& [container, tail] : tails_) {
    tail.sealed.clear();
    tail.dirty = false;
  }
  sealed_count_ = 0;
  oldest_unflushed_.reset();
}

void SampleHistory::select(const ContainerRow& container, std::string_view payload,
                           std::int64_t from_ns, std::int64_t until_ns,
                           std::vector<HistoryPoint>& points) {
  Result<std::vector<HistoryPoint>> block = read_block(payload, container.id);
  if (!block) {
    ++damaged_blocks_;
    return;
  }
  std::copy_if(block->begin(), block->end(), std::back_inserter(points),
               [&](const HistoryPoint& point) {
                 return ns_of(point.time) >= from_ns && ns_of(point.time) <= until_ns;
               });
}

Result<std::vector<HistoryPoint>> SampleHistory::read(const ContainerRow& container, WallTime from,
                                                      WallTime until, int limit) {
  std::vector<HistoryPoint> points;
  const std::size_t wanted = limit > 0 ? static_cast<std::size_t>(limit) : 0;
  const std::int64_t from_ns = ns_of(from), until_ns = ns_of(until);
  read_blocks_.begin(container.row, until_ns, from_ns);
  while (points.size() < wanted) {
    const Result<bool> row = read_blocks_.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    const std::string_view payload = read_blocks_.blob(4);
    if (block_checksum(container.row, read_blocks_.integer(0), read_blocks_.integer(1),
                 read_blocks_.integer(2), payload) == read_blocks_.integer(3))
      select(container, payload, from_ns, until_ns, points);
    else
      ++damaged_blocks_;
  }
  read_blocks_.stop();
  // What table tail holds of a live container is the beginning of what memory holds.
  if (const auto tail = tails_.find(container.row); tail != tails_.end()) {
    for (const BlockWriter& block : tail->second.sealed)
      select(container, block.payload(), from_ns, until_ns, points);
    select(container, tail->second.open.payload(), from_ns, until_ns, points);
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const HistoryPoint& a, const HistoryPoint& b) { return a.time < b.time; });
  if (points.size() > wanted) points.resize(wanted);
  return points;
}

// Blocks are only ever deleted from the front, so their row ids leave no gaps.
Result<std::int64_t> SampleHistory::drop_oldest(std::int64_t count) {
  block_span_.begin();
  const Result<bool> row = block_span_.next();
  if (!row) return std::unexpected(row.error());
  const bool empty = !*row || block_span_.is_null(0);
  const std::int64_t first = block_span_.integer(0), last = block_span_.integer(1);
  block_span_.stop();
  if (empty) return 0;
  const std::int64_t dropped = std::min(count, last - first + 1);
  if (Status done = drop_blocks_.run(first + dropped); !done) return std::unexpected(done.error());
  return dropped;
}

}  // namespace cgphase
