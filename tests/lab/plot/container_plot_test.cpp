// plot of a container. The daemon's own functions make the replies (protocol/report.h).
#include "lab/plot/container_plot.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"
#include "tests/lab/plot/xml_check.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

constexpr double kBegin = 1'773'585'000;

WallTime at(double seconds) {
  return WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(seconds * 1e9)));
}

Phase known(int index) {
  return {.state = PhaseState::known, .index = index, .distance = 0.1, .margin = 1};
}

// Ten minutes, one row per five seconds: quiet and busy in turn, with limits that rise before the
// use.
std::vector<HistoryRow> ten_minutes() {
  std::vector<HistoryRow> rows;
  for (int i = 0; i < 120; ++i) {
    const bool busy = i / 30 % 2 == 1, widened = busy || (i + 2) / 30 % 2 == 1;
    HistoryRow row{.time = at(kBegin + 5 * i), .phase = known(busy ? 1 : 0), .cpu_cores = {},
                   .memory_need_bytes = static_cast<std::uint64_t>((busy ? 300 : 120) * kMiBs),
                   .memory_current_bytes = {}, .limits = limits_of(widened ? 1.5 : 0.5,
                                                                   (widened ? 512 : 256) * kMiBs)};
    if (i > 0) row.cpu_cores = (busy ? 0.9 : 0.2) + 0.01 * (i % 7);
    if (i < 4) row.phase = {};
    if (i >= 70 && i < 74) row.phase.state = PhaseState::unknown;
    rows.push_back(row);
  }
  return rows;
}

std::string drawn(const json& body, int phases = 3) {
  const HistoryReply reply = read_reply<HistoryReply>(body).value();
  const auto picture = draw_history(std::span(&reply, 1), phases);
  REQUIRE(picture);
  CHECK(xml_fault(*picture) == "");
  return *picture;
}

// A daemon with `rows` and a model of three phases.
json answer(const Request& request, const std::vector<HistoryRow>& rows) {
  if (verb_of(request) == Verb::status) {
    StatusReport report = status();
    report.model.phases = 3;
    return to_json(report);
  }
  const auto& asked = std::get<HistoryRequest>(request);
  if (asked.container != "web-1")
    return error_reply(Exit::no_container, "no container 'web-2'; did you mean 'web-1'?");
  std::vector<HistoryRow> wanted;
  const auto limit = static_cast<std::size_t>(bounded(asked.limit, 600, 7200));
  for (const HistoryRow& row : rows)
    if (row.time >= *time_of(asked.from_seconds) && row.time <= *time_of(asked.until_seconds) &&
        wanted.size() < limit)
      wanted.push_back(row);
  return history_reply(web().container, wanted);
}

struct Plotter {
  CommandRun command;
  std::string picture = command.directory() / "out.svg";
  std::vector<HistoryRow> rows = ten_minutes();

  Ran plot(std::vector<std::string> words) {
    words.insert(words.begin(), {"plot", "-o", picture});
    return command.run(std::move(words));
  }
  void serve() {
    command.serve([this](const Request& request) { return answer(request, rows); });
  }
  std::string content() const {
    const Result<std::string> text = read_file(picture, 1 << 22);
    REQUIRE(text);
    return *text;
  }
};

const std::vector<std::string> kSpan = {"--since", "@1773584000", "--until", "@1773590000"};

}  // namespace

TEST_CASE("a container's history makes the golden picture") {
  const std::string golden = CGPHASE_SOURCE_DIR "/tests/golden/container.svg";
  const std::string made = drawn(history_reply(web().container, ten_minutes()));
  if (std::getenv("CGPHASE_UPDATE_GOLDEN") != nullptr) REQUIRE(replace_file(golden, made));
  const Result<std::string> kept = read_file(golden, 1 << 22);
  REQUIRE(kept);
  CHECK_MESSAGE((made == *kept), "container.svg differs: docs/internals/testing.md");
}

TEST_CASE("the picture contains container, image, phases, peaks and limits") {
  const std::string made = drawn(history_reply(web().container, ten_minutes()));
  CHECK(has(made, "Container web-1"));
  CHECK(has(made, "web-1 of shop/web:7"));
  CHECK(has(made, "at most 0.96 cores of CPU and 0.293 GiB of memory"));
  CHECK(has(made, ">unknown phase</text>"));
  CHECK(has(made, ">not enough history</text>"));
  CHECK(has(made, "stroke-dasharray"));
}

TEST_CASE("a missing rate is no reading, and neither is the one after it") {
  std::vector<HistoryRow> rows = ten_minutes();
  for (HistoryRow& row : rows) row.cpu_cores.reset();
  rows[50].cpu_cores = 0.25;
  CHECK(has(drawn(history_reply(web().container, rows)), "at most 0.25 cores of CPU"));
  rows[50].cpu_cores.reset();
  CHECK(has(drawn(history_reply(web().container, rows)), ">no readings</text>"));
}

TEST_CASE(
    "hostile names are text, and a reply of another version is drawn without missing values") {
  CHECK(has(drawn(history_reply(hostile().container, ten_minutes())), "\\x1b[31m"));
  const json odd = {{"points", {{{"time", 5}},
                                {{"time", 7}, {"cpu_cores", -1}},
                                {{"time", 8}, {"cpu_cores", 1e300},
                                 {"phase", {{"state", "known"}, {"index", 1'000'000'000}}}}}}};
  CHECK(has(drawn(odd), "no readings"));
  const HistoryReply empty;
  CHECK_FALSE(draw_history(std::span(&empty, 1), 3));
}

TEST_CASE_FIXTURE(Plotter, "plot of a container requests the history and writes the same picture") {
  serve();
  const Ran ran = plot({"web-1", kSpan[0], kSpan[1], kSpan[2], kSpan[3]});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  CHECK(content() == drawn(history_reply(web().container, rows)));
  CHECK(verb_of(command.requests().at(0)) == Verb::history);
  CHECK(arguments_of(command.requests().at(0))["from_seconds"] == 1'773'584'000);
}

TEST_CASE_FIXTURE(Plotter, "a history longer than a reply is requested in pieces") {
  rows.clear();
  for (int i = 0; i < 4000; ++i)
    rows.push_back({.time = at(kBegin + i), .phase = known(0),
                    .cpu_cores = i == 3999 ? 0.75 : 0.5, .memory_need_bytes = {},
                    .memory_current_bytes = {}, .limits = {}});
  serve();
  const Ran ran = plot({"web-1", kSpan[0], kSpan[1], kSpan[2], kSpan[3]});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  CHECK(command.requests().size() == 3);
  CHECK(has(content(), "4000 rows"));
  CHECK(has(content(), "at most 0.75 cores"));
}

TEST_CASE_FIXTURE(Plotter,
                  "an unknown container is 3, no daemon 4, an empty history 6, a bad time 2") {
  const Ran alone = plot({"web-1"});
  CHECK(alone.exit == 4);
  CHECK(has(alone.err, "'web-1' is not a file, so it was read as a container"));
  serve();
  const Ran missing = plot({"web-2"});
  CHECK(missing.exit == 3);
  CHECK(has(missing.err, "did you mean 'web-1'?"));
  const Ran nothing = plot({"web-1", "--since", "@1000", "--until", "@2000"});
  CHECK(nothing.exit == 6);
  CHECK(has(nothing.err, "web-1: nothing was recorded in this time"));
  CHECK(plot({"web-1", "--since", "soon"}).exit == 2);
  CHECK_FALSE(read_file(picture, 1 << 22));
}

TEST_CASE_FIXTURE(Plotter, "options of a trace are refused for a container, and the reverse") {
  serve();
  CHECK(plot({"web-1", "--id", "a"}).exit == 2);
  CHECK(plot({"web-1", "--kind", "variance"}).exit == 2);
  const Ran file = plot({"t.csv", "--since", "-10m"});
  CHECK(file.exit == 2);
  CHECK(has(file.err, "--since needs a container; 't.csv' is a file"));
  CHECK(plot({"t.csv"}).exit == 6);
  CHECK(command.requests().empty());
}
