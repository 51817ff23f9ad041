// A process that writes is killed at any moment; everything that was acknowledged must
// be there. The child reports through a pipe; nobody waits for time to pass.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <random>

#include "storage/store.h"
#include "tests/rounds.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// A sample a second: what came a flush interval and a tick ago is in the file without a flush().
constexpr std::uint64_t kMostLost =
    static_cast<std::uint64_t>(Store::kFlushInterval.count()) + 1;

// What the child says after each call that returned: how far the file is.
struct Acknowledged {
  std::uint64_t decision_id = 0;  // in the file with append()
  std::uint64_t flushed = 0;      // samples in the file with flush(), or by their age
};

constexpr Bytes kRoomy{64 * kMiB};

[[noreturn]] void write_forever(const std::string& path, int pipe_fd, bool flushes, Bytes cap) {
  Result<Store> store = Store::open({path, "boot-1", cap});
  if (!store) ::_exit(2);
  Acknowledged done;
  const auto before = store->last_decision_id();
  if (!before) ::_exit(3);
  const std::uint64_t first = *before + 1;
  for (std::uint64_t id = first;; ++id) {
    const auto second = static_cast<double>(id);
    const bool taken =
        store
            ->append({busy_point(kOne, id)}, {decision_of(kOne, id, at_second(second))},
                     {outcome_of(kOne, id, at_second(second))})
            .has_value();
    if (!taken) ::_exit(4);
    done.decision_id = id;
    if (!flushes) done.flushed = id - std::min(kMostLost, id);
    else if (id % 7 == 0 && store->flush()) done.flushed = id;
    if (::write(pipe_fd, &done, sizeof done) != sizeof done) ::_exit(5);
  }
}

// Kills the child after `reports` of its acknowledgements; all that were in the pipe count.
Acknowledged run_and_kill(const std::string& path, int reports, bool flushes,
                          Bytes cap = kRoomy) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe(ends.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(ends[0]);
    write_forever(path, ends[1], flushes, cap);
  }
  ::close(ends[1]);
  Acknowledged last;
  for (int i = 0; i < reports; ++i) REQUIRE(::read(ends[0], &last, sizeof last) == sizeof last);
  ::kill(child, SIGKILL);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  for (Acknowledged more; ::read(ends[0], &more, sizeof more) == sizeof more;) last = more;
  ::close(ends[0]);
  return last;
}

// Every id from `first_id` up to the last acknowledged one, each once.
void check_journal(Store& store, std::uint64_t first_id, std::uint64_t last_id) {
  const Result<std::uint64_t> newest = store.last_decision_id();
  REQUIRE(newest.has_value());
  CHECK(*newest >= last_id);
  CHECK(*newest <= last_id + 1);  // one may be written and not yet reported
  const auto rows = static_cast<int>(*newest + 1 - first_id);
  const auto decisions = read_decisions(store, kOne, WallTime::max(), rows);
  const auto outcomes = read_outcomes(store, kOne, WallTime::max(), rows);
  REQUIRE(decisions.has_value());
  REQUIRE(outcomes.has_value());
  REQUIRE(decisions->size() == static_cast<std::size_t>(rows));
  REQUIRE(outcomes->size() == static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < decisions->size(); ++i) {
    REQUIRE((*decisions)[i].decision.decision_id == *newest - i);
    REQUIRE((*outcomes)[i].outcome.decision_id == *newest - i);
  }
}

}  // namespace

TEST_CASE("200 times kill -9 lose no decision, and of samples a flush interval at most") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  constexpr unsigned kSeed = 20;
  std::mt19937 random(kSeed);
  std::vector<std::uint64_t> flushed_ranges;  // first and last sample id of each life
  std::uint64_t next_id = 1;
  constexpr int kLives = rounds(200);
  for (int life = 0; life < kLives; ++life) {
    CAPTURE(life);
    const int reports = 1 + static_cast<int>(random() % 120);
    const Acknowledged last = run_and_kill(path, reports, life % 2 == 0);
    Store store = open_store(path);
    CHECK_FALSE(store.quarantined().has_value());
    check_journal(store, next_id, last.decision_id);
    if (last.flushed >= next_id) {
      flushed_ranges.push_back(next_id);
      flushed_ranges.push_back(last.flushed);
    }
    next_id = *store.last_decision_id() + 1;
  }
  Store store = open_store(path);
  check_journal(store, 1, next_id - 1);
  for (std::size_t i = 0; i < flushed_ranges.size(); i += 2) {
    const auto from = static_cast<double>(flushed_ranges[i]);
    const auto until = static_cast<double>(flushed_ranges[i + 1]);
    const auto points = store.history(kOne, at_second(from), at_second(until + 0.5), 1 << 20);
    REQUIRE(points.has_value());
    REQUIRE(points->size() == flushed_ranges[i + 1] - flushed_ranges[i] + 1);
    for (std::size_t k = 0; k < points->size(); ++k)
      REQUIRE(same((*points)[k], busy_point(kOne, flushed_ranges[i] + k)));
  }
  CHECK(flushed_ranges.size() > kLives);
  CHECK(store.damaged_count() == 0);
}

// So small a file is checkpointed, thinned and cleared all the time.
TEST_CASE("kill -9 while the oldest make room loses nothing of the newest") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  constexpr Bytes kCap{2 * kMiB};
  constexpr std::uint64_t kNewest = 100;
  std::mt19937 random(21);
  std::uint64_t before = 0;
  constexpr int kLives = rounds(30);
  for (int life = 0; life < kLives; ++life) {
    CAPTURE(life);
    const int reports = 200 + static_cast<int>(random() % 1500);
    const Acknowledged last = run_and_kill(path, reports, life % 2 == 0, kCap);
    Store store = open_store(path, kCap);
    CHECK_FALSE(store.quarantined().has_value());
    CHECK(store.damaged_count() == 0);
    CHECK(store.size_bytes() <= kCap.value);
    REQUIRE(last.decision_id > before + kNewest);
    check_journal(store, last.decision_id - kNewest, last.decision_id);
    REQUIRE(last.flushed > kNewest);
    const std::uint64_t first = last.flushed - kNewest + 1;
    const auto points =
        store.history(kOne, at_second(static_cast<double>(first)),
                      at_second(static_cast<double>(last.flushed) + 0.5), 1 << 20);
    REQUIRE(points.has_value());
    REQUIRE(points->size() == kNewest);
    for (std::size_t k = 0; k < points->size(); ++k)
      REQUIRE(same((*points)[k], busy_point(kOne, first + k)));
    before = *store.last_decision_id();
  }
  // The oldest made room: otherwise nothing was proved.
  Store store = open_store(path, kCap);
  CHECK(read_decisions(store, kOne, WallTime::max(), 1 << 20)->size() < before);
}
