#include "cli/commands/size.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "policy/learned_json.h"
#include "tests/cli/command_run.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

constexpr double kMebi = 0x1p20;

// `count` samples of one second with `cores` of CPU, once ten times that, and `mib` of memory.
PhaseRecord record_of(int samples, double cores, double mib, int runs = 1) {
  PhaseRecord record;
  for (int i = 0; i < samples; ++i) {
    record.cpu_cores.add(i == samples / 2 ? 10 * cores : cores, 1, i);
    record.memory_bytes.add(mib * kMebi, 1, i);
  }
  record.runs = runs;
  return record;
}

Sized sized(const PhaseRecords& records, double risk = kSizeDefaultRisk) {
  const LearnedPhases learned{.records = records, .peaks = {}, .runs = {}};
  return size_of("web", "image", &learned, risk);
}

const std::string kTrace = CGPHASE_SOURCE_DIR "/tests/data/batch-15-heldout.csv.gz";
const std::string kModel = CGPHASE_SOURCE_DIR "/model/default_model.json";

}  // namespace

TEST_CASE("a T-shirt size covers both CPU and memory, and none covers more than XL") {
  CHECK(std::string(shirt_for(0.1, kMebi)->name) == "XS");
  CHECK(std::string(shirt_for(0.5, 1024 * kMebi)->name) == "XS");
  CHECK(std::string(shirt_for(0.51, kMebi)->name) == "S");
  CHECK(std::string(shirt_for(0.1, 4097 * kMebi)->name) == "M");
  CHECK(std::string(shirt_for(8, 32 * 1024 * kMebi)->name) == "XL");
  CHECK(shirt_for(8.01, kMebi) == nullptr);
}

TEST_CASE("CPU is the quantile of the risk, memory the highest need and the headroom") {
  const PhaseRecords records = {{0, record_of(2000, 0.4, 100)}};
  const Sized one = sized(records);
  REQUIRE(one.overall.enough);
  // One sample in 2000 wants 4 cores, which is within the risk. A bucket of the histogram is up to
  // 5 % wide.
  CHECK(one.overall.cpu_cores >= 0.4);
  CHECK(one.overall.cpu_cores <= 0.4 * 1.05 + 0.01);
  CHECK(one.overall.memory_bytes >= 115 * kMebi);
  CHECK(one.overall.memory_bytes <= 115 * kMebi * 1.05 + kMebi);
  CHECK(sized(records, 0.0001).overall.cpu_cores >= 4);
}

TEST_CASE("a phase that was too short for a record counts for the memory") {
  const LearnedPhases learned{
      .records = {{0, record_of(500, 0.2, 20)}},
      .peaks = {},
      .runs = {{.samples = 250, .cpu_cores = 0.5, .memory_bytes = 72 * kMebi},
               {.samples = 250, .cpu_cores = 0.5, .memory_bytes = 80 * kMebi}}};
  const Sized one = size_of("web", "image", &learned, kSizeDefaultRisk);
  CHECK(one.overall.memory_bytes == 92 * kMebi);
  CHECK(one.phases[0].memory_bytes < 25 * kMebi);
}

TEST_CASE("no size is larger than the host") {
  const LearnedPhases learned{
      .records = {{0, record_of(2000, 3, 900)}}, .peaks = {}, .runs = {}};
  const HostCapacity host{.cpu_cores = 2, .memory = Bytes{std::uint64_t{1000} << 20}};
  const Sized one = size_of("web", "image", &learned, kSizeDefaultRisk, host);
  CHECK(one.overall.cpu_cores == 2);
  CHECK(one.overall.memory_bytes == 1000 * kMebi);
  CHECK(one.phases[0].cpu_cores == 2);
}

TEST_CASE("every phase has a size, and the overall size covers all of them") {
  const PhaseRecords records = {{0, record_of(500, 0.2, 100)}, {2, record_of(500, 1.5, 6000)}};
  const json body = size_json(std::vector{sized(records, 0.01)}, 0.01);
  const json& one = body["sizes"][0];
  CHECK(one["overall"]["size"] == "M");
  CHECK(one["overall"]["cpu_millicores"] == one["phases"][1]["cpu_millicores"]);
  CHECK(one["phases"][0]["letter"] == "A");
  CHECK(one["phases"][0]["share"] == doctest::Approx(0.5).epsilon(0.02));
  CHECK(one["phases"][1]["letter"] == "C");
  CHECK(has(one["overall"]["docker"].get<std::string>(), "--cpus "));
  CHECK(has(one["overall"]["systemd"].get<std::string>(), "CPUQuota="));
  CHECK(one["overall"]["risk_shown"] == 0.01);
  const json fewer = size_json(std::vector{sized(records)}, 0.001);
  CHECK(fewer["sizes"][0]["overall"]["risk_shown"] == doctest::Approx(0.003));
}

TEST_CASE("too little history is reported without numbers") {
  for (const PhaseRecords& records :
       {PhaseRecords{}, PhaseRecords{{0, record_of(59, 1, 1)}},
        PhaseRecords{{0, record_of(200, 1, 1)}}}) {
    const json body = size_json(std::vector{sized(records)}, kSizeDefaultRisk);
    CHECK(body["sizes"][0]["enough_history"] == false);
    CHECK(body["sizes"][0]["overall"]["cpu_cores"].is_null());
    CHECK(has(render_sizes(std::vector{sized(records)}, {}), "web: not enough history: "));
  }
  CHECK_FALSE(size_of("web", "image", nullptr, 0.001).overall.enough);
  // Each at its minimum: samples over time, or samples of runs.
  CHECK(sized({{0, record_of(301, 1, 1)}}).overall.enough);
  CHECK(sized({{0, record_of(60, 1, 1, kSizeLeastRuns)}}).overall.enough);
  CHECK_FALSE(sized({{0, record_of(60, 1, 1, kSizeLeastRuns - 1)}}).overall.enough);
}

TEST_CASE("a need above all T-shirt sizes is printed as numbers") {
  const PhaseRecords records = {{0, record_of(500, 20, 100)}};
  const json body = size_json(std::vector{sized(records)}, kSizeDefaultRisk);
  CHECK(body["sizes"][0]["overall"]["size"].is_null());
  CHECK(has(render_sizes(std::vector{sized(records)}, {}), "larger than XL"));
}

TEST_CASE("size of traces is per service, with and without a model") {
  CommandRun command;
  const Ran ran = command.run({"size", kTrace, kTrace, kTrace, "--model", kModel, "--json"});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  const json body = json::parse(ran.out);
  CHECK(body["schema"] == 1);
  REQUIRE(body["sizes"].size() == 1);
  CHECK(body["sizes"][0]["name"] == "cgphase-workload/batch");
  CHECK(body["sizes"][0]["enough_history"] == true);
  CHECK(body["sizes"][0]["overall"]["runs"] == 3);
  CHECK(body["sizes"][0]["phases"].size() > 1);
  CHECK(command.run({"size", kTrace, "-o", "csv"}).out.starts_with("name,kind,enough_history"));
  CHECK(command.run({"size", kTrace, "--image", "cgphase-workload/batch"}).exit == 0);
  CHECK(command.run({"size", kTrace, "--image", "nothing"}).exit == 6);
}

TEST_CASE("size of a container or an image uses what the daemon learned") {
  CommandRun command;
  const json learned =
      learned_to_json(LearnedPhases{{{0, record_of(2000, 0.4, 100)}}, {}, {}});
  command.serve([&](const Request& request) -> json {
    const auto& asked = std::get<LearnedRequest>(request);
    if (asked.image == "none")
      return error_reply(Exit::no_container, "nothing was learned of an image 'none'");
    if (asked.container == "fresh")
      return ok_reply({{"name", "fresh"}, {"policy", "hold"}, {"learned", nullptr}});
    if (asked.container == "odd")
      return ok_reply({{"name", 5}, {"learned", {{"schema", 1}, {"phases", "many"}}}});
    return ok_reply({{"name", "web"}, {"policy", "phase"}, {"learned", learned}});
  });
  const Ran ran = command.run({"size", "web"});
  CHECK(ran.exit == 0);
  CHECK(has(ran.out, "web: size XS, 4"));
  CHECK(has(ran.out, "docker run --cpus 0.4"));
  CHECK(command.run({"size", "--image", "shop/web:7"}).exit == 0);
  CHECK(arguments_of(command.requests().back()) == json{{"image", "shop/web:7"}});
  CHECK(command.run({"size", "--image", "none"}).exit == 3);
  const Ran fresh = command.run({"size", "fresh"});
  CHECK(fresh.exit == 0);
  CHECK(has(fresh.out, "not enough history: the daemon's policy is hold"));
  const Ran odd = command.run({"size", "odd"});
  CHECK(odd.exit == 1);
  CHECK(has(odd.err, "unknown reply: 'name'"));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"size"}, {"size", "a", "b"}, {"size", "a", "--image", "b"},
        {"size", "a", "--risk", "2"}, {"size", "a", "--risk", "x"}, {"size", "a", kTrace}})
    CHECK(command.run(words).exit == 2);
}
