#include "storage/store.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "storage/sqlite.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr CgroupId kTwo{42, 2};

std::vector<HistoryPoint> history_of(Store& store, CgroupId id, double from, double until,
                                     int limit = 100000) {
  const auto points = store.history(id, at_second(from), at_second(until), limit);
  REQUIRE(points.has_value());
  return *points;
}

void append_seconds(Store& store, CgroupId id, std::uint64_t from, std::uint64_t until) {
  for (std::uint64_t second = from; second < until; ++second)
    REQUIRE(store.append({busy_point(id, second)}, {}, {}).has_value());
}

}  // namespace

TEST_CASE("a database that is there is opened without a -shm file") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  { const Store made = open_store(path); }
  std::filesystem::create_directory(path + "-shm");
  Store store = open_store(path);
  CHECK(store.append({busy_point(kOne, 1)}, {}, {}).has_value());
}

TEST_CASE("samples can be read before they are in the file") {
  Store store = open_store(":memory:");
  append_seconds(store, kOne, 0, 5);
  const auto points = history_of(store, kOne, 0, 100);
  REQUIRE(points.size() == 5);
  for (std::uint64_t i = 0; i < 5; ++i) CHECK(same(points[i], busy_point(kOne, i)));
}

TEST_CASE("samples are the same before a flush, after it and after closing") {
  const ScratchDirectory scratch;
  {
    Store store = open_store(scratch.path("h.db"));
    append_seconds(store, kOne, 0, 145);
    CHECK(history_of(store, kOne, 0, 1000).size() == 145);
    REQUIRE(store.flush().has_value());
    CHECK(history_of(store, kOne, 0, 1000).size() == 145);
  }
  Store store = open_store(scratch.path("h.db"));
  append_seconds(store, kOne, 145, 200);
  const auto points = history_of(store, kOne, 0, 1000);
  REQUIRE(points.size() == 200);
  for (std::uint64_t i = 0; i < 200; ++i) CHECK(same(points[i], busy_point(kOne, i)));
}

TEST_CASE("history takes both ends and stops at its limit, oldest first") {
  Store store = open_store(":memory:");
  std::vector<HistoryPoint> points;
  for (int second = 0; second < 150; ++second)
    points.push_back({at_second(second), full_sample(kOne, 1), {}});
  REQUIRE(store.append(points, {}, {}).has_value());
  CHECK(history_of(store, kOne, 10, 20).size() == 11);
  CHECK(history_of(store, kOne, 10, 149, 3).back().time == at_second(12));
  CHECK(history_of(store, kOne, 150, 200).empty());
  CHECK(history_of(store, kOne, 0, 149, 0).empty());
  CHECK(history_of(store, kOne, 0, 149, -1).empty());
}

TEST_CASE("history of a container that never was is empty") {
  Store store = open_store(":memory:");
  CHECK(history_of(store, kTwo, 0, 100).empty());
}

TEST_CASE("containers do not mix") {
  Store store = open_store(":memory:");
  for (std::uint64_t second = 0; second < 130; ++second)
    REQUIRE(
        store.append({busy_point(kOne, second), busy_point(kTwo, second + 7)}, {}, {}).has_value());
  CHECK(history_of(store, kOne, 0, 1000).front().sample.id == kOne);
  CHECK(history_of(store, kTwo, 0, 1000).front().sample.id == kTwo);
  CHECK(same(history_of(store, kTwo, 0, 1000).back(), busy_point(kTwo, 136)));
}

TEST_CASE("a wall clock that is set back loses no sample") {
  Store store = open_store(":memory:");
  append_seconds(store, kOne, 100, 103);
  append_seconds(store, kOne, 50, 53);
  const auto points = history_of(store, kOne, 0, 1000);
  REQUIRE(points.size() == 6);
  CHECK(same(points[0], busy_point(kOne, 50)));
  CHECK(same(points[5], busy_point(kOne, 102)));
}

TEST_CASE("blocks that overlap lose no sample between the pages") {
  Store store = open_store(":memory:");
  fill_over_step_back(store);
  const auto times = times_of_pages(
      [&](WallTime from) { return store.history(kOne, from, WallTime::max(), 120); });
  CHECK(times.size() == 210);
}

TEST_CASE("a tick of known containers does not touch the file") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"));
  append_seconds(store, kOne, 0, 2);
  const std::uint64_t before = store.size_bytes();
  append_seconds(store, kOne, 2, 29);
  CHECK(store.size_bytes() == before);
}

TEST_CASE("samples older than the flush interval are in the file") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"));
  append_seconds(store, kOne, 0, 2);
  const std::uint64_t before = store.size_bytes();
  append_seconds(store, kOne, 2, 32);
  CHECK(store.size_bytes() > before);
}

TEST_CASE("a tick without containers touches the file only for samples that are due") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"));
  append_seconds(store, kOne, 0, 2);
  const std::uint64_t before = store.size_bytes();
  for (int second = 2; second < 30; ++second)
    REQUIRE(store.append({}, {}, {}, at_second(second)).has_value());
  CHECK(store.size_bytes() == before);
  REQUIRE(store.append({}, {}, {}, at_second(30)).has_value());
  CHECK(store.size_bytes() > before);
}

TEST_CASE("a block that grows over several flushes stays one row, and each sample is read once") {
  const ScratchDirectory scratch;
  const auto rows = [&] {
    Connection file = Connection::open(scratch.path("h.db")).value();
    return file.integer("SELECT count(*) FROM block").value();
  };
  {
    Store store = open_store(scratch.path("h.db"));
    append_seconds(store, kOne, 0, 45);
    CHECK(store.history(kOne, at_second(0), at_second(100), 1000)->size() == 45);
    REQUIRE(store.flush().has_value());
    append_seconds(store, kOne, 45, 50);
    CHECK(store.history(kOne, at_second(0), at_second(100), 1000)->size() == 50);
  }
  CHECK(rows() == 1);
  Store store = open_store(scratch.path("h.db"));
  CHECK(store.history(kOne, at_second(0), at_second(100), 1000)->size() >= 45);
}

TEST_CASE("a container that paused goes on in a new block") {
  const ScratchDirectory scratch;
  Store store = open_store(scratch.path("h.db"));
  append_seconds(store, kOne, 0, 15);
  append_seconds(store, kTwo, 15, 60);
  append_seconds(store, kOne, 60, 65);
  REQUIRE(store.flush().has_value());
  CHECK(history_of(store, kOne, 0, 1000).size() == 20);
}

TEST_CASE("a container is named once per boot and its name may be corrected") {
  Store store = open_store(":memory:");
  ContainerInfo info;
  info.id = kOne;
  info.path = "/system.slice/docker-\x1b[2J\xff.scope";
  info.engine = Engine::nspawn;
  info.engine_id = "0123";
  info.name = "<b>train</b>";
  info.image = "registry/train:1";
  info.labels = {{"cgphase.mode", "enforce"}, {std::string("nul\0key", 7), "\"\xc3"}};
  info.systemd_unit = true;
  info.hands_off = "kubelet manages it";
  REQUIRE(store.add_container(info, at_second(1)).has_value());
  info.name = "trainer";
  REQUIRE(store.add_container(info, at_second(2)).has_value());
  const auto containers = store.records(0, 9);
  REQUIRE(containers.has_value());
  REQUIRE(containers->size() == 1);
  const ContainerInfo& back = (*containers)[0].stored.container;
  CHECK(back.id == info.id);
  CHECK(back.path == info.path);
  CHECK(back.engine == info.engine);
  CHECK(back.engine_id == info.engine_id);
  CHECK(back.name == "trainer");
  CHECK(back.image == info.image);
  CHECK(back.labels == info.labels);
  CHECK(back.systemd_unit);
  CHECK(back.hands_off == info.hands_off);
  CHECK((*containers)[0].stored.first_seen == at_second(1));
}

TEST_CASE("a container that was not named is kept under its id") {
  Store store = open_store(":memory:");
  REQUIRE(
      store.append({busy_point(kOne, 1)}, {decision_of(kTwo, 1, at_second(1))}, {}).has_value());
  const auto containers = store.records(0, 9);
  REQUIRE(containers.has_value());
  REQUIRE(containers->size() == 2);
  CHECK((*containers)[0].stored.container.id == kOne);
  CHECK((*containers)[0].stored.container.name.empty());
}

TEST_CASE("the same device and inode in another boot is another container") {
  const ScratchDirectory scratch;
  {
    Store first = open_store(scratch.path("h.db"));
    append_seconds(first, kOne, 0, 5);
  }
  Result<Store> second = Store::open({scratch.path("h.db"), "boot-2", Bytes{64 * kMiB}});
  REQUIRE(second.has_value());
  CHECK(history_of(*second, kOne, 0, 1000).empty());
  CHECK(second->records(0, 9)->size() == 1);
}

TEST_CASE("decisions of earlier boots are seen when all containers are asked for") {
  const ScratchDirectory scratch;
  {
    Store first = open_store(scratch.path("h.db"));
    REQUIRE(first.append({}, {decision_of(kOne, 1, at_second(1))}, {}).has_value());
  }
  Result<Store> second = Store::open({scratch.path("h.db"), "boot-2", Bytes{64 * kMiB}});
  REQUIRE(second.has_value());
  CHECK(read_decisions(*second, std::nullopt, at_second(9), 9)->size() == 1);
  CHECK(read_decisions(*second, kOne, at_second(9), 9)->empty());
}

TEST_CASE("what was learned of an image comes back and is replaced") {
  Store store = open_store(":memory:");
  REQUIRE(store.save_learned("img\xff", {{"count", 1}}).has_value());
  REQUIRE(store.save_learned("img\xff", {{"count", 2.5}}).has_value());
  CHECK(store.load_learned("img\xff") == nlohmann::json{{"count", 2.5}});
}

TEST_CASE("nothing learned is not_found") {
  Store store = open_store(":memory:");
  const auto learned = store.load_learned("img");
  REQUIRE_FALSE(learned.has_value());
  CHECK(learned.error().kind == ErrorKind::not_found);
}

TEST_CASE("learned text is taken at its bound and refused one past it") {
  Store store = open_store(":memory:");
  const nlohmann::json at_bound = std::string(kMaxLearnedBytes - 2, 'a');  // and two quotes
  const nlohmann::json past = std::string(kMaxLearnedBytes - 1, 'a');
  CHECK(store.save_learned("img", at_bound).has_value());
  const Status refused = store.save_learned("img", past);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(store.load_learned("img") == at_bound);
}

TEST_CASE("of one image more than the bound, the one saved longest ago goes") {
  Store store = open_store(":memory:");
  for (std::int64_t i = 0; i < kMaxLearnedImages; ++i)
    REQUIRE(store.save_learned("img" + std::to_string(i), i).has_value());
  REQUIRE(store.save_learned("img0", 0).has_value());
  CHECK(store.load_learned("img1").has_value());
  REQUIRE(store.save_learned("one more", 0).has_value());
  CHECK(store.load_learned("img0").has_value());
  CHECK_FALSE(store.load_learned("img1").has_value());
}

TEST_CASE("OOM floors stay, however many images are saved after them") {
  Store store = open_store(":memory:");
  REQUIRE(store.save_learned(kSafetyMemoryName, "kept").has_value());
  for (std::int64_t i = 0; i <= kMaxLearnedImages; ++i)
    REQUIRE(store.save_learned("img" + std::to_string(i), i).has_value());
  CHECK(store.load_learned(kSafetyMemoryName) == nlohmann::json("kept"));
  CHECK_FALSE(store.load_learned("img0").has_value());
  CHECK(store.load_learned("img1").has_value());
}

TEST_CASE("the file is not readable for everybody") {
  const ScratchDirectory scratch;
  const Store store = open_store(scratch.path("h.db"));
  const auto mode = std::filesystem::status(scratch.path("h.db")).permissions();
  CHECK((mode & std::filesystem::perms::others_all) == std::filesystem::perms::none);
}
