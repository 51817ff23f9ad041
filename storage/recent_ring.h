// Table recent: the open blocks as they grow, in rows that are written anew when nothing of them is
// needed any more (docs/internals/storage.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "storage/recent_pages.h"
#include "storage/sqlite.h"

namespace cgphase {

// What of an open block is in the file, and in which rows.
struct RecentPlace {
  std::uint64_t first_flush = 0;
  std::size_t stored_bytes = 0;
  std::vector<std::int64_t> slots;
};

// A flush is begin(), keep() of all blocks that go on, add() of the same, write(), all within the
// caller's transaction, and written() after its COMMIT. One that is not committed changes nothing.
class RecentRing {
 public:
  static Result<RecentRing> prepare(Connection& connection);
  // Within the caller's transaction, before the first flush.
  Status clear() { return clear_.run(); }

  void begin();
  void keep(const RecentPlace& place);
  // What `payload` has beyond what is stored; the place of it all.
  RecentPlace add(std::int64_t container, const RecentPlace& place, std::string_view payload);
  Status write();
  void written();

 private:
  std::int64_t slot_of(std::size_t page);
  Status shrink();

  Statement put_, shrink_, clear_;
  std::int64_t slot_count_ = 0;   // in the table: 1 to slot_count_
  std::int64_t most_needed_ = 0;  // of them, since it was last looked whether some can go
  std::uint64_t flush_ = 0;
  bool open_blocks_ = false;  // the table tells of some
  // Of the flush that has begun.
  std::optional<RecentPacker> packer_;
  std::vector<bool> kept_;           // by slot
  std::vector<std::int64_t> slots_;  // of its pages
  std::int64_t next_slot_count_ = 0, next_most_needed_ = 0;
  bool next_open_blocks_ = false;
};

// The open blocks that the table tells of and that are not in table block; `damaged` rises by what
// is missing.
Result<std::vector<RecentBlock>> read_recent(Connection& connection, std::uint64_t& damaged);

}  // namespace cgphase
