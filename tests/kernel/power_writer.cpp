// Runs in the machine of tests/kernel/power_cuts.py that loses power, and checks the result
// afterwards.
//
// power_writer write DEVICE CUT_AFTER: mounts the ext4 of DEVICE, checks the database on it and
// then writes to it forever, one decision and one sample for each second. The last sector of
// DEVICE, behind the file system, records what was acknowledged: "TAKEN DURABLE". TAKEN is the
// number of decisions for which append() has returned. DURABLE is the number of them that must
// survive a power cut, because a checkpoint of the -wal has ended since. After CUT_AFTER decisions
// it prints "cut".
//
// power_writer check FILE TAKEN DURABLE: exits with 0 if the database is whole. It must have every
// decision from the first to at least DURABLE and at most one beyond TAKEN. It must have all
// samples except those of the last kFlushInterval. Prints the number of decisions.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/fd.h"
#include "base/parse.h"
#include "storage/block.h"
#include "storage/store.h"
#include "tests/storage/busy_point.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr CgroupId kContainer{42, 1};
// With this cap the -wal is checkpointed every 512 pages, and 8192 decisions are kept.
constexpr Bytes kCap{16 * kMiB};
constexpr std::uint64_t kMostDecisions = 8000;
constexpr std::size_t kSectorBytes = 512, kAlignment = 4096;
constexpr const char* kFolder = "/run/power";

int failed(const std::string& what) {
  std::printf("FAILED: %s\n", what.c_str());
  return 1;
}

WallTime time_of(std::uint64_t id) { return at_second(static_cast<double>(id)); }

JournalDecision decision(std::uint64_t id) {
  JournalDecision entry{.time = time_of(id), .decision = {}};
  entry.decision.container = kContainer;
  entry.decision.decision_id = id;
  return entry;
}

Result<Store> open_store(const std::string& path) {
  return Store::open({.path = path, .boot_id = "boot", .cap = kCap});
}

// Samples that a power cut may lose.
constexpr auto kHeld = static_cast<std::uint64_t>(Store::kFlushInterval.count()) + 1;

// Checks that each sample is as measured, without gaps except those that a power cut left. Returns
// the second of the last sample.
Result<std::uint64_t> last_sample(Store& store) {
  const auto points = store.history(kContainer, WallTime::min(), WallTime::max(), kMostDecisions);
  if (!points) return std::unexpected(points.error());
  std::uint64_t last = 0;
  for (const HistoryPoint& point : *points) {
    const auto since = std::chrono::floor<std::chrono::seconds>(point.time - time_of(0));
    const auto second = static_cast<std::uint64_t>(since.count());
    const HistoryPoint expected = busy_point(kContainer, second);
    if (point.time != expected.time || to_columns(point) != to_columns(expected))
      return failure(ErrorKind::io, "sample " + std::to_string(second) + " is another");
    if (second <= last || second > last + 1 + kHeld)
      return failure(ErrorKind::io, "sample " + std::to_string(second) + " follows " +
                                        std::to_string(last));
    last = second;
  }
  return last;
}

// Checks the store and returns the number of its last decision.
Result<std::uint64_t> look(Store& store, std::uint64_t taken, std::uint64_t durable) {
  const auto wrong = [](const std::string& text) { return failure(ErrorKind::io, text); };
  if (store.quarantined()) return wrong("the file was treated as corrupt");
  const auto decisions = store.entries({.id = kContainer}, WallTime::max(), kMostDecisions);
  if (!decisions) return std::unexpected(decisions.error());
  std::uint64_t last = decisions->size();
  for (std::uint64_t expected = last; const JournalEntry& one : *decisions)
    if (one.decision.decision.decision_id != expected--)
      return wrong("a decision is missing in between");
  if (last < durable)
    return wrong(std::to_string(last) + " decisions, but a checkpoint ended after " +
                 std::to_string(durable));
  if (last > taken + 1)
    return wrong(std::to_string(last) + " decisions, but " + std::to_string(taken) + " were taken");
  const auto sample = last_sample(store);
  if (!sample) return sample;
  if (*sample + kHeld < last || *sample > last)
    return wrong("the last sample is " + std::to_string(*sample) + ", the last decision " +
                 std::to_string(last));
  if (store.damaged_count() != 0) return wrong("the database has damaged blocks or rows");
  return last;
}

int check(const std::string& path, std::uint64_t taken, std::uint64_t durable) {
  struct stat file {};
  const bool there = ::stat(path.c_str(), &file) == 0;
  if (!there && durable > 0) return failed("there is no " + path);
  Result<Store> store = open_store(path);
  if (!store) return failed(store.error().text);
  const auto last = look(*store, taken, durable);
  if (!last) return failed(last.error().text);
  std::printf("%llu\n", static_cast<unsigned long long>(*last));
  return 0;
}

// Written past the page cache and the file system, so that it reaches the device in order.
class Marks {
 public:
  explicit Marks(const std::string& device)
      : fd_(::open(device.c_str(), O_WRONLY | O_DIRECT | O_CLOEXEC)),
        at_(::lseek(fd_.get(), 0, SEEK_END) - static_cast<off_t>(kSectorBytes)) {}
  bool tell(std::uint64_t taken, std::uint64_t durable) {
    std::snprintf(sector_.data(), sector_.size(), "%llu %llu\n",
                  static_cast<unsigned long long>(taken), static_cast<unsigned long long>(durable));
    return ::pwrite(fd_.get(), sector_.data(), sector_.size(), at_) ==
           static_cast<ssize_t>(sector_.size());
  }

 private:
  Fd fd_;
  off_t at_;
  alignas(kAlignment) std::array<char, kSectorBytes> sector_{};
};

// The number in the -wal's header that rises when the -wal restarts. At that moment all its earlier
// content is in the database, and both are synced.
std::array<char, 4> wal_sequence(const std::string& path) {
  constexpr off_t kSequenceAt = 12;
  std::array<char, 4> sequence{};
  const Fd wal(::open((path + "-wal").c_str(), O_RDONLY | O_CLOEXEC));
  if (::pread(wal.get(), sequence.data(), sequence.size(), kSequenceAt) < 0) sequence.fill(0);
  return sequence;
}

int write_forever(const std::string& device, std::uint64_t cut_after) {
  if (::mkdir(kFolder, 0755) != 0 ||
      ::mount(device.c_str(), kFolder, "ext4", 0, nullptr) != 0)
    return failed(device + " cannot be mounted: " + std::strerror(errno));
  const std::string path = std::string(kFolder) + "/h.db";
  Result<Store> store = open_store(path);
  if (!store) return failed(store.error().text);
  // The present content counts as durable only after the next checkpoint.
  const auto before = look(*store, kMostDecisions, 0);
  if (!before) return failed(before.error().text);
  Marks marks(device);
  std::uint64_t durable = 0;
  auto sequence = wal_sequence(path);
  for (std::uint64_t id = *before + 1; id < kMostDecisions; ++id) {
    if (const auto taken = store->append({busy_point(kContainer, id)}, {decision(id)}, {}); !taken)
      return failed(taken.error().text);
    if (const auto now = wal_sequence(path); now != sequence) {
      sequence = now;
      durable = id - 1;
    }
    if (!marks.tell(id, durable)) return failed("the mark on the device cannot be written");
    if (id == *before + cut_after) {
      std::puts("cut");
      std::fflush(stdout);
    }
  }
  return failed("the power was not cut");
}

}  // namespace

int main(int count, char** words) {
  const std::string verb = count > 1 ? words[1] : "";
  if (verb == "write" && count == 4) return write_forever(words[2], *parse_u64(words[3]));
  if (verb == "check" && count == 5)
    return check(words[2], *parse_u64(words[3]), *parse_u64(words[4]));
  std::fputs("usage: power_writer write DEVICE CUT_AFTER | check FILE TAKEN DURABLE\n", stderr);
  return 2;
}
