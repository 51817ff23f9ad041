// What came since the last flush, of all containers, packed into pages of one size; and open blocks
// put together again from them (docs/internals/storage.md, "A page of recent").
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace cgphase {

// With what SQLite puts beside it, one page of the file each; a row that is written anew with as
// many bytes as it had changes that page and no other.
inline constexpr std::size_t kRecentPageBytes = 4056;

// Packs one flush. `flush` is above that of every flush before it.
class RecentPacker {
 public:
  explicit RecentPacker(std::uint64_t flush);
  // The bytes from `start` on of the open block of `container` whose first bytes came with
  // `first_flush`. The pages they lie in: from <= page < to. Preconditions: container > 0, bytes.
  std::pair<std::size_t, std::size_t> add(std::int64_t container, std::uint64_t first_flush,
                                          std::size_t start, std::string_view bytes);
  // At least one, so that a flush without open blocks is one, too. Nothing may be added after.
  const std::vector<std::string>& finish();

 private:
  void begin_page();

  std::uint64_t flush_;
  std::vector<std::string> pages_;
};

// An open block as of the last flush.
struct RecentBlock {
  std::int64_t container = 0;
  std::string payload;
  std::int64_t first_ns = 0, last_ns = 0, count = 0;
};

// Takes the pages that are there, in any order, also those of flushes that are over.
class RecentReader {
 public:
  // A damaged page is counted, and left out.
  void add(std::string_view page);
  // Of each open block as much as is whole. `damaged` rises by each page, and by each block of
  // which something is missing. Where a page is damaged a block may be among them that is in table
  // block already.
  std::vector<RecentBlock> blocks(std::uint64_t& damaged) const;

 private:
  struct Piece {
    std::uint64_t flush = 0;
    std::size_t start = 0;
    std::string bytes;
  };
  using Key = std::pair<std::int64_t, std::uint64_t>;  // container, first flush

  std::map<Key, std::vector<Piece>> pieces_;
  std::uint64_t last_flush_ = 0, damaged_pages_ = 0;
};

}  // namespace cgphase
