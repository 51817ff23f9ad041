#include "policy/safety/safety_memory_json.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"

using namespace cgphase;

namespace {

using nlohmann::json;
using std::chrono::hours;

constexpr double kOneGib = kGiB;
constexpr CgroupId kLiveRun{7, 42};
const WallTime kWritten{std::chrono::seconds(1'700'000'000)};

SafetyMemory one_of_each() {
  SafetyMemory memory;
  memory.ooms.remember("img", {kOneGib, 0}, kWritten);
  memory.quarantines.keep("job", Resource::memory, hours(24), kWritten);
  memory.runs.keep(kLiveRun, "trainer", 600.0 * kMiB);
  return memory;
}

Result<SafetyMemory> read_again(const SafetyMemory& memory) {
  return safety_memory_from_json(json::parse(safety_memory_to_json(memory).dump()));
}

// Whether the memory is refused with this value at the JSON pointer.
bool refused(const char* path, const json& value) {
  json changed = safety_memory_to_json(one_of_each());
  changed[json::json_pointer(path)] = value;
  const auto read = safety_memory_from_json(changed);
  return !read && read.error().kind == ErrorKind::invalid;
}

// A text as the daemon stored it before, and stores it still.
constexpr const char* kStored =
    R"({"images":{"img":{"need_bytes":1073741824.0,"time_ns":1700000000000000000}},)"
    R"("quarantines":{"job":{"memory":{"seconds":86400.0,"time_ns":1700000000000000000}}},)"
    R"("runs":[{"device":7,"inode":42,"name":"trainer","need_bytes":629145600.0}],"schema":1})";

}  // namespace

TEST_CASE("the memory of the safety rules has the text of earlier versions") {
  CHECK(safety_memory_to_json(one_of_each()).dump() == kStored);
  const auto read = safety_memory_from_json(json::parse(kStored));
  REQUIRE(read.has_value());
  CHECK(safety_memory_to_json(*read).dump() == kStored);
}

TEST_CASE("OOM floors and quarantines are read back as written, also with hostile names") {
  SafetyMemory memory = one_of_each();
  memory.ooms.remember("\xff\"\n", {3 * kOneGib, 0}, kWritten);
  memory.quarantines.keep("\xff\"\n", Resource::memory, hours(24), kWritten);
  memory.quarantines.keep("job", Resource::cpu, hours(1), kWritten);
  memory.follow_clock(kWritten - hours(1));
  const auto read = read_again(memory);
  REQUIRE(read.has_value());
  CHECK(safety_memory_to_json(*read) == safety_memory_to_json(memory));
  CHECK(read->ooms.floor_bytes("\xff\"\n", kWritten) == doctest::Approx(3.6 * kOneGib));
  CHECK(read->quarantines.left("\xff\"\n", Resource::memory, kWritten) == hours(24));
}

TEST_CASE("peaks of live runs are read back as written and are not new") {
  auto read = read_again(one_of_each());
  REQUIRE(read.has_value());
  CHECK(read->runs.peak_bytes(kLiveRun, "trainer") == 600.0 * kMiB);
  CHECK_FALSE(read->runs.take_news());
}

TEST_CASE("a full memory with the longest names fits into the record of an image") {
  SafetyMemory memory;
  for (std::size_t i = 0; i < Quarantines::kContainers; ++i)
    for (const Resource resource : {Resource::cpu, Resource::memory})
      memory.quarantines.keep(std::to_string(i) + std::string(Quarantines::kMostNameBytes - 3, 'a'),
                              resource, hours(24), kWritten);
  for (std::size_t i = 0; i < OomMemory::kImages; ++i)
    memory.ooms.remember(std::to_string(i) + std::string(OomMemory::kMostNameBytes - 3, 'a'),
                         {1.23456789e14, 0}, kWritten);
  memory.follow_clock(kWritten - hours(1));
  CHECK(memory.quarantines.size() == Quarantines::kContainers);
  CHECK(memory.ooms.size() == OomMemory::kImages);
  CHECK(safety_memory_to_json(memory).dump().size() < 256 * 1024);
}

TEST_CASE("data of an older version have no quarantines and no runs") {
  json older = safety_memory_to_json(one_of_each());
  older.erase("quarantines");
  older.erase("runs");
  const auto read = safety_memory_from_json(older);
  REQUIRE(read.has_value());
  CHECK(read->ooms.size() == 1);
  CHECK(read->quarantines.size() == 0);
  CHECK(read->runs.size() == 0);
}

TEST_CASE("damaged OOM floors are refused, also with a need or a time out of range") {
  for (const json& whole : {json(nullptr), json::array(), json::object(), json{{"schema", 1}}})
    CHECK_FALSE(safety_memory_from_json(whole).has_value());
  CHECK(refused("/schema", 2));
  CHECK(refused("/images", 3));
  CHECK(refused("/images/img", 7));
  CHECK(refused("/images/img", json::object()));
  for (const json& need : {json("1"), json(0), json(-1), json(1e300)})
    CHECK(refused("/images/img/need_bytes", need));
  for (const json& time : {json(-1), json(1e19), json("x")})
    CHECK(refused("/images/img/time_ns", time));
  for (const json& time : {json(-1), json("x")})
    CHECK(refused("/images/img/ages_from_ns", time));
  CHECK(refused(("/images/" + std::string(OomMemory::kMostNameBytes + 1, 'a')).c_str(),
                {{"need_bytes", 1}, {"time_ns", 1}}));
  json many = safety_memory_to_json(one_of_each());
  const json image = many["images"]["img"];
  for (std::size_t i = 1; i < OomMemory::kImages; ++i) many["images"][std::to_string(i)] = image;
  CHECK(safety_memory_from_json(many).has_value());
  many["images"]["one more"] = image;
  CHECK_FALSE(safety_memory_from_json(many).has_value());
}

TEST_CASE("damaged quarantines are refused") {
  CHECK(refused("/quarantines", 1));
  CHECK(refused("/quarantines/job", 1));
  CHECK(refused("/quarantines/job/memory", 1));
  for (const json& length :
       {json(0), json(-1), json("1"), json(366.5 * 86400), json(1e300), json(nullptr)})
    CHECK(refused("/quarantines/job/memory/seconds", length));
  for (const json& time : {json(-1), json(1.5), json(nullptr), json(1e30)}) {
    CHECK(refused("/quarantines/job/memory/time_ns", time));
    CHECK(refused("/quarantines/job/memory/ages_from_ns", time));
  }
}

TEST_CASE("damaged peaks of live runs are refused") {
  CHECK(refused("/runs", json::object()));
  CHECK(refused("/runs/0", 5));
  for (const char* path :
       {"/runs/0/device", "/runs/0/inode", "/runs/0/name", "/runs/0/need_bytes"}) {
    CHECK(refused(path, nullptr));
    CHECK(refused(path, json::array()));
  }
  CHECK(refused("/runs/0/need_bytes", -1));
  CHECK(refused("/runs/0/need_bytes", 1e16));
  CHECK(refused("/runs/0/inode", -1));
  CHECK(refused("/runs/0/name", std::string(LiveRuns::kMostNameBytes + 1, 'a')));
}
