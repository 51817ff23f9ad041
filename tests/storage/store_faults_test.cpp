// Files that are corrupt, foreign, newer, taken or on a full disk.
#include <doctest/doctest.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/crc32.h"
#include "base/file.h"
#include "storage/schema.h"
#include "storage/store.h"
#include "tests/in_child.h"
#include "tests/storage/points.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {


Result<Store> try_open(const std::string& path) {
  return Store::open({path, "boot-1", Bytes{64 * kMiB}});
}

void run_sql(const std::string& path, const std::string& sql) {
  sqlite3* connection = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &connection) == SQLITE_OK);
  char* error = nullptr;
  const int code = sqlite3_exec(connection, sql.c_str(), nullptr, nullptr, &error);
  CAPTURE((error != nullptr ? error : ""));
  CHECK(code == SQLITE_OK);
  sqlite3_free(error);
  sqlite3_close(connection);
}

void overwrite(const std::string& path, std::uint64_t offset, const std::string& bytes) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file << bytes;
  REQUIRE(file.good());
}

std::string content_of(const std::string& path) {
  const Result<std::string> content = read_file(path, 16 * kMiB);
  REQUIRE(content.has_value());
  return *content;
}

// A closed file with samples, a decision and something learned.
void make_store(const std::string& path) {
  Store store = open_store(path);
  for (std::uint64_t second = 0; second < 200; ++second)
    REQUIRE(store.append({busy_point(kOne, second)}, {}, {}).has_value());
  REQUIRE(store.append({}, {decision_of(kOne, 1, at_second(1))}, {}).has_value());
  REQUIRE(store.save_learned("img", {{"count", 1}}).has_value());
}

// Fills the disk below `store` through `fill`, then gives the space back through `release`. The
// number of the first thing that is not as it must be, 0 if all is well.
template <class Fill, class Release>
int survive_full_disk(const std::string& path, Fill fill, Release release) {
  Result<Store> opened = try_open(path);
  if (!opened) return 1;
  Store store = std::move(*opened);
  std::uint64_t id = 0;
  const auto add = [&] {
    const Status added =
        store.append({busy_point(kOne, id + 1)}, {decision_of(kOne, id + 1, at_second(1))}, {});
    if (added) ++id;
    return added;
  };
  for (int i = 0; i < 50; ++i)
    if (!add()) return 2;
  fill();
  Status failed;
  for (int i = 0; i < 5000 && failed; ++i) failed = add();
  if (failed) return 3;
  if (failed.error().kind != ErrorKind::io) return 4;
  if (const auto seen = read_decisions(store, kOne, WallTime::max(), 1 << 20);
      !seen || seen->size() != id)
    return 5;
  release();
  for (int i = 0; i < 50; ++i)
    if (!add()) return 6;
  if (!store.flush()) return 7;
  const auto decisions = read_decisions(store, kOne, WallTime::max(), 1 << 20);
  const auto points = store.history(kOne, WallTime::min(), WallTime::max(), 1 << 20);
  if (!decisions || decisions->size() != id) return 8;
  if (!points || points->size() + store.dropped_samples() != id) return 9;
  return store.quarantined() ? 10 : 0;
}

}  // namespace

TEST_CASE("a file that is no database is moved aside and a new one begun") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db"), garbage(8192, 'x');
  std::ofstream(path) << garbage;
  Store store = open_store(path);
  REQUIRE(store.quarantined() == path + ".corrupt-1");
  CHECK(content_of(path + ".corrupt-1") == garbage);
  CHECK(store.append({}, {decision_of(kOne, 1, at_second(1))}, {}).has_value());
}

TEST_CASE("the second corrupt file gets the next number") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  for (int i = 1; i <= 2; ++i) {
    std::ofstream(path) << std::string(8192, 'x');
    CHECK(open_store(path).quarantined() == path + ".corrupt-" + std::to_string(i));
  }
}

TEST_CASE("the hundred and first corrupt file is an error and stays") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  for (int i = 1; i <= 99; ++i) std::ofstream(path + ".corrupt-" + std::to_string(i)) << "x";
  std::ofstream(path) << std::string(8192, 'x');
  CHECK(open_store(path).quarantined() == path + ".corrupt-100");
  std::ofstream(path) << std::string(8192, 'y');
  const auto refused = try_open(path);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::io);
  CHECK(content_of(path) == std::string(8192, 'y'));
}

TEST_CASE("an empty file is a new database") {
  const ScratchDirectory scratch;
  std::ofstream(scratch.path("h.db")).flush();
  CHECK_FALSE(open_store(scratch.path("h.db")).quarantined().has_value());
}

TEST_CASE("a database cut off in the middle is quarantined") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  std::filesystem::resize_file(path, 3 * kPageBytes);
  Store store = open_store(path);
  REQUIRE(store.quarantined() == path + ".corrupt-1");
  CHECK(std::filesystem::file_size(path + ".corrupt-1") == 3 * kPageBytes);
  CHECK(store.append({busy_point(kOne, 1)}, {decision_of(kOne, 2, at_second(2))}, {}).has_value());
  CHECK(read_decisions(store, kOne, at_second(100), 10)->size() == 1);
}

TEST_CASE("a page overwritten while the file is closed is noticed, quarantined and survived") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  const std::uint64_t pages = std::filesystem::file_size(path) / kPageBytes;
  for (std::uint64_t page = 1; page < pages; ++page) {
    CAPTURE(page);
    const std::string copy = scratch.path("copy" + std::to_string(page));
    std::filesystem::copy_file(path, copy);
    overwrite(copy, page * kPageBytes, std::string(kPageBytes, '\xee'));
    Store store = open_store(copy);
    for (int round = 0; round < 3; ++round) {
      static_cast<void>(store.history(kOne, at_second(0), at_second(1000), 1000));
      static_cast<void>(read_decisions(store, std::nullopt, at_second(1000), 1000));
      static_cast<void>(store.load_learned("img"));
    }
    // Writing may be the first to meet the page: then it says io once, and works after that.
    const auto write = [&] {
      return store.append({busy_point(kOne, 300)}, {decision_of(kOne, 2, at_second(2))}, {})
                 .has_value() &&
             store.flush().has_value();
    };
    if (!write()) {
      CHECK(store.quarantined().has_value());
      CHECK(write());
    }
  }
}

TEST_CASE("a damaged table found while reading is io, and the next call goes to a new file") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  Result<Connection> connection = Connection::open(path);
  REQUIRE(connection.has_value());
  const auto root =
      connection->integer("SELECT rootpage FROM sqlite_schema WHERE name = 'learned'");
  REQUIRE(root.has_value());
  connection = failure(ErrorKind::gone, "closed");
  overwrite(path, static_cast<std::uint64_t>(*root - 1) * kPageBytes, std::string(512, '\xee'));
  Store store = open_store(path);
  CHECK_FALSE(store.quarantined().has_value());
  const auto learned = store.load_learned("img");
  REQUIRE_FALSE(learned.has_value());
  CHECK(learned.error().kind == ErrorKind::io);
  CHECK(learned.error().text.find(".corrupt-1") != std::string::npos);
  CHECK(store.quarantined() == path + ".corrupt-1");
  CHECK(store.load_learned("img").error().kind == ErrorKind::not_found);
}

TEST_CASE("a block with one bit turned is left out and counted") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  run_sql(path,
          "UPDATE block SET payload = substr(payload,1,9) || x'00' || substr(payload,11) "
          "WHERE block = 2");
  Store store = open_store(path);
  const auto points = store.history(kOne, at_second(0), at_second(1000), 1000);
  REQUIRE(points.has_value());
  CHECK(points->size() == 140);
  CHECK(store.damaged_count() == 1);
  CHECK(store.history(kOne, at_second(0), at_second(1000), 1000)->size() == 140);
  CHECK(store.damaged_count() == 1);  // counted once
}

TEST_CASE("a block that was given to another container is left out and counted") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  run_sql(path,
          "INSERT INTO container SELECT 77,boot_id,device,9,path,engine,engine_id,name,image,"
          "labels,systemd_unit,hands_off,first_seen_ns FROM container;"
          "UPDATE block SET container = 77 WHERE block = 1");
  Store store = open_store(path);
  CHECK(store.history({42, 9}, at_second(0), at_second(1000), 1000)->empty());
  CHECK(store.damaged_count() == 1);
}

TEST_CASE("a journal row with an unknown word is left out and counted") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  run_sql(path, "UPDATE decision SET verdict = 'perhaps'");
  Store store = open_store(path);
  CHECK(read_decisions(store, kOne, at_second(100), 10)->empty());
  CHECK(read_decisions(store, kOne, at_second(100), 10)->empty());
  CHECK(store.damaged_count() == 1);
}

TEST_CASE("learned text with one digit changed is invalid, not a wrong number") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  run_sql(path, "UPDATE learned SET json = '{\"count\":2}'");
  Store store = open_store(path);
  const auto learned = store.load_learned("img");
  REQUIRE_FALSE(learned.has_value());
  CHECK(learned.error().kind == ErrorKind::invalid);
}

TEST_CASE("a newer schema is unsupported and left as it is") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  run_sql(path, "PRAGMA user_version=" + std::to_string(kSchema + 1));
  const auto before = content_of(path);
  const auto refused = try_open(path);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::unsupported);
  CHECK(content_of(path) == before);
  CHECK_FALSE(std::filesystem::exists(path + ".corrupt-1"));
  run_sql(path, "PRAGMA user_version=" + std::to_string(kSchema));
  Store store = open_store(path);
  CHECK(read_decisions(store, kOne, at_second(9), 9)->size() == 1);
}

TEST_CASE("somebody else's database is refused and left byte for byte") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  run_sql(path,
          "PRAGMA auto_vacuum=FULL; CREATE TABLE theirs (a); INSERT INTO theirs VALUES (1)");
  const auto before = content_of(path);
  const auto refused = try_open(path);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(content_of(path) == before);
}

TEST_CASE("a file of an older schema is moved aside, and the new one has what was learned") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("it's.db");
  make_store(path);
  run_sql(path, "PRAGMA user_version=" + std::to_string(kSchema - 1));
  {
    Store store = open_store(path);
    CHECK(store.quarantined() == path + ".old-1");
    CHECK(store.load_learned("img").value() == nlohmann::json{{"count", 1}});
    CHECK(read_decisions(store, kOne, at_second(9), 9)->empty());
    CHECK(store.append({}, {decision_of(kOne, 1, at_second(1))}, {}).has_value());
  }
  run_sql(path + ".old-1", "PRAGMA user_version=" + std::to_string(kSchema));
  Store old = open_store(path + ".old-1");
  CHECK(read_decisions(old, kOne, at_second(9), 9)->size() == 1);
}

// The table is the one of the first schema, so that a column added later fails here.
TEST_CASE("learned state of an older file is copied later if a start was interrupted") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db"), json = R"({"floors":7})";
  run_sql(
      path + ".old-1",
      "PRAGMA application_id=" + std::to_string(kApplicationId) +
          "; PRAGMA user_version=1; CREATE TABLE learned (saved INTEGER PRIMARY KEY, image TEXT "
          "NOT NULL UNIQUE, crc32c INTEGER NOT NULL, json TEXT NOT NULL); INSERT INTO learned "
          "(image, crc32c, json) VALUES ('#oom', " +
          std::to_string(crc32c(json)) + ", '" + json + "')");
  for (int opens = 0; opens < 2; ++opens) {
    Store store = open_store(path);
    CHECK_FALSE(store.carry_failure());
    CHECK(store.load_learned("#oom").value() == nlohmann::json{{"floors", 7}});
  }
}

TEST_CASE("a second store on the same file is refused with the way out") {
  const ScratchDirectory scratch;
  const Store first = open_store(scratch.path("h.db"));
  const auto second = try_open(scratch.path("h.db"));
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().kind == ErrorKind::invalid);
  CHECK(second.error().text.find("in use by another process") != std::string::npos);
}

TEST_CASE("a store of another process is refused, and free once that has ended") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  std::array<int, 2> ready{}, end{};
  REQUIRE(::pipe(ready.data()) == 0);
  REQUIRE(::pipe(end.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::close(end[1]);
    const auto held = try_open(path);
    char byte = held ? 'y' : 'n';
    if (::write(ready[1], &byte, 1) != 1) ::_exit(1);
    static_cast<void>(::read(end[0], &byte, 1) == 1);
    ::_exit(0);
  }
  char byte = 0;
  REQUIRE(::read(ready[0], &byte, 1) == 1);
  REQUIRE(byte == 'y');
  const auto refused = try_open(path);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::invalid);
  ::close(end[1]);
  REQUIRE(::waitpid(child, nullptr, 0) == child);
  CHECK(try_open(path).has_value());
  for (const int fd : {ready[0], ready[1], end[0]}) ::close(fd);
}

TEST_CASE("a directory that is not there is not_found") {
  const ScratchDirectory scratch;
  const auto refused = try_open(scratch.path("none/h.db"));
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().kind == ErrorKind::not_found);
}

TEST_CASE("a directory in place of the file is an error") {
  const ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path("h.db"));
  CHECK_FALSE(try_open(scratch.path("h.db")).has_value());
}

TEST_CASE("a file that may not be written is denied") {
  const ScratchDirectory scratch;
  const std::string path = scratch.path("h.db");
  make_store(path);
  std::filesystem::permissions(path, std::filesystem::perms::all & ~std::filesystem::perms(0222));
  std::filesystem::permissions(scratch.path(""), std::filesystem::perms(0555));
  const int status = in_child([&] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;
    const auto refused = try_open(path);
    return !refused && refused.error().kind == ErrorKind::denied ? 0 : 2;
  });
  std::filesystem::permissions(scratch.path(""), std::filesystem::perms(0755));
  CHECK(status == 0);
}

TEST_CASE("a write error is io, loses no decision, and is over when writing works again") {
  const ScratchDirectory scratch;
  const auto limit_file_size = [](rlim_t bytes) {
    rlimit limit{};
    ::getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = std::min(bytes, limit.rlim_max);
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
  CHECK(in_child([&] {
          ::signal(SIGXFSZ, SIG_IGN);
          return survive_full_disk(
              scratch.path("h.db"), [&] { limit_file_size(256 * 1024); },
              [&] { limit_file_size(RLIM_INFINITY); });
        }) == 0);
}

TEST_CASE("a full disk is io, loses no decision, and is over when space returns") {
  const ScratchDirectory scratch;
  constexpr int kCannotMount = 77;
  const std::string disk = scratch.path("disk"), ballast = disk + "/ballast";
  std::filesystem::create_directory(disk);
  // A mount of the child's own, that ends with it.
  const int status = in_child([&] {
    if (::unshare(CLONE_NEWNS) != 0 ||
        ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
        ::mount("tmpfs", disk.c_str(), "tmpfs", 0, "size=2m") != 0)
      return kCannotMount;
    return survive_full_disk(
        disk + "/h.db",
        [&] {
          std::ofstream file(ballast, std::ios::binary);
          while (file.write(std::string(4096, 'x').c_str(), 4096).flush()) {
          }
        },
        [&] { std::filesystem::remove(ballast); });
  });
  if (status == kCannotMount) {
    MESSAGE("not run: mounting a tmpfs is not permitted here");
    return;
  }
  CHECK(status == 0);
}
