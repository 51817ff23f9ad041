#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "protocol/replies.h"
#include "tests/cli/command_run.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

const std::string kJobs = CGPHASE_SOURCE_DIR "/tests/data/batch-15-heldout.csv.gz";

FitAnswer answer_of(double cpus) {
  return answer_fit({.cpu_cores = cpus, .memory_bytes = 1e8, .duration = std::chrono::hours(1)},
                    {.capacity = {4, Bytes{kGiB}}, .outside_cpu_cores = 0.5,
                     .outside_memory_bytes = 1e8},
                    [](std::chrono::seconds) {
                      return std::vector<KnownContainer>{
                          {.name = "\x1b[31mweb", .forecast = {}, .original = {},
                           .highest_cpu_cores = 1.0, .highest_memory_bytes = 2e8}};
                    });
}

}  // namespace

TEST_CASE("fit prints a sentence, the sums and a row per container, and exits with 0 or 7") {
  CommandRun command;
  double cpus = 0;
  command.serve([&](const Request& request) {
    cpus = std::get<FitRequest>(request).cpus;
    return to_json(fit_reply(answer_of(cpus)));
  });
  const std::vector<std::string> words = {"fit", "--memory", "100M", "--for", "1h", "--cpus"};
  auto with = words;
  with.push_back("1.5");
  const Ran yes = command.run(with);
  CHECK(yes.exit == 0);
  CHECK(has(yes.out, "yes: 2.30 cores and "));
  CHECK(has(yes.out, "highest use seen"));
  CHECK(has(yes.out, "\\x1b[31mweb"));
  CHECK(arguments_of(command.requests()[0]) ==
        json{{"cpus", 1.5}, {"memory_mib", 100.0}, {"seconds", 3600}, {"risk", 0.01}});
  with.back() = "3";
  const Ran no = command.run(with);
  CHECK(no.exit == 7);
  CHECK(has(no.out, "no: 2.30 cores"));
  CHECK(no.err.empty());
  with.push_back("--json");
  CHECK(json::parse(command.run(with).out)["fits"] == false);
  with.back() = "-ocsv";
  CHECK(command.run(with).out.starts_with("name,cpu_cores_peak"));
}

TEST_CASE("fit on traces runs all executions at once") {
  CommandRun command;
  const auto fit = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"fit", "--memory", "10M", "--for", "10m"});
    return command.run(more);
  };
  const Ran yes = fit({"--cpus", "0.5", "--host-cpus", "8", "--host-memory", "8G", kJobs});
  CHECK_MESSAGE(yes.exit == 0, yes.err);
  CHECK(has(yes.out, "batch-15-heldout"));
  const Ran twice = fit({"--cpus", "0.5", kJobs, kJobs, "--json"});
  CHECK(json::parse(twice.out)["containers"].size() == 2);
  CHECK(fit({"--cpus", "9", "--host-cpus", "8", "--host-memory", "8G", kJobs}).exit == 7);
}

TEST_CASE("fit names the options that it needs if a trace lacks the host's size") {
  CommandRun command;
  const auto fit = [&](const std::string& columns, const std::string& values,
                       std::vector<std::string> more = {}) {
    std::string text = "timestamp,pod.id,cpu.usage.cores,mem.working.set" + columns + "\n";
    for (int i = 0; i < 40; ++i) text += std::to_string(i) + ",a,0.5,1000000" + values + "\n";
    const std::string path = command.directory() / "t.csv";
    REQUIRE(replace_file(path, text));
    more.insert(more.begin(), {"fit", "--cpus", "0.1", "--memory", "1M", "--for", "10m", path});
    return command.run(more);
  };
  const auto refused = [&](const Ran& ran, const std::string& what) {
    CHECK(ran.exit == 6);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(has(ran.err, what), ran.err);
  };
  refused(fit("", ""), "give --host-cpus and --host-memory");
  refused(fit(",cpu.num.cores", ",4"), "(column host.memory): give --host-memory");
  refused(fit(",host.memory", ",8000000000"), "(column cpu.num.cores): give --host-cpus");
  refused(fit("", "", {"--host-cpus", "4"}), "(column host.memory): give --host-memory");
  CHECK(fit(",cpu.num.cores,host.memory", ",4,8000000000").exit == 0);
  CHECK(fit("", "", {"--host-cpus", "4", "--host-memory", "8G"}).exit == 0);
}

TEST_CASE("fit has no column titles without a legend") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(fit_reply(answer_of(1))); });
  const auto fit = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"fit", "--cpus", "1", "--memory", "100M", "--for", "1h"});
    return command.run(more).out;
  };
  CHECK(has(fit({}), "MEMORY"));
  CHECK_FALSE(has(fit({"--no-legend"}), "MEMORY"));
  CHECK(has(fit({"--no-legend"}), "kept free"));
  CHECK(fit({"--no-legend", "-ocsv"}).starts_with("\\x1b[31mweb,"));
}

TEST_CASE("fit refuses impossible arguments") {
  CommandRun command;
  const std::vector<std::vector<std::string>> wrong = {
      {"fit"},
      {"fit", "--cpus", "1", "--memory", "1G"},
      {"fit", "--cpus", "0", "--memory", "1G", "--for", "1h"},
      {"fit", "--cpus", "-1", "--memory", "1G", "--for", "1h"},
      {"fit", "--cpus", "nan", "--memory", "1G", "--for", "1h"},
      {"fit", "--cpus", "1", "--memory", "much", "--for", "1h"},
      {"fit", "--cpus", "1", "--memory", "0", "--for", "1h"},
      {"fit", "--cpus", "1", "--memory", "1G", "--for", "5"},
      {"fit", "--cpus", "1", "--memory", "1G", "--for", "0s"},
      {"fit", "--cpus", "1", "--memory", "1G", "--for", "31d"},
      {"fit", "--cpus", "1", "--memory", "1G", "--for", "1h", "--risk", "0"}};
  for (const auto& words : wrong) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 2, ran.err);
    CHECK(ran.out.empty());
  }
  CHECK(command.run({"fit", "--cpus", "1", "--memory", "1G", "--for", "30d"}).exit == 4);
  CHECK(command.run({"fit", "--cpus", "1", "--memory", "1G", "--for", "1h", "none.csv"}).exit ==
        6);
}
