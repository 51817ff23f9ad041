#include "policy/learned_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

using namespace cgphase;

namespace {

using nlohmann::json;

LearnedPhases phases() {
  LearnedPhases learned;
  PhaseRecord record;
  record.cpu_cores.add(1, 2, 0);
  record.memory_bytes.add(1e8, 3, 0);
  record.dwell_seconds.add(60, 1, 0);
  record.next[1] = 2;
  record.runs = 1;
  learned.records.emplace(0, record);
  learned.peaks[{0, PhaseMoment::kAny, 2}] = {10, 1, 1.5, 2e8, 3, 4.5, 2};
  learned.runs.push_back({60, 1.5, 2e8, 5});
  return learned;
}

LearnedUsage usage() {
  LearnedUsage learned("vpa", {{0.01, 100}, {1e7, 400}});
  learned.cpu_cores.add(1, 2, 0);
  learned.memory_bytes.add(1e8, 3, 0);
  learned.runs = 1;
  return learned;
}

// Texts as the daemon stored them before, and stores them still.
const std::string kNoSuccessors =
    "0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,0.0,";
const std::string kPhases =
    R"({"peaks":[{"age":2,"cpu_cores":1.5,"cpu_jump_cores":4.5,"cpu_jumps":3.0,)"
    R"("memory_bytes":200000000.0,"memory_jumps":2.0,"moments":10.0,"previous":-1,"slot":0,)"
    R"("visits":1.0}],"phases":[{"cpu_cores":{"count":1.0,"first":0.01,)"
    R"("half_life_seconds":43200.0,"weights":[[95,2.0]]},"dwell_seconds":{"count":1.0,)"
    R"("first":1.0,"half_life_seconds":172800.0,"weights":[[84,1.0]]},"memory_bytes":{)"
    R"("count":1.0,"first":10000000.0,"half_life_seconds":172800.0,"weights":[[48,3.0]]},)"
    R"("next":[0.0,2.0,)" + kNoSuccessors + kNoSuccessors.substr(0, 15 * 4 - 1) +
    R"(],"runs":1,"slot":0}],"policy":"phase","runs":[{"cpu_cores":1.5,)"
    R"("memory_bytes":200000000.0,"memory_rise_bytes_per_sec":5.0,"samples":60.0}],"schema":1})";
const std::string kUsage =
    R"({"cpu_cores":{"count":1.0,"first":0.01,"half_life_seconds":100.0,"weights":[[95,2.0]]},)"
    R"("memory_bytes":{"count":1.0,"first":10000000.0,"half_life_seconds":400.0,)"
    R"("weights":[[48,3.0]]},"policy":"vpa","runs":1,"schema":1})";

// Whether the state is refused with this value at the JSON pointer.
bool refused(const LearnedState& learned, const std::string& path, const json& value) {
  json changed = learned_to_json(learned);
  changed[json::json_pointer(path)] = value;
  const auto read = learned_from_json(changed);
  return !read && read.error().kind == ErrorKind::invalid;
}

bool refused_without(const LearnedState& learned, const std::string& path, const char* key) {
  json changed = learned_to_json(learned);
  changed[json::json_pointer(path)].erase(key);
  return !learned_from_json(changed).has_value();
}

}  // namespace

TEST_CASE("learned phases have the text of earlier versions") {
  CHECK(learned_to_json(phases()).dump() == kPhases);
  const auto read = learned_from_json(json::parse(kPhases));
  REQUIRE(read.has_value());
  CHECK(learned_to_json(*read).dump() == kPhases);
  const auto& learned = std::get<LearnedPhases>(*read);
  CHECK(learned.records.at(0).dwell_seconds.total_weight() == 1);
  CHECK(learned.peaks.at({0, PhaseMoment::kAny, 2}).cpu_jump_cores == 4.5);
  CHECK(learned.runs == phases().runs);
}

TEST_CASE("learned usage has the text of earlier versions") {
  CHECK(learned_to_json(usage()).dump() == kUsage);
  const auto read = learned_from_json(json::parse(kUsage));
  REQUIRE(read.has_value());
  CHECK(learned_to_json(*read).dump() == kUsage);
  const auto& learned = std::get<LearnedUsage>(*read);
  CHECK(learned.policy == "vpa");
  CHECK(learned.cpu_cores.total_weight() == 2);
  CHECK(learned.memory_bytes.total_weight() == 3);
}

TEST_CASE("an empty state is null") {
  CHECK(learned_to_json({}).is_null());
  const auto read = learned_from_json(nullptr);
  REQUIRE(read.has_value());
  CHECK(is_empty(*read));
}

TEST_CASE("older texts without peaks, runs or memory jumps are read") {
  json older = json::parse(kPhases);
  older["peaks"][0].erase("memory_jumps");
  const auto jumps = learned_from_json(older);
  REQUIRE(jumps.has_value());
  // Any of the moments may have been a jump.
  CHECK(std::get<LearnedPhases>(*jumps).peaks.begin()->second.memory_jumps == 10);
  older.erase("peaks");
  older.erase("runs");
  const auto read = learned_from_json(older);
  REQUIRE(read.has_value());
  CHECK(std::get<LearnedPhases>(*read).records.size() == 1);
  CHECK(std::get<LearnedPhases>(*read).peaks.empty());
  CHECK(std::get<LearnedPhases>(*read).runs.empty());
}

TEST_CASE("a text in a foreign format is refused") {
  for (const json& whole : {json("text"), json(5), json::array(), json::object(),
                            json{{"schema", 1}}, json{{"schema", 1}, {"policy", "vpa"}}})
    CHECK_FALSE(learned_from_json(whole).has_value());
  for (const LearnedState& learned : {LearnedState(phases()), LearnedState(usage())}) {
    CHECK(refused(learned, "/schema", 2));
    CHECK(refused(learned, "/schema", "1"));
    CHECK(refused_without(learned, "", "schema"));
  }
}

TEST_CASE("a histogram in a foreign format is refused") {
  for (const char* key : {"/cpu_cores", "/memory_bytes"}) {
    const std::string at = key;
    CHECK(refused(usage(), at, nullptr));
    CHECK(refused(usage(), at, json::array()));
    for (const json& value : {json(0), json(-1), json("100"), json(nullptr)}) {
      CHECK(refused(usage(), at + "/first", value));
      CHECK(refused(usage(), at + "/half_life_seconds", value));
    }
    CHECK(refused(usage(), at + "/half_life_seconds", 1e10));
    CHECK(refused(usage(), at + "/count", -1));
    CHECK(refused(usage(), at + "/count", nullptr));
    CHECK(refused(usage(), at + "/weights", 3));
    CHECK(refused(usage(), at + "/weights/0", json::array({1})));
    CHECK(refused(usage(), at + "/weights/0", {0.5, 1}));
    CHECK(refused(usage(), at + "/weights/0", {0, "1"}));
    CHECK(refused(usage(), at + "/weights/0", {0, 1e19}));
    CHECK(refused(usage(), at + "/weights/0", {400, 1}));
    CHECK(refused(usage(), at + "/weights/0", {1e300, 1}));
    CHECK(refused(usage(), at + "/weights/1", {0, 1}));  // not ascending
    CHECK(refused(usage(), at + "/weights", json(std::size_t{401}, json{0, 1})));
  }
}

TEST_CASE("usage without a policy or a number of runs is refused") {
  CHECK(refused(usage(), "/policy", 5));
  CHECK(refused(usage(), "/policy", ""));
  CHECK(refused_without(usage(), "", "policy"));
  CHECK_FALSE(refused(usage(), "/runs", 1'000'000));
  for (const json& runs : {json(-1), json(1'000'001), json(0.5), json(nullptr)})
    CHECK(refused(usage(), "/runs", runs));
}

TEST_CASE("phases in a foreign format are refused") {
  CHECK(refused(phases(), "/phases", "many"));
  CHECK(refused(phases(), "/phases/0", 5));
  CHECK(refused(phases(), "/phases/1", learned_to_json(phases())["phases"][0]));  // the same slot
  for (const json& slot : {json(-1), json(kPhaseSlots), json(0.5), json(nullptr)})
    CHECK(refused(phases(), "/phases/0/slot", slot));
  for (const json& runs : {json(-1), json(1'000'001), json("1")})
    CHECK(refused(phases(), "/phases/0/runs", runs));
  CHECK(refused_without(phases(), "/phases/0", "cpu_cores"));
  CHECK(refused(phases(), "/phases/0/cpu_cores/first", 0.02));
  CHECK(refused(phases(), "/phases/0/memory_bytes/half_life_seconds", 100));
  CHECK(refused(phases(), "/phases/0/next", 5));
  CHECK(refused(phases(), "/phases/0/next/33", 0));
  for (const json& count : {json(-1), json(1e10), json("1")})
    CHECK(refused(phases(), "/phases/0/next/1", count));
}

TEST_CASE("peaks in a foreign format are refused") {
  CHECK(refused(phases(), "/peaks", 5));
  CHECK(refused(phases(), "/peaks/0", 5));
  CHECK(refused(phases(), "/peaks/0/slot", -1));
  CHECK(refused(phases(), "/peaks/0/slot", kPhaseSlots));
  CHECK(refused(phases(), "/peaks/0/previous", -2));
  CHECK(refused(phases(), "/peaks/0/age", 12));
  CHECK(refused(phases(), "/peaks/0/age", 0.5));
  CHECK(refused(phases(), "/peaks/0/moments", -1));
  CHECK(refused(phases(), "/peaks/0/cpu_cores", "much"));
  CHECK(refused(phases(), "/peaks/0/memory_bytes", 1e300));
  CHECK(refused(phases(), "/peaks/0/memory_jumps", -1));
  CHECK(refused_without(phases(), "/peaks/0", "moments"));
  CHECK(refused(phases(), "/peaks/1", learned_to_json(phases())["peaks"][0]));  // the same moment
}

TEST_CASE("peaks of runs in a foreign format are refused") {
  CHECK(refused(phases(), "/runs", 1));
  CHECK(refused(phases(), "/runs/0", 1));
  CHECK(refused(phases(), "/runs/0/samples", -1));
  CHECK(refused_without(phases(), "/runs/0", "cpu_cores"));
  const json run = learned_to_json(phases())["runs"][0];
  CHECK_FALSE(refused(phases(), "/runs", json(kRunsKept, run)));
  CHECK(refused(phases(), "/runs", json(kRunsKept + 1, run)));
}
