#include <doctest/doctest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/cli/command_run.h"
#include "tests/model/test_data.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

const std::string kSequences =
    "exec,n_samples,phase_runs(phase:length)\n"
    "a,7,0:2 1:5\nb,13,0:4 1:9\nc,10,0:3 1:6 0:1\nd,1,1:1\ne,1,0:1\nf,0,\n";

struct Fixture {
  CommandRun command;
  std::string file = write("s.csv", kSequences), output = path("out");

  std::string path(const std::string& name) const { return command.directory() / name; }
  std::string write(const std::string& name, const std::string& text) const {
    REQUIRE(replace_file(path(name), text));
    return path(name);
  }

  Ran run(std::vector<std::string> words) {
    words.insert(words.begin(), "prototypes");
    return command.run(std::move(words));
  }
  std::string content(const std::string& name) {
    const Result<std::string> text = read_file(name, 1U << 20);
    REQUIRE(text);
    return *text;
  }
  // The error of labelled sequences, without the common prefix.
  std::string error_of(const std::string& text) {
    const std::string bad = write("bad.csv", text);
    write("out", "old");
    const Ran ran = run({"--sequences", bad, "--output", output});
    CHECK(ran.exit == 6);
    CHECK(ran.out.empty());
    CHECK(content(output) == "old");
    const std::string begin = "cgphase: " + bad + ": ";
    REQUIRE(ran.err.starts_with(begin));
    CHECK(ran.err.find('\n') == ran.err.size() - 1);
    return ran.err.substr(begin.size());
  }
};

// A job that alternates between two phases, as telemetry: 60 s idle, 60 s busy, and so on.
std::string telemetry(int jobs) {
  std::string text = "timestamp,pod.id,cpu.usage.cores,cpu.limit.cores,mem.limit,mem.working.set\n";
  for (int job = 0; job < jobs; ++job)
    for (int t = 0; t < 360; ++t) {
      const bool busy = (t / 60) % 2 == 1;
      const int wobble = (t * 7 + job * 3) % 5;
      text += std::to_string(1'700'000'000 + t) + ",job" + std::to_string(job) + "," +
              (busy ? "1.8" : "0.1") + std::to_string(wobble) + ",2,1073741824," +
              std::to_string((busy ? 700 : 100) * 1'000'000 + wobble * 10'000) + "\n";
    }
  return text;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "labelled sequences give text, and the same text again") {
  const Ran first = run({"--sequences", file}), second = run({"--sequences", file});
  CHECK(first.exit == 0);
  CHECK(first.err.empty());
  CHECK(first.out.starts_with("5 executions, lengths in samples; 1 without any phase\n"));
  CHECK(first.out == second.out);
}

TEST_CASE_FIXTURE(Fixture, "every format can be written to standard output or to a file") {
  const std::map<std::string, std::string> begins = {{"text", "5 executions"},
                                                     {"json", "{\"bins\":"},
                                                     {"dot", "digraph tree {"},
                                                     {"svg", "<svg xmlns="}};
  for (const auto& [form, begin] : begins) {
    CAPTURE(form);
    const Ran shown = run({"--sequences", file, "-o", form});
    CHECK(shown.exit == 0);
    CHECK(shown.out.starts_with(begin));
    const Ran written = run({"--sequences", file, "-o", form, "--output", output});
    CHECK(written.exit == 0);
    CHECK(written.out.empty());
    CHECK(content(output) == shown.out);
  }
  CHECK(run({"--sequences", file, "--json"}).out == run({"--sequences", file, "-o", "json"}).out);
  CHECK(run({"--sequences", file, "-o", "dot", "--draw", "chain"}).out.starts_with(
      "digraph chain {"));
}

TEST_CASE_FIXTURE(Fixture, "cover, bins and smallest share take effect") {
  const json all = json::parse(
      run({"--sequences", file, "--json", "--cover", "1", "--bins", "1,5"}).out);
  CHECK(all["schema"] == 1);
  CHECK(all["executions"] == 5);
  CHECK(all["executions_without_phase"] == 1);
  CHECK(all["bins"] == json({1, 5}));
  CHECK(all["prototypes"].size() == 4);
  const json some = json::parse(run({"--sequences", file, "--json", "--cover", "0.4", "--bins",
                                     "1,5", "--min-share", "0.4"}).out);
  CHECK(some["prototypes"].size() == 1);
  CHECK(some["tree"]["rest"] == 1);
}

TEST_CASE_FIXTURE(Fixture, "several files are evaluated together") {
  const json both = json::parse(run({"--sequences", "--json", file, file}).out);
  CHECK(both["executions"] == 10);
  CHECK(both["executions_without_phase"] == 2);
}

TEST_CASE_FIXTURE(Fixture,
                  "bad labelled sequences exit with 6 and one line, and nothing is written") {
  CHECK(error_of("") == "line 1: the file is empty\n");
  CHECK(error_of("exec,phase_runs\na,1;4\n") ==
        "line 2: column phase_runs: \"1;4\" is not PHASE:LENGTH\n");
  CHECK(error_of("exec,n_samples,phase_runs\na,5,1:4\n") ==
        "line 2: column n_samples: is 5, but the runs add up to 4\n");
  CHECK(error_of("exec,phase_runs\na,\n") ==
        "no execution has a phase\n");
  const Ran missing = run({"--sequences", path("none")});
  CHECK(missing.exit == 6);
  CHECK(one_line(missing.err));
}

TEST_CASE_FIXTURE(Fixture, "bad options exit with 2 and one line with the allowed values") {
  const std::map<std::vector<std::string>, std::string> cases = {
      {{"--cover", "0"}, "--cover 0: must be a share from 0.001 to 1"},
      {{"--cover", "1.1"}, "--cover 1.1: must be a share from 0.001 to 1"},
      {{"--cover", "nan"}, "--cover nan: must be a share from 0.001 to 1"},
      {{"--min-share", "0.0001"}, "--min-share 0.0001: must be a share from 0.001 to 1"},
      {{"--bins", "1,x"}, "--bins 1,x: must be rising lengths, such as 1,10,100"},
      {{"--bins", "2,3"}, "--bins 2,3: length bins: the first one must begin at 1"},
      {{"-o", "png"}, "png"},
      {{"--draw", "cake"}, "cake"},
      {{"--model", "m.json"}, "--model excludes --sequences"}};
  for (const auto& [words, expected] : cases) {
    CAPTURE(words.back());
    std::vector<std::string> all = {"--sequences", file};
    all.insert(all.end(), words.begin(), words.end());
    const Ran ran = run(all);
    CHECK(ran.exit == 2);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
    CHECK_MESSAGE(ran.err.find(expected) != std::string::npos, ran.err);
  }
  CHECK(run({"--sequences"}).exit == 2);
}

TEST_CASE_FIXTURE(Fixture, "the model turns telemetry into sequences of phases") {
  const std::string trace = write("t.csv", telemetry(4)), model = path("m.json");
  REQUIRE(command.run({"train", "-o", model, "--clusters", "2", "--epochs", "20", "--step", "1",
                       "--history", "3", trace}).exit == 0);
  const Ran ran = run({"--model", model, "--bins", "1", "--json", trace});
  CHECK(ran.err.empty());
  REQUIRE(ran.exit == 0);
  const json found = json::parse(ran.out);
  CHECK(found["executions"] == 4);
  CHECK(found["step_seconds"] == 1);
  CHECK(found["tree"]["count"] == 4);
  std::size_t steps = 0;
  for (const json& state : found["chain"]) steps += state["steps"].get<std::size_t>();
  // 360 rows make 359 steps. The first three have not enough history.
  CHECK(steps == 4 * 356);
  const Ran text = run({"--model", model, trace});
  CHECK(text.out.starts_with("4 executions, lengths in steps of 1 s\n"));
}

TEST_CASE_FIXTURE(Fixture, "a model or a trace that cannot be read exits with 6 and one line") {
  const std::string trace = write("t.csv", telemetry(1));
  const Ran model = run({"--model", path("none"), trace});
  CHECK(model.exit == 6);
  CHECK(one_line(model.err));
  const std::string good = path("m.json");
  REQUIRE(command.run({"train", "-o", good, "--clusters", "2", "--epochs", "5", "--step", "1",
                       trace}).exit == 0);
  const Ran labelled = run({"--model", good, file});
  CHECK(labelled.exit == 6);
  CHECK(labelled.err.starts_with("cgphase: " + file +
                                 ": line 1: column timestamp: is missing: this is not a trace ("));
}

TEST_CASE_FIXTURE(Fixture, "the fleet's sequences are read from the file as it is") {
  const std::string fleet = test_data("ai4dl/fleet_phase_sequences.csv");
  if (fleet.empty()) return;
  const Ran ran = run({"--sequences", fleet, "--json"});
  REQUIRE(ran.exit == 0);
  const json found = json::parse(ran.out);
  CHECK(found["executions"] == 561);
  CHECK(found["executions_without_phase"] == 0);
  CHECK(found["covered"] == 505);
  CHECK(found["prototypes"].size() == 32);
  CHECK(found["prototypes"].back()["cumulative_share"] == 505.0 / 561);
}
