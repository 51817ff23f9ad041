#include "storage/recent_ring.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace cgphase {
namespace {

// Blocks of containers that began together are full together, so what is needed goes up and down.
constexpr std::uint64_t kFlushesOfOneShrink = 64;

}  // namespace

Result<RecentRing> RecentRing::prepare(Connection& connection) {
  RecentRing ring;
  const std::pair<Statement*, const char*> wanted[] = {
      {&ring.put_,
       "INSERT INTO recent (slot,page) VALUES (?,?)"
       " ON CONFLICT (slot) DO UPDATE SET page=excluded.page"},
      {&ring.shrink_, "DELETE FROM recent WHERE slot > ?"},
      {&ring.clear_, "DELETE FROM recent"},
  };
  for (const auto& [statement, sql] : wanted) {
    Result<Statement> prepared = connection.prepare(sql);
    if (!prepared) return std::unexpected(prepared.error());
    *statement = std::move(*prepared);
  }
  return ring;
}

void RecentRing::begin() {
  packer_.emplace(flush_ + 1);
  kept_.assign(static_cast<std::size_t>(slot_count_) + 1, false);
  slots_.clear();
  next_open_blocks_ = false;
}

void RecentRing::keep(const RecentPlace& place) {
  CHECK_INVARIANT(slots_.empty());
  for (const std::int64_t slot : place.slots) kept_[static_cast<std::size_t>(slot)] = true;
}

// The lowest that nobody needs.
std::int64_t RecentRing::slot_of(std::size_t page) {
  while (slots_.size() <= page) {
    std::int64_t slot = slots_.empty() ? 1 : slots_.back() + 1;
    while (slot <= slot_count_ && kept_[static_cast<std::size_t>(slot)]) ++slot;
    slots_.push_back(slot);
  }
  return slots_[page];
}

RecentPlace RecentRing::add(std::int64_t container, const RecentPlace& place,
                            std::string_view payload) {
  RecentPlace next = place;
  if (place.slots.empty()) next.first_flush = flush_ + 1;
  const auto [from, to] = packer_->add(container, next.first_flush, place.stored_bytes,
                                       payload.substr(place.stored_bytes));
  next.stored_bytes = payload.size();
  for (std::size_t page = from; page < to; ++page) next.slots.push_back(slot_of(page));
  next_open_blocks_ = true;
  return next;
}

Status RecentRing::write() {
  next_slot_count_ = slot_count_;
  next_most_needed_ = most_needed_;
  if (!next_open_blocks_ && !open_blocks_) return {};
  const std::vector<std::string>& pages = packer_->finish();
  for (std::size_t page = 0; page < pages.size(); ++page)
    if (Status put = put_.run(slot_of(page), Blob{pages[page]}); !put) return put;
  next_slot_count_ = std::max(slot_count_, slots_.back());
  return shrink();
}

// Gives back what was not needed for a while.
Status RecentRing::shrink() {
  std::int64_t needed = slots_.back();
  for (std::int64_t slot = slot_count_; slot > needed; --slot)
    if (kept_[static_cast<std::size_t>(slot)]) needed = slot;
  next_most_needed_ = std::max(most_needed_, needed);
  if ((flush_ + 1) % kFlushesOfOneShrink != 0) return {};
  const std::int64_t most = std::exchange(next_most_needed_, needed);
  if (next_slot_count_ <= 2 * most) return {};
  next_slot_count_ = most;
  return shrink_.run(most);
}

void RecentRing::written() {
  slot_count_ = next_slot_count_;
  most_needed_ = next_most_needed_;
  ++flush_;
  open_blocks_ = next_open_blocks_;
  packer_.reset();
}

Result<std::vector<RecentBlock>> read_recent(Connection& connection, std::uint64_t& damaged) {
  Result<Statement> pages = connection.prepare("SELECT page FROM recent");
  if (!pages) return std::unexpected(pages.error());
  RecentReader reader;
  pages->begin();
  for (;;) {
    const Result<bool> row = pages->next();
    if (!row) return std::unexpected(row.error());
    if (!*row) break;
    reader.add(pages->blob(0));
  }
  std::vector<RecentBlock> blocks = reader.blocks(damaged);
  Result<Statement> find =
      connection.prepare("SELECT 1 FROM block WHERE container = ? AND first_ns = ?");
  if (!find) return std::unexpected(find.error());
  std::vector<RecentBlock> open;
  for (RecentBlock& block : blocks) {
    find->begin(block.container, block.first_ns);
    const Result<bool> row = find->next();
    if (!row) return std::unexpected(row.error());
    find->stop();
    if (!*row) open.push_back(std::move(block));
  }
  return open;
}

}  // namespace cgphase
