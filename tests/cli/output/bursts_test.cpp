#include "cli/output/bursts.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/cli/command_run.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

const std::string kBurstTrace = kGolden + "bursts.csv";

void same_as_golden(const std::string& made, const std::string& name) {
  if (std::getenv("CGPHASE_UPDATE_GOLDEN") != nullptr) REQUIRE(replace_file(kGolden + name, made));
  CHECK_MESSAGE((made == content(kGolden + name)), name, " differs: docs/internals/testing.md");
}

BurstRun burst_run(const char* service, const char* id, int begin, double idle_seconds) {
  BurstRun run{.service = service, .execution = id, .begin = WallTime(std::chrono::seconds(begin)),
               .bursts = {}};
  SeriesBursts& received = run.bursts[static_cast<std::size_t>(BurstSource::network_receive)];
  received.values = 100;
  received.numbers[0].add(idle_seconds);
  return run;
}

}  // namespace

TEST_CASE("bursts prints the golden table and the golden JSON") {
  CommandRun command;
  const Ran text = command.run({"bursts", kBurstTrace});
  REQUIRE_MESSAGE(text.exit == 0, text.err);
  same_as_golden(text.out, "bursts.txt");
  const Ran report = command.run({"bursts", kBurstTrace, "--json"});
  REQUIRE_MESSAGE(report.exit == 0, report.err);
  same_as_golden(report.out, "bursts.json");
}

TEST_CASE("each execution is predicted from earlier ones of its service only") {
  const std::vector<BurstRun> runs = {burst_run("a", "a1", 1, 10), burst_run("b", "b1", 2, 50),
                                      burst_run("a", "a2", 3, 20), burst_run("a", "a3", 4, 30)};
  const json body = bursts_report(runs);
  CHECK(body["schema"] == 1);
  json predicted = json::array(), errors = json::array();
  for (const json& row : body["rows"])
    if (row["number"] == "idle_seconds") {
      predicted.push_back(row["predicted"]);
      errors.push_back(row["relative_error"]);
    }
  CHECK(predicted == json{nullptr, nullptr, 10, 15});
  CHECK(errors == json{nullptr, nullptr, 0.5, 0.5});
  CHECK(body["services"][0]["executions"] == 3);
  CHECK(body["services"][0]["prediction"]["network_receive"]["idle_seconds"]["value"] == 20);
  CHECK(body["services"][0]["prediction"]["gpu_utilisation"].is_null());
  CHECK(body["errors"].size() == kBurstSources * kBurstNumbers);
  for (const json& error : body["errors"]) {
    const bool idle_received =
        error["series"] == "network_receive" && error["number"] == "idle_seconds";
    CHECK(error["predictions"] == (idle_received ? 2 : 0));
    CHECK(error["mean_relative_error"] == (idle_received ? json(0.5) : json()));
  }
  CHECK(has(render_bursts(body, {}), "b: 1 execution\n"));
}

TEST_CASE("bursts reports that traces without network and GPU have no bursts") {
  CommandRun command;
  const Ran ran = command.run({"bursts", CGPHASE_SOURCE_DIR "/tests/data/batch-11.csv.gz"});
  CHECK(ran.exit == 0);
  CHECK(has(ran.out, "cgphase-workload/batch: 1 execution, no bursts of network or GPU"));
  CHECK(has(ran.out, "nothing was predicted"));
}

TEST_CASE("bursts takes bytes per interval if requested, and CSV has a row per number") {
  CommandRun command;
  const std::string path = command.directory() / "interval.csv";
  std::string text = "timestamp,service,pod.id,net.rx.bytes\n";
  for (int i = 0; i < 200; ++i)
    text += std::to_string(1'700'000'000 + i) + ",s,p," + (i % 20 < 15 ? "10\n" : "5000\n");
  REQUIRE(replace_file(path, text));
  const Ran ran = command.run({"bursts", path, "--network-per-interval", "--json"});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  const json body = json::parse(ran.out);
  REQUIRE(body["rows"].size() == 3);
  CHECK(body["rows"][0]["mean"] == 15);
  CHECK(body["rows"][1]["mean"] == 5);
  CHECK(body["rows"][2]["mean"] == 25000);
  CHECK(command.run({"bursts", path, "-o", "csv"}).out.starts_with("service,execution,series"));
}

TEST_CASE("bursts refuses unreadable traces") {
  CommandRun command;
  CHECK(command.run({"bursts"}).exit == 2);
  const Ran ran = command.run({"bursts", "/nonexistent.csv"});
  CHECK(ran.exit == 6);
  CHECK(has(ran.err, "/nonexistent.csv"));
}
