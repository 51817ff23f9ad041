// The history as a database of plain tables: from the files of a stopped daemon, and through the
// socket of a running one with a real store behind it.
#include <doctest/doctest.h>
#include <signal.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "protocol/history.h"
#include "storage/sqlite.h"
#include "storage/store.h"
#include "tests/cli/command_run.h"
#include "tests/storage/points.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

constexpr CgroupId kWeb{41, 1};
constexpr int kSeconds = 250, kDecisions = 450;

HistoryPoint web_point(int second) {
  HistoryPoint point{at_second(second), full_sample(kWeb, static_cast<std::uint64_t>(second)), {}};
  point.phase = {.state = second < 100 ? PhaseState::not_enough_history : PhaseState::known,
                 .index = second < 200 ? 0 : 2, .distance = 0.5, .margin = 2};
  return point;
}

// A store with one container of 250 seconds in three phases, and a long journal.
struct ExportWorld {
  ExportWorld() {
    const std::string database = command.directory() / "history.db";
    store.emplace(Store::open({.path = database, .boot_id = "b"}).value());
    ContainerInfo info;
    info.id = kWeb;
    info.name = "w\xff'eb";
    REQUIRE(store->add_container(info, at_second(0)));
    for (int second = 0; second < kSeconds; ++second)
      REQUIRE(store->append({web_point(second)}, {}, {}));
    for (int id = 1; id <= kDecisions; ++id)
      REQUIRE(store->append({}, {decision_of(kWeb, static_cast<std::uint64_t>(id), at_second(id))},
                            {outcome_of(kWeb, static_cast<std::uint64_t>(id), at_second(id))}));
    REQUIRE(store->save_learned("shop", {{"count", 1}}));
    REQUIRE(store->flush());
  }

  void serve() {
    command.serve([this](const Request& request) {
      if (const auto* table = std::get_if<TableRequest>(&request)) return page_of(*table);
      if (const auto* page = std::get_if<RecordsRequest>(&request)) {
        std::vector<RecordEntry> entries;
        const auto found = store->records(page->after.value_or(0), kRecordsPage);
        for (const StoredRecord& record : *found)
          entries.push_back({record.record, record.stored.container, record.stored.first_seen});
        return ok_reply(records_page(entries));
      }
      const auto& asked = std::get<HistoryRequest>(request);
      return ok_reply(history_page(store->history_of(*asked.record, *time_of(asked.from_seconds),
                                                     *time_of(asked.until_seconds),
                                                     kHistoryPagePoints).value()));
    });
  }

  json page_of(const TableRequest& request) {
    return ok_reply(
        table_reply(store->table_page(request.name, request.after.value_or(0)).value()));
  }

  Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), {"export", "-o", file});
    return command.run(words);
  }
  Ran run_stopped(std::vector<std::string> words) {
    store.reset();
    words.insert(words.end(), {"--state-dir", command.directory() / "."});
    return run(words);
  }
  std::int64_t asked(const std::string& sql) const {
    const auto number = Connection::open_unchanged(file, false).value().integer(sql);
    REQUIRE_MESSAGE(number.has_value(), (number ? "" : number.error().text));
    return *number;
  }
  // Files whose names begin with the name of the output.
  int outputs() const {
    int count = 0;
    for (const auto& one : std::filesystem::directory_iterator(command.directory().path()))
      count += one.path().filename().string().starts_with("out.db") ? 1 : 0;
    return count;
  }

  CommandRun command;
  std::optional<Store> store;
  std::string file = command.directory() / "out.db";
};

void check_all(const ExportWorld& world) {
  CHECK(world.asked("SELECT count(*) FROM container WHERE name = 'w\\xff''eb'") == 1);
  CHECK(world.asked("SELECT count(*) FROM decision") == kDecisions);
  CHECK(world.asked("SELECT count(DISTINCT decision_id) FROM outcome") == kDecisions);
  CHECK(world.asked("SELECT count(*) FROM refusal") == 0);
  CHECK(world.asked("SELECT json ->> 'count' FROM learned") == 1);
  CHECK(world.asked("SELECT count(*) FROM sample JOIN container USING (container)") == kSeconds);
  const auto read = [](const auto& value) { return static_cast<std::int64_t>(value); };
  CHECK(world.asked("SELECT cpu_usage_usec FROM sample WHERE time_ns = " +
                    std::to_string(at_second(7).time_since_epoch().count())) ==
        read(*web_point(7).sample.cpu.usage_usec));
  CHECK(world.asked("SELECT count(*) FROM phase") == 3);
  CHECK(world.asked("SELECT sum(sample_count) FROM phase") == kSeconds);
  CHECK(world.asked("SELECT sample_count FROM phase WHERE phase_index = 2") == 50);
  CHECK(world.asked("SELECT count(*) FROM phase WHERE phase_index IS NULL") == 1);
  CHECK(world.asked("SELECT count(*) FROM snapshot WHERE program LIKE 'cgphase %'") == 1);
}

}  // namespace

TEST_CASE_FIXTURE(ExportWorld, "export reads from the daemon page by page and writes all of it") {
  serve();
  const Ran ran = run({});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.err, "900 rows of the journal, 250 samples"));
  check_all(*this);
  CHECK(command.requests().size() > 12);
  struct stat status{};
  REQUIRE(::stat(file.c_str(), &status) == 0);
  CHECK((status.st_mode & 0007) == 0);
  CHECK(outputs() == 1);
}

TEST_CASE_FIXTURE(ExportWorld, "export writes the same tables from the files of a stopped daemon") {
  const Ran ran = run_stopped({"-q"});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  CHECK(ran.err.empty());
  check_all(*this);
}

TEST_CASE_FIXTURE(ExportWorld, "export takes a time span, and --no-samples keeps the phases") {
  const Ran ran = run_stopped({"--no-samples", "--since", "@1700000100", "--until", "@1700000199"});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.err, "phases of 100 samples"));
  CHECK(asked("SELECT count(*) FROM sqlite_schema WHERE name = 'sample'") == 0);
  CHECK(asked("SELECT count(*) FROM phase") == 1);
  CHECK(asked("SELECT sample_count FROM phase") == 100);
  CHECK(asked("SELECT count(*) FROM decision") == 100);
  CHECK(asked("SELECT count(*) FROM container") == 1);
}

TEST_CASE_FIXTURE(ExportWorld, "a failed export leaves the file unchanged and no other file") {
  REQUIRE(replace_file(file, "old"));
  SUBCASE("no daemon") { CHECK(run({}).exit == 4); }
  SUBCASE("the directory is in use by a daemon") {
    const Ran ran = run({"--state-dir", command.directory() / "."});
    CHECK(ran.exit == 6);
    CHECK(has(ran.err, "in use by a running cgphased"));
  }
  SUBCASE("the daemon refuses in the middle") {
    command.serve([this](const Request& request) {
      const auto& table = std::get<TableRequest>(request);
      return table.name == "learned" ? error_reply(Exit::failure, "no more") : page_of(table);
    });
    const Ran ran = run({});
    CHECK(ran.exit == 1);
    CHECK(has(ran.err, "no more"));
  }
  SUBCASE("the daemon repeats a page for ever") {
    command.serve([this](const Request&) {
      return ok_reply(table_reply(store->table_page("decision", 0).value()));
    });
    const Ran ran = run({});
    CHECK(ran.exit == 1);
  }
  SUBCASE("an invalid time") { CHECK(run({"--since", "soon"}).exit == 2); }
  CHECK(content(file) == "old");
  CHECK(outputs() == 1);
}

TEST_CASE_FIXTURE(ExportWorld, "an export that a signal ends leaves nothing behind") {
  command.serve([this](const Request& request) {
    std::ifstream children("/proc/thread-self/children");
    pid_t pid = 0;
    children >> pid;
    REQUIRE(pid > 0);
    REQUIRE(::kill(pid, SIGINT) == 0);
    return page_of(std::get<TableRequest>(request));
  });
  const Ran ran = run({});
  CHECK(ran.exit == 1);
  CHECK(has(ran.err, "interrupted"));
  CHECK(outputs() == 0);
}

TEST_CASE_FIXTURE(ExportWorld, "export names a missing folder") {
  file = command.directory() / "none/out.db";
  serve();
  CHECK(run({}).exit == 6);
  CHECK(command.requests().empty());
}

TEST_CASE_FIXTURE(ExportWorld, "export writes the same database to standard output") {
  serve();
  const Ran ran = command.run({"export", "-o", "-"});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  REQUIRE(replace_file(file, ran.out));
  check_all(*this);
}
