#include "storage/recent_pages.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/crc32.h"
#include "storage/block.h"
#include "storage/varint.h"

namespace cgphase {
namespace {

constexpr std::size_t kSumBytes = 4, kFlushBytes = 8, kHeaderBytes = kSumBytes + kFlushBytes;
// Container, flushes since the block's first, start, length; a page with less room is full.
constexpr std::size_t kLargestEntryHeader = 4 * kLargestVarint, kSmallestRoom = 64;
static_assert(kSmallestRoom > kLargestEntryHeader);

void put_number(char* to, std::uint64_t number, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) to[i] = static_cast<char>(number >> (8 * i));
}

std::uint64_t get_number(std::string_view bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    number = number << 8 | static_cast<unsigned char>(bytes[i]);
  return number;
}

}  // namespace

RecentPacker::RecentPacker(std::uint64_t flush) : flush_(flush) { begin_page(); }

void RecentPacker::begin_page() {
  std::string& page = pages_.emplace_back();
  page.reserve(kRecentPageBytes);
  page.resize(kHeaderBytes);
  put_number(page.data() + kSumBytes, flush_, kFlushBytes);
}

std::pair<std::size_t, std::size_t> RecentPacker::add(std::int64_t container,
                                                      std::uint64_t first_flush, std::size_t start,
                                                      std::string_view bytes) {
  CHECK_INVARIANT(container > 0 && first_flush <= flush_ && !bytes.empty());
  if (kRecentPageBytes - pages_.back().size() < kSmallestRoom) begin_page();
  const std::size_t first_page = pages_.size() - 1;
  for (;;) {
    std::string& page = pages_.back();
    const std::size_t room = kRecentPageBytes - page.size() - kLargestEntryHeader;
    const std::string_view piece = bytes.substr(0, std::min(room, bytes.size()));
    std::array<char, kLargestEntryHeader> header;
    char* end = header.data();
    for (const std::uint64_t number : {static_cast<std::uint64_t>(container), flush_ - first_flush,
                                       std::uint64_t{start}, std::uint64_t{piece.size()}})
      end = encode_varint(end, number);
    page.append(header.data(), end).append(piece);
    start += piece.size();
    bytes.remove_prefix(piece.size());
    if (bytes.empty()) return {first_page, pages_.size()};
    begin_page();
  }
}

const std::vector<std::string>& RecentPacker::finish() {
  for (std::string& page : pages_) {
    page.resize(kRecentPageBytes);
    put_number(page.data(), crc32c(std::string_view(page).substr(kSumBytes)), kSumBytes);
  }
  return pages_;
}

void RecentReader::add(std::string_view page) {
  if (page.size() != kRecentPageBytes ||
      get_number(page.substr(0, kSumBytes)) != crc32c(page.substr(kSumBytes))) {
    ++damaged_pages_;
    return;
  }
  const std::uint64_t flush = get_number(page.substr(kSumBytes, kFlushBytes));
  last_flush_ = std::max(last_flush_, flush);
  Cursor cursor(page.substr(kHeaderBytes));
  while (!cursor.at_end()) {
    const std::uint64_t container = cursor.varint();
    if (container == 0) return;  // the rest of a page is zeros
    const std::uint64_t flushes = cursor.varint(), start = cursor.varint();
    const std::string_view bytes = cursor.bytes(cursor.varint());
    // No row has such a number, and no block began after its page was written.
    if (!cursor.sound() || container > INT64_MAX || flushes > flush) {
      ++damaged_pages_;
      return;
    }
    pieces_[{static_cast<std::int64_t>(container), flush - flushes}].push_back(
        {flush, static_cast<std::size_t>(start), std::string(bytes)});
  }
}

namespace {

// The bytes that hang together from the first on, and where those of each flush end.
struct Assembled {
  std::string payload;
  std::vector<std::size_t> ends;
  bool whole = true;
};

template <class Pieces>
Assembled assemble(Pieces pieces) {
  std::ranges::sort(pieces, {}, [](const auto& piece) {
    return std::pair(piece.flush, piece.start);
  });
  Assembled block;
  std::uint64_t flush = 0;
  for (const auto& piece : pieces) {
    if (piece.start != block.payload.size()) {
      block.whole = false;
      return block;
    }
    if (block.ends.empty() || piece.flush != flush) block.ends.push_back(0);
    flush = piece.flush;
    block.payload += piece.bytes;
    block.ends.back() = block.payload.size();
  }
  return block;
}

}  // namespace

// Each open block got points with the last flush, for else it would have been closed with it. Where
// a page is missing that may be the one that tells so.
std::vector<RecentBlock> RecentReader::blocks(std::uint64_t& damaged) const {
  damaged += damaged_pages_;
  const std::uint64_t oldest_last = last_flush_ - (damaged_pages_ != 0 ? 1 : 0);
  std::vector<RecentBlock> blocks;
  for (const auto& [key, pieces] : pieces_) {
    if (std::ranges::max(pieces, {}, &Piece::flush).flush < oldest_last) continue;
    Assembled block = assemble(pieces);
    // What a flush brought ends with a whole point.
    while (!block.ends.empty()) {
      block.payload.resize(block.ends.back());
      if (const auto points = read_block(block.payload, {})) {
        const auto ns = [](const HistoryPoint& point) {
          return point.time.time_since_epoch().count();
        };
        blocks.push_back({key.first, std::move(block.payload), ns(points->front()),
                          ns(points->back()), static_cast<std::int64_t>(points->size())});
        break;
      }
      block.whole = false;
      block.ends.pop_back();
    }
    if (!block.whole) ++damaged;
  }
  std::ranges::sort(blocks, {}, &RecentBlock::first_ns);
  return blocks;
}

}  // namespace cgphase
