// history, events and explain: page by page through the socket with replies of the test, and from
// the files of a stopped daemon.
#include "cli/commands/history_verbs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "protocol/events.h"
#include "storage/sqlite.h"
#include "storage/store.h"
#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"
#include "tests/storage/points.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

constexpr int kThisBoot = 2, kBootBefore = 1;  // records
constexpr int kPageRows = 100;        // of the daemon below, which sends fewer than requested

// A daemon that sampled web-1 every second: one container from second 1000 on, and an earlier one
// from second 0 to 500.
struct SampledName {
  SampledName() {
    command.serve([this](const Request& request) {
      return answer(std::get<HistoryRequest>(request));
    });
  }

  json rows(int record, const HistoryRequest& request) const {
    const double from = request.from_seconds.value_or(0);
    const double until = request.until_seconds.value_or(1e9);
    const int limit = bounded(request.limit, kPageRows, kPageRows);
    std::vector<HistoryRow> rows;
    const int begin = record == kThisBoot ? 1000 : 0;
    const int end = record == kThisBoot ? 1000 + seconds : 500;
    for (int second = begin; second < end; ++second)
      if (second >= from && second <= until && rows.size() < static_cast<std::size_t>(limit)) {
        HistoryRow& row = rows.emplace_back();
        row.time = WallTime(std::chrono::seconds(second));
        row.cpu_cores = 0.5;
      }
    json reply = history_reply(web().container, rows);
    reply["record"] = record;
    reply["first_seen"] = begin;
    return reply;
  }

  json answer(const HistoryRequest& request) const {
    if (request.record) return rows(static_cast<int>(*request.record), request);
    json reply = rows(kThisBoot, request);
    reply["earlier"] = json::array();
    if (before) {
      json run = rows(kBootBefore, request);
      run.erase("points");
      reply["earlier"].push_back(run);
    }
    return reply;
  }

  Ran history(std::vector<std::string> words) {
    words.insert(words.begin(), {"history", "web-1", "--since", "@1", "--until", "@9000"});
    return command.run(words);
  }

  CommandRun command;
  int seconds = 350;
  bool before = false;
};

long line_count(const std::string& text) { return std::ranges::count(text, '\n'); }

// A daemon with a journal of a thousand decisions and their outcomes.
struct Journaled {
  Journaled() {
    const std::string path = command.directory() / "history.db";
    store.emplace(Store::open({.path = path, .boot_id = "b"}).value());
    ContainerInfo info;
    info.id = kOne;
    info.name = "web";
    REQUIRE(store->add_container(info, at_second(0)));
    for (std::uint64_t id = 1; id <= kDecisions; ++id) add(id);
    command.serve([this](const Request& request) {
      if (command.requests().size() > answers) return error_reply(Exit::failure, "no more");
      if (command.requests().size() == answers) add(kDecisions + 1);
      const EventSpan span = event_span(std::get<EventsRequest>(request)).value();
      const auto events = store->events(std::nullopt, span).value();
      return events_page(events, events.size() == static_cast<std::size_t>(span.limit));
    });
  }

  // A decision, and its outcome at the same time.
  void add(std::uint64_t id) {
    const auto second = static_cast<double>(id);
    REQUIRE(store->append({}, {decision_of(kOne, id, at_second(second))},
                          {outcome_of(kOne, id, at_second(second))}));
  }

  // Ids of the decisions, in the order of the lines.
  std::vector<int> ids(const std::string& jsonl) const {
    std::vector<int> found;
    for (std::size_t begin = 0; begin < jsonl.size();) {
      const std::size_t end = jsonl.find('\n', begin);
      const json event = json::parse(jsonl.substr(begin, end - begin));
      if (event["event"] == "decision") found.push_back(event["decision"]["decision_id"]);
      begin = end + 1;
    }
    return found;
  }
  void check_all(const Ran& ran) const {
    CHECK(ran.exit == 0);
    const std::vector<int> found = ids(ran.out);
    REQUIRE(found.size() == kDecisions);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == static_cast<int>(i) + 1);
    CHECK(line_count(ran.out) == 2 * kDecisions);
  }

  static constexpr int kDecisions = 1200;
  // The last of this many replies has one more decision.
  std::size_t answers = std::numeric_limits<std::size_t>::max();
  CommandRun command;
  std::optional<Store> store;
};

// The files of a daemon that sampled web every second in two boots, with decisions in both.
struct TwoBoots {
  TwoBoots() {
    sample("boot-1", 0, kEarlier, 1);
    sample("boot-2", kBegin, kBegin + kLater, 2);
  }

  void sample(const char* boot, int begin, int end, std::uint64_t decision_id) const {
    const std::string path = command.directory() / "history.db";
    Store store = Store::open({.path = path, .boot_id = boot}).value();
    ContainerInfo info;
    info.id = kOne;
    info.name = "web";
    REQUIRE(store.add_container(info, at_second(begin)));
    std::vector<HistoryPoint> points;
    for (int second = begin; second < end; ++second)
      points.push_back(busy_point(kOne, static_cast<std::uint64_t>(second)));
    REQUIRE(store.append(points, {decision_of(kOne, decision_id, at_second(begin))},
                         {outcome_of(kOne, decision_id, at_second(begin))}));
  }

  Ran stored(std::vector<std::string> words) {
    words.insert(words.end(), {"--state-dir", command.directory() / "."});
    return command.run(words);
  }

  void change_file(const std::string& sql) const {
    Result<Connection> file = Connection::open(command.directory() / "history.db");
    REQUIRE(file.has_value());
    REQUIRE(file->execute(sql).has_value());
  }

  static constexpr int kEarlier = 100, kBegin = 5000, kLater = 4500;  // seconds
  CommandRun command;
};

}  // namespace

TEST_CASE_FIXTURE(SampledName,
                  "a history longer than a page is printed completely, each sample once") {
  const Ran csv = history({"-o", "csv"});
  CHECK(csv.exit == 0);
  CHECK(line_count(csv.out) == 1 + seconds);
  const json body = json::parse(history({"--json"}).out);
  REQUIRE(body["points"].size() == 350);
  for (int i = 0; i < seconds; ++i) CHECK(body["points"][i]["time"] == 1000 + i);
}

TEST_CASE_FIXTURE(SampledName, "a history with a limit has the newest samples") {
  const auto times = [](const json& points) {
    return std::pair(points.front()["time"].get<int>(), points.back()["time"].get<int>());
  };
  const json last = json::parse(history({"-n", "120", "--json"}).out);
  CHECK(last["points"].size() == 120);
  CHECK(times(last["points"]) == std::pair(1230, 1349));
  CHECK(line_count(history({"-n", "120", "-o", "csv"}).out) == 121);
  CHECK(line_count(history({"-n", "120"}).out) == 121);
  CHECK(line_count(history({"-n", "1000000", "-o", "csv"}).out) == 1 + seconds);
  before = true;
  CHECK(json::parse(history({"-n", "350", "--json"}).out)["earlier"].empty());
  CHECK(line_count(history({"-n", "350"}).out) == 351);
  const json both = json::parse(history({"-n", "400", "--json"}).out);
  CHECK(both["points"].size() == 350);
  REQUIRE(both["earlier"].size() == 1);
  CHECK(both["earlier"][0]["points"].size() == 50);
  CHECK(times(both["earlier"][0]["points"]) == std::pair(450, 499));
  const Ran text = history({"-n", "400", "--utc"});
  CHECK(line_count(text.out) == 3 + 400);  // with a title line for each
  CHECK(text.out.find("first seen at 1970-01-01 00:16:40") != std::string::npos);
  CHECK(line_count(history({"-n", "400", "-o", "csv"}).out) == 1 + seconds);
}

TEST_CASE_FIXTURE(SampledName, "history prints earlier containers first, each with a title line") {
  before = true;
  const Ran text = history({"--utc"});
  CHECK(text.exit == 0);
  const std::size_t old = text.out.find("first seen at 1970-01-01 00:00:00");
  const std::size_t now = text.out.find("first seen at 1970-01-01 00:16:40");
  CHECK(old < now);
  CHECK(now != std::string::npos);
  CHECK(line_count(text.out) == 3 + 499 + seconds);  // the titles once
  const json body = json::parse(history({"--json"}).out);
  CHECK(body["points"].size() == 350);
  REQUIRE(body["earlier"].size() == 1);
  CHECK(body["earlier"][0]["points"].size() == 499);
  // Rows of CSV do not name their container.
  CHECK(line_count(history({"-o", "csv"}).out) == 1 + seconds);
}

TEST_CASE_FIXTURE(Journaled, "events since a time are printed from all pages, in order") {
  check_all(command.run({"events", "--since", "@1", "-o", "jsonl"}));
  CHECK(command.requests().size() == 3);
  const Ran few = command.run({"events", "-n", "1500", "-o", "jsonl"});
  CHECK(line_count(few.out) == 1500);
  CHECK(ids(few.out).back() == kDecisions);
  CHECK(line_count(command.run({"events", "-o", "jsonl"}).out) == kMostEvents);
  const json body = json::parse(command.run({"events", "--since", "@1", "--json"}).out);
  CHECK(body["events"].size() == 2 * kDecisions);
}

TEST_CASE_FIXTURE(Journaled, "events -f -n prints the last entries, then new ones") {
  answers = 2;
  const Ran ran = command.run({"events", "-f", "-n", "5", "-o", "jsonl"});
  CHECK(has(ran.err, "no more"));
  CHECK(line_count(ran.out) == 5 + 2);  // without the decision that has the same time as the oldest
  CHECK(ids(ran.out) == std::vector<int>{kDecisions - 1, kDecisions, kDecisions + 1});
}

TEST_CASE("events -f -o csv prints its titles once, before the first event") {
  CommandRun command;
  command.serve([&](const Request&) {
    const std::size_t asked = command.requests().size();
    if (asked > 2) return error_reply(Exit::failure, "no more");
    return events_reply(
        std::vector(asked - 1, EventReport{.name = "web-1", .time = {}, .decision = {},
                                           .outcome = {}}));
  });
  const Ran ran = command.run({"events", "-f", "-o", "csv"});
  CHECK(has(ran.err, "no more"));
  CHECK(ran.out.starts_with("time,name,event,decision_id,"));
  CHECK(line_count(ran.out) == 2);
}

TEST_CASE_FIXTURE(Journaled, "events reads the files of a stopped daemon") {
  const std::string files = command.directory() / ".";
  CHECK(command.run({"events", "--state-dir", files}).exit == 6);  // in use
  store.reset();
  check_all(command.run({"events", "--since", "@1", "--state-dir", files, "-o", "jsonl"}));
  check_all(command.run({"events", "web", "--since", "@1", "--state-dir", files, "-o", "jsonl"}));
  CHECK(command.run({"events", "nobody", "--state-dir", files}).exit == 3);
  CHECK(command.run({"events", "-f", "--state-dir", files}).exit == 2);
  CHECK(command.requests().empty());
}

TEST_CASE_FIXTURE(TwoBoots, "history reads the files of a stopped daemon") {
  const json body = json::parse(
      stored({"history", "web", "--since", "@0", "--until", "@1800000000", "--json"}).out);
  CHECK(body["gone"] == true);
  REQUIRE(body["points"].size() == kLater);
  for (int i = 0; i < kLater; ++i)
    CHECK(std::floor(body["points"][i]["time"].get<double>()) == 1.7e9 + kBegin + i);
  CHECK(body["points"][1]["cpu_cores"].is_number());
  REQUIRE(body["earlier"].size() == 1);
  CHECK(body["earlier"][0]["points"].size() == kEarlier);
  const Ran some = stored(
      {"history", "web", "--since", "@1700005010", "--until", "@1700005020", "-o", "csv"});
  CHECK(line_count(some.out) == 11);
  const json few = json::parse(
      stored({"history", "web", "--since", "@0", "--until", "@1800000000", "-n", "7", "--json"})
          .out);
  REQUIRE(few["points"].size() == 7);
  CHECK(few["points"] == json(std::vector<json>(body["points"].end() - 7, body["points"].end())));
  // By name only: the last hour is empty.
  const json none = json::parse(stored({"history", "web", "--json"}).out);
  CHECK(none["points"].empty());
  CHECK(none["container"]["name"] == "web");
}

TEST_CASE_FIXTURE(TwoBoots, "explain reads files and does not report that the container is gone") {
  const json body = json::parse(stored({"explain", "web", "--json"}).out);
  REQUIRE(body["decisions"].size() == 2);
  CHECK(body["decisions"][0]["decision"]["decision_id"] == 2);
  CHECK(body["decisions"][0]["outcome"].is_object());
  CHECK(body["container"]["name"] == "web");
  CHECK(body["sentence"] == body["decisions"][0]["sentence"]);
  const json then = json::parse(stored({"explain", "web", "--at", "@1700000200", "--json"}).out);
  REQUIRE(then["decisions"].size() == 1);
  CHECK(then["decisions"][0]["decision"]["decision_id"] == 1);
  const Ran text = stored({"explain", "web"});
  CHECK(text.exit == 0);
  CHECK(text.out.find("gone") == std::string::npos);
}

TEST_CASE_FIXTURE(TwoBoots, "damaged blocks are left out, with one warning") {
  change_file("UPDATE block SET crc32c = crc32c + 1 WHERE block IN (3, 4)");
  for (std::vector<std::string> words :
       {std::vector<std::string>{"history", "web", "--since", "@0", "--until", "@1800000000", "-o",
                                 "csv"},
        {"record", "-o", command.directory() / "t.csv"},
        {"export", "-o", command.directory() / "e.db"}}) {
    const Ran ran = stored(words);
    CHECK(ran.exit == 0);
    const std::string warning = "part of the history is damaged and left out";
    CHECK(ran.err.find(warning) != std::string::npos);
    CHECK(ran.err.find(warning) == ran.err.rfind(warning));
  }
}

TEST_CASE_FIXTURE(TwoBoots, "a newer schema is invalid input to every verb that reads files") {
  change_file("PRAGMA user_version=99");
  for (std::vector<std::string> words :
       {std::vector<std::string>{"history", "web"}, {"explain", "web"}, {"events"},
        {"record", "-o", command.directory() / "t.csv"},
        {"export", "-o", command.directory() / "e.db"}})
    CHECK(stored(words).exit == 6);
}

TEST_CASE_FIXTURE(TwoBoots, "unreadable files and unknown containers are refused") {
  for (const char* verb : {"history", "explain"}) {
    CHECK(stored({verb, "nobody"}).exit == 3);
    CHECK(command.run({verb, "web", "--state-dir", "/nonexistent"}).exit == 6);
    const Store running = Store::open({.path = command.directory() / "history.db"}).value();
    const Ran ran = stored({verb, "web"});
    CHECK(ran.exit == 6);
    CHECK(ran.err.find("in use by a running cgphased") != std::string::npos);
  }
}
