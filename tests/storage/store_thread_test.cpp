#include "storage/store_thread.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>

#include "storage/sqlite.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {


// Waits on the storage thread until what was enqueued before has been tried.
void wait_for(StoreThread& thread) {
  std::promise<void> done;
  REQUIRE(thread.query([&](Store&) { done.set_value(); }));
  done.get_future().wait();
}

// Holds the storage thread inside a query until it goes out of scope.
class Hold {
 public:
  explicit Hold(StoreThread& thread) {
    std::promise<void> begun;
    REQUIRE(thread.query([&begun, end = end_.get_future().share()](Store&) {
      begun.set_value();
      end.wait();
    }));
    begun.get_future().wait();
  }
  ~Hold() { end_.set_value(); }

 private:
  std::promise<void> end_;
};

// Makes every write beyond `bytes` of a file fail until it goes out of scope.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    REQUIRE(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    REQUIRE(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

StoreThread::Batch points_batch(std::uint64_t from, std::uint64_t until) {
  StoreThread::Batch batch;
  for (std::uint64_t second = from; second < until; ++second)
    batch.points.push_back(busy_point(kOne, second));
  return batch;
}

StoreThread::Batch decisions_batch(std::uint64_t from, std::uint64_t until) {
  StoreThread::Batch batch;
  for (std::uint64_t id = from; id < until; ++id)
    batch.decisions.push_back(decision_of(kOne, id, at_second(static_cast<double>(id))));
  return batch;
}

// Of a tick in which no container lives.
StoreThread::Batch empty_tick(double second) {
  StoreThread::Batch batch;
  batch.time = at_second(second);
  return batch;
}

// How many points of kOne a process that is killed now leaves in its file.
std::size_t left_behind(const std::string& path) {
  const std::string copy = path + ".copy";
  const auto replace = std::filesystem::copy_options::overwrite_existing;
  std::filesystem::copy_file(path, copy, replace);
  std::filesystem::copy_file(path + "-wal", copy + "-wal", replace);
  Store left = open_store(copy);
  return left.history(kOne, at_second(0), at_second(1000), 1000)->size();
}

}  // namespace

TEST_CASE("what is enqueued is in the file after flush_and_stop") {
  const ScratchDirectory scratch;
  {
    StoreThread thread(open_store(scratch.path("h.db")));
    ContainerInfo info;
    info.id = kOne;
    info.name = "train";
    StoreThread::Batch batch = points_batch(0, 100);
    batch.containers.push_back({info, at_second(0)});
    batch.decisions.push_back(decision_of(kOne, 1, at_second(1)));
    batch.outcomes.push_back(outcome_of(kOne, 1, at_second(2)));
    thread.enqueue(std::move(batch));
    CHECK(thread.flush_and_stop().has_value());
    CHECK(thread.counts().written == 103);
    CHECK(thread.counts().queued == 0);
    CHECK_FALSE(thread.degraded().has_value());
  }
  Store store = open_store(scratch.path("h.db"));
  CHECK(store.history(kOne, at_second(0), at_second(1000), 1000)->size() == 100);
  CHECK(read_decisions(store, kOne, at_second(100), 10)->size() == 1);
  CHECK(read_outcomes(store, kOne, at_second(100), 10)->size() == 1);
  CHECK((*store.records(0, 9))[0].stored.container.name == "train");
}

TEST_CASE("the last samples of the last container are in the file half a minute after them") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  StoreThread thread(open_store(path));
  thread.enqueue(points_batch(0, 5));
  wait_for(thread);
  thread.enqueue(empty_tick(29));
  wait_for(thread);
  CHECK(left_behind(path) == 0);
  thread.enqueue(empty_tick(30));
  wait_for(thread);
  CHECK(left_behind(path) == 5);
  CHECK(thread.counts().written == 5);
}

TEST_CASE("batches that wait for each other have the time of the last tick") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  StoreThread thread(open_store(path));
  thread.enqueue(points_batch(0, 5));
  wait_for(thread);
  {
    const Hold hold(thread);
    thread.enqueue(empty_tick(29));
    thread.enqueue(empty_tick(30));
    thread.enqueue({});
  }
  wait_for(thread);
  CHECK(left_behind(path) == 5);
}

TEST_CASE("a query runs on the storage thread and sees what was enqueued before it") {
  StoreThread thread(open_store(":memory:"));
  thread.enqueue(points_batch(0, 10));
  std::promise<std::pair<std::size_t, std::thread::id>> answer;
  REQUIRE(thread.query([&](Store& store) {
    answer.set_value({store.history(kOne, at_second(0), at_second(100), 100)->size(),
                      std::this_thread::get_id()});
  }));
  const auto [size, thread_id] = answer.get_future().get();
  CHECK(size == 10);
  CHECK(thread_id != std::this_thread::get_id());
}

// rule: S-12
TEST_CASE("the queue takes its bound and drops the oldest samples one past it") {
  StoreThread thread(open_store(":memory:"), {.queue_bound = 10});
  {
    const Hold hold(thread);
    thread.enqueue(points_batch(0, 10));
    CHECK(thread.counts().queued == 10);
    CHECK(thread.counts().dropped_points == 0);
    thread.enqueue(points_batch(10, 11));
    CHECK(thread.counts().queued == 10);
    CHECK(thread.counts().dropped_points == 1);
  }
  wait_for(thread);
  std::promise<WallTime> oldest;
  REQUIRE(thread.query([&](Store& store) {
    oldest.set_value(store.history(kOne, at_second(0), at_second(100), 100)->front().time);
  }));
  CHECK(oldest.get_future().get() == busy_point(kOne, 1).time);
}

TEST_CASE("no decision is dropped while a sample is left to drop") {
  StoreThread thread(open_store(":memory:"), {.queue_bound = 10});
  const Hold hold(thread);
  thread.enqueue(decisions_batch(1, 6));
  thread.enqueue(points_batch(0, 5));
  thread.enqueue(decisions_batch(6, 11));
  CHECK(thread.counts().dropped_points == 5);
  CHECK(thread.counts().dropped_journal == 0);
  thread.enqueue(points_batch(5, 9));
  CHECK(thread.counts().dropped_points == 9);
  CHECK(thread.counts().dropped_journal == 0);
  thread.enqueue(decisions_batch(11, 12));
  CHECK(thread.counts().dropped_journal == 1);
  CHECK(thread.counts().queued == 10);
}

TEST_CASE("queries are taken up to their bound and refused one past it") {
  StoreThread thread(open_store(":memory:"), {.query_bound = 3});
  int run = 0;
  {
    const Hold hold(thread);
    for (int i = 0; i < 3; ++i) CHECK(thread.query([&](Store&) { ++run; }));
    CHECK_FALSE(thread.query([&](Store&) { run += 100; }));
  }
  REQUIRE(thread.flush_and_stop().has_value());
  CHECK(run == 3);
  CHECK(thread.counts().refused_queries == 1);
}

TEST_CASE("an accepted query is run while stopping, none is accepted after") {
  StoreThread thread(open_store(":memory:"));
  bool run = false;
  REQUIRE(thread.query([&](Store&) { run = true; }));
  REQUIRE(thread.flush_and_stop().has_value());
  CHECK(run);
  CHECK_FALSE(thread.query([](Store&) {}));
}

TEST_CASE("what comes after the stop is dropped and counted") {
  StoreThread thread(open_store(":memory:"));
  REQUIRE(thread.flush_and_stop().has_value());
  StoreThread::Batch batch = points_batch(0, 2);
  batch.decisions.push_back(decision_of(kOne, 1, at_second(1)));
  thread.enqueue(std::move(batch));
  CHECK(thread.counts().dropped_points == 2);
  CHECK(thread.counts().dropped_journal == 1);
  CHECK(thread.flush_and_stop().has_value());
}

TEST_CASE("a batch that cannot be written stays in the queue, is reported, and written later") {
  const ScratchDirectory scratch;
  StoreThread thread(open_store(scratch.path("h.db")));
  {
    const FileSizeLimit limit(128 * 1024);
    for (std::uint64_t id = 1; !thread.degraded() && id < 5000; ++id) {
      thread.enqueue(decisions_batch(id, id + 1));
      wait_for(thread);
    }
    REQUIRE(thread.degraded().has_value());
    CHECK(thread.degraded()->find("SQLITE_IOERR") != std::string::npos);
    CHECK(thread.counts().queued == 1);
    thread.enqueue(points_batch(0, 1));
    wait_for(thread);
    CHECK(thread.counts().queued == 2);
  }
  thread.enqueue(points_batch(1, 2));
  wait_for(thread);
  CHECK(thread.counts().queued == 0);
  CHECK_FALSE(thread.degraded().has_value());
  CHECK(thread.counts().dropped_journal == 0);
  CHECK(thread.flush_and_stop().has_value());
}

TEST_CASE("a stop that cannot write says how much was lost") {
  const ScratchDirectory scratch;
  StoreThread thread(open_store(scratch.path("h.db")));
  const FileSizeLimit limit(4096);
  thread.enqueue(decisions_batch(1, 4));
  const Status stopped = thread.flush_and_stop();
  REQUIRE_FALSE(stopped.has_value());
  CHECK(stopped.error().kind == ErrorKind::io);
  CHECK(stopped.error().text.find("3 entries were not written") != std::string::npos);
}

TEST_CASE("many threads may enqueue and ask at once") {
  StoreThread thread(open_store(":memory:"));
  std::vector<std::thread> writers;
  for (std::uint64_t writer = 0; writer < 4; ++writer)
    writers.emplace_back([&thread, writer] {
      for (std::uint64_t i = 0; i < 50; ++i) {
        StoreThread::Batch batch;
        batch.points.push_back(busy_point({42, writer}, i));
        thread.enqueue(std::move(batch));
        static_cast<void>(
            thread.query([](Store& store) { static_cast<void>(store.size_bytes()); }));
        static_cast<void>(thread.counts());
        static_cast<void>(thread.degraded());
      }
    });
  for (std::thread& writer : writers) writer.join();
  REQUIRE(thread.flush_and_stop().has_value());
  CHECK(thread.counts().written == 200);
}

TEST_CASE("the new name of a corrupt file is reported") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  std::ofstream(path) << std::string(8192, 'x');
  StoreThread thread(open_store(path));
  CHECK(thread.counts().quarantined == path + ".corrupt-1");
  CHECK(thread.counts().damaged == 0);
  REQUIRE(thread.flush_and_stop());
}

TEST_CASE("damaged blocks that a query found are counted") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  {
    Store store = open_store(path);
    for (std::uint64_t second = 0; second < 200; ++second)
      REQUIRE(store.append({busy_point(kOne, second)}, {}, {}));
  }
  {
    Result<Connection> connection = Connection::open(path);
    REQUIRE(connection.has_value());
    REQUIRE(connection->execute("UPDATE block SET payload = x'00' WHERE block = 1"));
  }
  StoreThread thread(open_store(path));
  REQUIRE(thread.query([](Store& store) {
    static_cast<void>(store.history(kOne, at_second(0), at_second(1000), 1000));
  }));
  wait_for(thread);
  wait_for(thread);  // the counts are updated after the queries of a round
  CHECK(thread.counts().damaged == 1);
}
