#include "lab/replay/report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "tests/lab/replay/results.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

json parsed(const ReplayReport& report) { return json::parse(replay_json(report)); }

}  // namespace

TEST_CASE("JSON has the contract's keys for each policy and resource") {
  const json body = parsed(report());
  CHECK(body["schema"] == 1);
  CHECK(body["traces"] == 1);
  CHECK(body["executions"] == 2);
  REQUIRE(body["policies"].size() == 4);
  for (const json& policy : body["policies"])
    for (const char* key :
         {"name", "resource", "alloc_vs_static", "slack", "samples_over", "windows_clean",
          "overrun_area", "wastage", "would_oom", "writes_up", "writes_down", "gap_to_oracle",
          "margin", "by_resource_hour", "bootstrap", "censored", "would_oom_working_set",
          "by_execution"})
      CHECK_MESSAGE(policy.contains(key), key);
  CHECK(body["policies"][0]["name"] == "phase");
  CHECK(body["policies"][0]["resource"] == "cpu");
  CHECK(body["policies"][1]["resource"] == "memory");
}

TEST_CASE("main values are weighted by job, counts are sums and whole numbers") {
  const json body = parsed(report());
  const json& cpu = body["policies"][0];
  CHECK(cpu["alloc_vs_static"] == doctest::Approx(0.45));
  CHECK(cpu["by_resource_hour"]["alloc_vs_static"] == doctest::Approx(0.45));
  CHECK(cpu["samples_over"] == doctest::Approx(0.01));
  CHECK(cpu["writes_up"].is_number_integer());
  CHECK(cpu["writes_up"] == 4);
  CHECK(body["policies"][1]["would_oom"] == 2);
  CHECK(cpu["by_execution"].size() == 2);
  CHECK(cpu["by_execution"][1]["id"] == "run-1");
  CHECK(cpu["bootstrap"]["alloc_vs_static"] == json::array({0.4, 0.5}));
}

TEST_CASE("the closed loop adds its measures, which are absent without it") {
  ReplayReport closed = report();
  closed.settings.loop.enabled = true;
  for (const char* key :
       {"backlog_core_seconds", "throttled_seconds", "time_to_raise_ms", "guard_raises"}) {
    CHECK_FALSE(parsed(report())["policies"][0].contains(key));
    CHECK(parsed(closed)["policies"][0].contains(key));
  }
  CHECK(parsed(closed)["policies"][0]["time_to_raise_ms"] == 100);
}

TEST_CASE("hashes cover files, the model and the decisions") {
  const json hashes = parsed(report())["hashes"];
  CHECK(hashes["traces"][0] == json{{"path", "a.csv"}, {"crc32c", "00001234"}});
  CHECK(hashes["model"] == "0000abcd");
  CHECK(hashes["compat_model"].is_null());
  CHECK(hashes["decisions"].get<std::string>().size() == 8);
  ReplayReport other = report();
  other.results[1].executions[0].crc = 99;
  const json changed = parsed(other)["hashes"];
  CHECK(changed["decisions"] != hashes["decisions"]);
  CHECK(changed["policies"][0] == hashes["policies"][0]);
  CHECK(changed["policies"][1] != hashes["policies"][1]);
}

TEST_CASE("an unmeasured resource has no entries, and an oracle at the limit has no gap") {
  ReplayReport made = report();
  made.results = {result("hold", 0.05, {sums(10, 0, 10, 10)})};
  const json body = parsed(made);
  REQUIRE(body["policies"].size() == 1);
  CHECK(body["policies"][0]["gap_to_oracle"].is_null());
  CHECK(body["policies"][0]["margin"] == 0.05);
}

TEST_CASE("one execution has no intervals") {
  ReplayReport made = report();
  made.results = {result("hold", 0, {sums(4, 0)})};
  CHECK(parsed(made)["policies"][0]["bootstrap"]["slack"].is_null());
  CHECK(has(replay_text(made, {}), "One execution: no confidence intervals"));
}

TEST_CASE("hostile names are escaped") {
  ReplayReport made = report();
  made.traces[0].path = "a\x1b\xff.csv";
  made.results[0].executions[0].id = "\xff";
  const json body = parsed(made);
  CHECK(body["hashes"]["traces"][0]["path"] == "a\\x1b\\xff.csv");
  CHECK(body["policies"][0]["by_execution"][0]["id"] == "\\xff");
}

TEST_CASE("CSV has one line per policy and resource") {
  const std::string text = replay_csv(report(), true);
  CHECK(text.starts_with("name,margin,resource,alloc_vs_static,slack,samples_over"));
  CHECK(has(text, "\nphase,0.0,cpu,0.45,0.5,0.01,"));
  CHECK(std::ranges::count(text, '\n') == 5);
}

TEST_CASE("without a legend CSV has no heading") {
  CHECK(replay_csv(report(), false).starts_with("phase,0.0,cpu,0.45,"));
}

TEST_CASE("JSON lines have each execution under each policy, with its reference") {
  ReplayReport made = report();
  made.results[0].executions[1].memory_by = Yardstick::largest_use;
  const std::string text = replay_jsonl(made);
  CHECK(std::ranges::count(text, '\n') == 8);
  std::vector<json> lines;
  for (std::size_t at = 0; at < text.size(); at = text.find('\n', at) + 1)
    lines.push_back(json::parse(text.substr(at, text.find('\n', at) - at)));
  CHECK(lines[1]["name"] == "phase");
  CHECK(lines[1]["id"] == "run-1");
  CHECK(lines[1]["resource"] == "cpu");
  CHECK(lines[1]["samples_over"] == 0.02);
  CHECK(lines[1]["original_from"] == "limit");
  CHECK(lines[3]["resource"] == "memory");
  CHECK(lines[3]["original_from"] == "largest use");
  CHECK(lines[7]["name"] == "static");
}

TEST_CASE("executions measured by their largest use are reported") {
  ReplayReport made = report();
  CHECK(measured_by_use(made).empty());
  made.results[0].executions[0].cpu_by = Yardstick::host;
  CHECK(measured_by_use(made).empty());
  made.results[0].executions[0].cpu_by = Yardstick::largest_use;
  made.results[0].executions[1].memory_by = Yardstick::largest_use;
  CHECK(has(measured_by_use(made),
            "recorded for the CPU of 1 and the memory of 1 of 2 executions; the largest"));
}

TEST_CASE("the first sentence says what would be saved and at what risk") {
  CHECK(replay_text(report(), {}).starts_with(
      "phase would have given back 55 % of the CPU and 35 % of the memory of 2 executions (3 min "
      "20 s); over its limit: 1.0 % of the CPU samples, 0 % of the memory samples; out of memory "
      "in 2 of 8 windows.\n"));
  ReplayReport safe = report();
  safe.results.erase(safe.results.begin());
  CHECK(has(replay_text(safe, {}), "static would have given back 0 % of the CPU"));
  CHECK(has(replay_text(safe, {}), "it would never have run out of memory"));
}

TEST_CASE("the first sentence is about ours as the daemon plays it") {
  ReplayReport made = report();
  made.results.push_back(result("phase", 0, {sums(8, 0), sums(8, 0)}));
  made.results.back().safety = true;
  CHECK(replay_text(made, {}).starts_with("phase+rails would have given back 20 % of the CPU"));
}

TEST_CASE("both tables have a row per policy and resource, and the censored share follows") {
  const std::string text = replay_text(report(), {});
  CHECK_MESSAGE(has(text, "\nmemory    phase        65 %   56 %   50 %    0 %  100 %      0 %"
                          "    0.5 GB-h    2   4     2\n"),
                text);
  CHECK(has(text, "weighted by resource-hour"));
  CHECK(has(text, "0 % of the CPU samples and 2.5 % of the memory samples reached their limit"));
  TextStyle bare;
  bare.legend = false;
  CHECK_FALSE(has(replay_text(report(), bare), "ALLOCATED"));
}

TEST_CASE("several margins have a column") {
  ReplayReport made = report();
  made.results.push_back(result("phase", 0.05, {sums(4, 0), sums(5, 2)}));
  CHECK_FALSE(has(replay_text(report(), {}), "MARGIN"));
  CHECK(has(replay_text(made, {}), "MARGIN"));
}

TEST_CASE("a comparison shows both sides, and assertions show how many hold") {
  ReplayReport made = report();
  const Sweep a{"phase", {{"risk 0.1 %", {sums(4, 0)}, {}}}, 0};
  const Sweep b{"controls", {{"hold", {sums(6, 0)}, {}}}, {}};
  made.comparison = compare(a, b, {});
  made.assertions = {{"1 < 2", true, 1, 2}, {"2 < 1", false, 2, 1}};
  const std::string text = replay_text(made, {});
  CHECK(has(text, "A is phase, B is controls"));
  CHECK(has(text, "0 % (as shipped)"));
  CHECK(has(text, "assertions that hold: 1 of 2"));
  const json body = parsed(made);
  CHECK(body["compare"]["resources"][0]["at"][0]["ratio"] == doctest::Approx(0.5));
  CHECK(body["compare"]["resources"][0]["at"][3]["shipped"] == true);
  CHECK(body["assertions"][1]["holds"] == false);
}
