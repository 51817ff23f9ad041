#include "tests/workloads/demo_summary.h"

#include <doctest/doctest.h>

using namespace cgphase::workloads;
using nlohmann::json;

namespace {

json container(const char* name, double cpu_seconds) {
  return {
      {"name", name},
      {"kind", "train"},
      {"static", {{"cpu_cores", 1.0}, {"memory_bytes", 1000}}},
      {"seconds", 10.0},
      {"core_seconds", 6.0},
      {"byte_seconds", 5000.0},
      {"changes",
       json::array({{{"seconds", 2.0},
                     {"knob", "cpu.max"},
                     {"from", "100000 100000"},
                     {"to", "50000 100000"}},
                    {{"seconds", 3.0}, {"knob", "memory.max"}, {"from", "500"}, {"to", "max"}}})},
      {"phases", "--AAB?"},
      {"truth", "ddddtt"},
      {"periods", 100},
      {"throttled_periods", 4},
      {"oom_kills", 0},
      {"original", {{"cpu.max", "100000 100000"}, {"memory.max", "1000"}}},
      {"before_stop", {{"cpu.max", "50000 100000"}, {"memory.max", "1000"}}},
      {"after_stop", {{"cpu.max", "100000 100000"}, {"memory.max", "1000"}}},
      {"exit_status", 0},
      {"work",
       {{"unit", "steps"},
        {"units", 10},
        {"loss", 0.5},
        {"cpu_seconds", cpu_seconds},
        {"wall_seconds", 10.0}}}};
}

Round make_round(double managed_cpu_seconds) {
  json containers = json::array(), twins = json::array();
  for (const char* name : {"a", "b", "c"}) {
    containers.push_back(container(name, managed_cpu_seconds));
    twins.push_back(container(name, 1.0));
  }
  return {{{"seed", 3},
           {"containers", containers},
           {"daemon",
            {{"alive_at_end", true},
             {"exit_status", 0},
             {"cpu_seconds", 0.5},
             {"commands", {{"list.json", 0}}}}}},
          {{"seed", 3}, {"containers", twins}, {"daemon", nullptr}},
          {{.container = "a", .knob = "memory.high", .seconds_before = 61}}};
}

std::vector<Round> make_rounds() { return {make_round(1.0), make_round(1.3), make_round(1.1)}; }

bool held(const std::vector<Round>& rounds) {
  const auto summary = summarise(rounds);
  REQUIRE(summary.has_value());
  return all_held(summary->requirements);
}

}  // namespace

TEST_CASE("median: the middle, or the mean of the two middle ones") {
  CHECK(median({}) == 0);
  CHECK(median({3, 1, 2}) == 2);
  CHECK(median({4, 1, 2, 3}) == 2.5);
}

TEST_CASE("demo: shares are given back against the static limits") {
  const auto summary = summarise(make_rounds());
  REQUIRE(summary.has_value());
  CHECK(summary->cpu_share == doctest::Approx(0.4));
  CHECK(summary->memory_share == doctest::Approx(0.5));
  REQUIRE(summary->round_cpu_shares.size() == 3);
  CHECK(summary->round_cpu_shares[0] == doctest::Approx(0.4));
  CHECK(summary->containers.size() == 3);
  CHECK(summary->containers[0].lowered == 3);
  CHECK(summary->containers[0].raised == 3);
  CHECK(summary->containers[0].phases_seen == 2);
}

TEST_CASE("demo: the CPU ratio is the median of the rounds") {
  const auto summary = summarise(make_rounds());
  REQUIRE(summary.has_value());
  CHECK(summary->containers[0].cpu_ratio == doctest::Approx(1.1));
}

TEST_CASE("demo: it passes if everything is in order") { CHECK(held(make_rounds())); }

TEST_CASE("demo: a CPU ratio of 1.15 passes and a higher one does not") {
  CHECK(held({make_round(1.15)}));
  CHECK_FALSE(held({make_round(1.16)}));
}

TEST_CASE("demo: no raise before a phase in the last round fails it") {
  auto rounds = make_rounds();
  rounds[0].raises.clear();
  CHECK(held(rounds));
  rounds.back().raises.clear();
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: one OOM kill fails it") {
  auto rounds = make_rounds();
  rounds[1].managed["containers"][2]["oom_kills"] = 1;
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: a limit that is not restored at the end fails it") {
  auto rounds = make_rounds();
  rounds[2].managed["containers"][0]["after_stop"]["memory.max"] = "999";
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: another result than the twin's fails it") {
  auto rounds = make_rounds();
  rounds[0].managed["containers"][1]["work"]["loss"] = 0.6;
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: a workload that failed fails it, and its missing result causes no crash") {
  auto rounds = make_rounds();
  rounds[0].managed["containers"][1]["exit_status"] = 137;
  rounds[0].managed["containers"][1]["work"] = nullptr;
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: a daemon that died or a question without answer fails it") {
  auto rounds = make_rounds();
  rounds[0].managed["daemon"]["alive_at_end"] = false;
  CHECK_FALSE(held(rounds));
  rounds = make_rounds();
  rounds[0].managed["daemon"]["commands"]["list.json"] = 4;
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: containers never lowered, or never recognised, fail it") {
  auto rounds = make_rounds();
  for (Round& round : rounds) round.managed["containers"][1]["changes"] = json::array();
  CHECK_FALSE(held(rounds));
  rounds = make_rounds();
  for (Round& round : rounds) round.managed["containers"][1]["phases"] = "--??";
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: two containers are too few") {
  auto rounds = make_rounds();
  for (Round& round : rounds) {
    round.managed["containers"].erase(2);
    round.twin["containers"].erase(2);
  }
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: runs of different mixes, or with missing parts, are invalid") {
  auto rounds = make_rounds();
  rounds[1].twin["containers"][0]["name"] = "z";
  CHECK_FALSE(summarise(rounds).has_value());
  rounds = make_rounds();
  rounds[1].managed["containers"][0].erase("periods");
  CHECK_FALSE(summarise(rounds).has_value());
  CHECK_FALSE(summarise({}).has_value());
}

TEST_CASE("demo: less memory freed than the least share fails it, and the least share holds") {
  auto rounds = make_rounds();
  for (Round& round : rounds)
    for (json& one : round.managed["containers"]) one["byte_seconds"] = 8999.0;
  CHECK(held(rounds));
  for (Round& round : rounds)
    for (json& one : round.managed["containers"]) one["byte_seconds"] = 9001.0;
  CHECK_FALSE(held(rounds));
}

TEST_CASE("demo: the details name every container, change and requirement") {
  const auto rounds = make_rounds();
  const auto summary = summarise(rounds);
  REQUIRE(summary.has_value());
  const std::string text = to_details(*summary, rounds);
  for (const char* part : {"1.00 cores -> 0.50 cores", "500 B -> max", "--AAB?", "ddddtt",
                           "OOM kills 0", "originals restored: yes", "40 % of core-hours"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part, text);
}

TEST_CASE("demo: a row has the phases, limits, freed shares, throttling, kills and restore") {
  const auto summary = summarise(make_rounds());
  REQUIRE(summary.has_value());
  const std::string text = to_table(*summary);
  for (const char* part : {"1000 B -> 1000 B", "1.00 -> 0.50", "50 % (", " GiB-h), 40 % (",
                           " core-h)", "4 %, 4 %", "yes"})
    CHECK_MESSAGE(text.find(part) != std::string::npos, part, text);
}

TEST_CASE("demo: the sentence has the numbers, and the reasons where the demo failed") {
  auto rounds = make_rounds();
  const auto sentence = [&] {
    const auto summary = summarise(rounds).value();
    return to_sentence(summary.requirements, to_numbers(summary));
  };
  CHECK(sentence() ==
        "The demo passed: limits rose up to 61 s before use; other jobs could have used 50 % of "
        "the memory of those that ran.\n");
  rounds[1].managed["containers"][2]["oom_kills"] = 1;
  rounds.back().raises.clear();
  CHECK(sentence() ==
        "The demo failed, because the kernel killed a process of a job for lack of memory, and no "
        "limit rose before the phase that needed it: limits rose up to 0 s before use; other jobs "
        "could have used 50 % of the memory of those that ran.\n");
}
