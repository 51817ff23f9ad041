// Table recent: pages from an untrusted writer, and what our writer makes of them over many
// flushes. From any pages the reader makes readable blocks, per container and in order, and these
// survive being packed again. A ring is written as the bytes of the input say. After each flush,
// also one that was rolled back, it has exactly the open blocks.
#include "storage/recent_ring.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string_view>

#include "base/check.h"
#include "base/crc32.h"
#include "storage/block.h"
#include "storage/schema.h"
#include "storage/varint.h"
#include "tests/storage/busy_point.h"

using namespace cgphase;

namespace {

constexpr CgroupId kId{42, 1};
constexpr std::size_t kSumBytes = 4, kLengthBytes = 2;
constexpr std::int64_t kContainers = 16;

// Each page is a length and that many bytes, padded with zeros; and the sum of the lengths.
std::vector<std::string> pages_of(std::string_view input) {
  std::vector<std::string> pages;
  while (input.size() > kLengthBytes) {
    const auto length = static_cast<std::size_t>(static_cast<unsigned char>(input[0])) << 8 |
                        static_cast<unsigned char>(input[1]);
    const std::string_view bytes = input.substr(kLengthBytes, length);
    input.remove_prefix(kLengthBytes + bytes.size());
    std::string page(kSumBytes, '\0');
    page.append(bytes.substr(0, kRecentPageBytes - kSumBytes)).resize(kRecentPageBytes);
    const std::uint32_t sum = crc32c(std::string_view(page).substr(kSumBytes));
    for (std::size_t i = 0; i < kSumBytes; ++i) page[i] = static_cast<char>(sum >> (8 * i));
    pages.push_back(std::move(page));
  }
  return pages;
}

void check_block(const RecentBlock& block) {
  CHECK_INVARIANT(block.container > 0);
  const auto points = read_block(block.payload, kId);
  CHECK_INVARIANT(points.has_value() && !points->empty());
  CHECK_INVARIANT(static_cast<std::int64_t>(points->size()) == block.count);
  CHECK_INVARIANT(points->front().time.time_since_epoch().count() == block.first_ns);
  CHECK_INVARIANT(points->back().time.time_since_epoch().count() == block.last_ns);
}

bool same_block(const RecentBlock& a, const RecentBlock& b) {
  return a.container == b.container && a.payload == b.payload && a.first_ns == b.first_ns &&
         a.last_ns == b.last_ns && a.count == b.count;
}

void check_packed_anew(const std::vector<RecentBlock>& blocks) {
  RecentPacker packer(blocks.size() + 1);
  // One container may have several blocks, from different flushes.
  for (std::uint64_t first = 1; const RecentBlock& block : blocks)
    packer.add(block.container, first++, 0, block.payload);
  RecentReader reader;
  for (const std::string& page : packer.finish()) reader.add(page);
  std::uint64_t damaged = 0;
  std::vector<RecentBlock> again = reader.blocks(damaged);
  CHECK_INVARIANT(damaged == 0 && again.size() == blocks.size());
  for (const RecentBlock& block : blocks)
    CHECK_INVARIANT(std::ranges::any_of(again, [&](const RecentBlock& other) {
      return same_block(block, other);
    }));
}

void check_foreign(std::string_view input) {
  RecentReader reader;
  for (const std::string& page : pages_of(input)) reader.add(page);
  reader.add(input);  // also bytes that are not a page
  std::uint64_t damaged = 0;
  const std::vector<RecentBlock> blocks = reader.blocks(damaged);
  CHECK_INVARIANT(damaged >= 1);
  for (const RecentBlock& block : blocks) check_block(block);
  CHECK_INVARIANT(std::ranges::is_sorted(blocks, {}, &RecentBlock::first_ns));
  check_packed_anew(blocks);
}

struct Open {
  BlockWriter writer;
  RecentPlace place, next_place;
  bool fresh = false;
};

class Written {
 public:
  Written() : connection_(std::move(*Connection::open(":memory:"))) {
    CHECK_INVARIANT(migrate(connection_, "memory", schema_steps()).has_value());
    Result<RecentRing> ring = RecentRing::prepare(connection_);
    CHECK_INVARIANT(ring.has_value());
    ring_ = std::move(*ring);
  }
  void add_points(std::int64_t container, std::uint64_t count) {
    for (; count > 0; --count) {
      Open& open = open_[container];
      const HistoryPoint point = test::busy_point(kId, ++second_);
      if (!open.writer.accepts(point.time)) open = {};
      open.writer.add(point);
      open.fresh = true;
    }
  }
  // As in SampleHistory: a block without new points is no longer open.
  void flush(bool commit) {
    Result<Transaction> transaction = Transaction::begin(connection_);
    CHECK_INVARIANT(transaction.has_value());
    ring_.begin();
    for (const auto& [container, open] : open_)
      if (open.fresh) ring_.keep(open.place);
    for (auto& [container, open] : open_)
      if (open.fresh)
        open.next_place = ring_.add(container, open.place, open.writer.payload());
    CHECK_INVARIANT(ring_.write().has_value());
    if (!commit) return;
    CHECK_INVARIANT(transaction->commit().has_value());
    ring_.written();
    std::erase_if(open_, [](const auto& entry) { return !entry.second.fresh; });
    for (auto& [container, open] : open_) {
      open.place = open.next_place;
      open.fresh = false;
    }
    stored_ = open_;
  }
  void check() {
    std::uint64_t damaged = 0;
    const auto blocks = read_recent(connection_, damaged);
    CHECK_INVARIANT(blocks.has_value() && damaged == 0 && blocks->size() == stored_.size());
    for (const RecentBlock& block : *blocks)
      CHECK_INVARIANT(block.payload == stored_.at(block.container).writer.payload());
  }

 private:
  Connection connection_;
  RecentRing ring_;
  std::map<std::int64_t, Open> open_, stored_;
  std::uint64_t second_ = 0;
};

void check_written(std::string_view input) {
  Written written;
  for (const char byte : input) {
    const auto word = static_cast<unsigned char>(byte);
    if (word >= 240) {
      written.flush(word < 250);
      written.check();
    } else {
      written.add_points(1 + word % kContainers, 1 + word / kContainers);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(bytes), size);
  check_foreign(input);
  constexpr std::size_t kLongestRun = 256;
  if (size <= kLongestRun) check_written(input);
  return 0;
}
