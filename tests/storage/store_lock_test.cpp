// A history that another process has locked when the daemon starts.
#include <doctest/doctest.h>

#include <future>
#include <nlohmann/json.hpp>
#include <optional>

#include "storage/sqlite.h"
#include "storage/store_thread.h"
#include "tests/storage/busy_point.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr CgroupId kEarlier{1, 7}, kNow{1, 8};

JournalOutcome written(CgroupId container, std::uint64_t id, double second) {
  JournalOutcome entry{at_second(second), {}};
  entry.outcome.decision_id = id;
  entry.outcome.container = container;
  entry.outcome.kind = OutcomeKind::written;
  return entry;
}

// A history of an earlier run with one decision that was written and never ended; locked.
struct LockedHistory {
  LockedHistory() {
    Store before = Store::open(options()).value();
    REQUIRE(before.append({}, {decision_of(kEarlier, 5, at_second(5))}, {written(kEarlier, 5, 6)}));
    REQUIRE(before.save_learned("image", {{"runs", 3}}));
    { const Store closed = std::move(before); }
    REQUIRE(lock->execute("BEGIN EXCLUSIVE"));
  }
  Store::Options options() const { return {.path = path, .boot_id = "boot"}; }
  Result<Store> open_waiting() const {
    Store::Options waiting = options();
    waiting.wait_for_lock_since = at_second(100);
    return Store::open(waiting);
  }

  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  std::optional<Connection> lock = Connection::open(path).value();  // locks until it is closed
};

void ask(StoreThread& thread, const std::function<void(Store&)>& question) {
  std::promise<void> done;
  REQUIRE(thread.query([&](Store& store) {
    question(store);
    done.set_value();
  }));
  done.get_future().wait();
}

}  // namespace

TEST_CASE("a locked file is refused, and waited for where that is asked") {
  LockedHistory history;
  const auto refused = Store::open(history.options());
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  Result<Store> waiting = history.open_waiting();
  REQUIRE(waiting);
  CHECK(waiting->detached());
  const auto learned = waiting->load_learned("image");
  REQUIRE_FALSE(learned);
  CHECK(learned.error().kind == ErrorKind::io);  // not not_found: the caller must not replace it
  CHECK(learned.error().text.find("in use by another process") != std::string::npos);
  history.lock.reset();
  CHECK(waiting->load_learned("image").value()["runs"] == 3);
  CHECK_FALSE(waiting->detached());
  CHECK(waiting->last_written().value() == at_second(6));
}

TEST_CASE("while the file is locked the reason is reported, and entries wait in the queue") {
  LockedHistory history;
  StoreThread thread(history.open_waiting().value());
  StoreThread::Batch batch;
  batch.points = {busy_point(kNow, 101), busy_point(kNow, 102)};
  batch.decisions = {decision_of(kNow, 1000, at_second(101))};
  batch.outcomes = {written(kNow, 1000, 102)};
  thread.enqueue(std::move(batch));
  ask(thread, [](Store&) {});
  REQUIRE(thread.degraded());
  CHECK(thread.degraded()->find("in use by another process") != std::string::npos);
  CHECK(thread.counts().queued == 4);
  ask(thread, [](Store& store) { CHECK_FALSE(read_decisions(store, {}, at_second(1000), 10)); });

  history.lock.reset();
  StoreThread::Batch tick;
  tick.time = at_second(103);
  thread.enqueue(std::move(tick));
  ask(thread, [](Store& store) {
    CHECK(read_decisions(store, std::nullopt, at_second(1000), 10).value().size() == 2);
    const auto outcomes = read_outcomes(store, std::nullopt, at_second(1000), 10).value();
    REQUIRE(outcomes.size() == 3);
    for (const JournalOutcome& one : outcomes) {
      // Only what the earlier run left open ended, when this one began.
      const bool ended = one.outcome.kind == OutcomeKind::overtaken;
      CHECK(ended == (one.time == at_second(100)));
      if (ended) CHECK(one.outcome.decision_id == 5);
    }
  });
  CHECK_FALSE(thread.degraded());
  CHECK(thread.counts().queued == 0);
  CHECK(thread.counts().dropped_journal == 0);
}

TEST_CASE("the last written limit is the newest that the journal has, and absent without one") {
  Store store = Store::open({.path = ":memory:", .boot_id = "boot"}).value();
  CHECK_FALSE(store.last_written().value());
  REQUIRE(store.append({}, {decision_of(kNow, 1, at_second(1))}, {}));
  CHECK_FALSE(store.last_written().value());
  REQUIRE(store.append({}, {}, {written(kNow, 1, 2), written(kNow, 1, 9), written(kNow, 1, 4)}));
  CHECK(store.last_written().value() == at_second(9));
}
