// Bad models and traces on the built command: exit code 6, one line that names file, place and
// reason, nothing on standard output, and an unchanged output file.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/file.h"
#include "model/model.h"
#include "tests/cli/command_run.h"
#include "tests/cli/small_model.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

const std::string kTraceHeader = "timestamp,pod.id,cpu.usage.cores,mem.working.set\n";

// One row per second; two phases alternate every ten rows.
std::string busy_rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += std::to_string(100 + i) + ",a," + (i / 10 % 2 == 0 ? "0.1" : "0.9") + "," +
            std::to_string(1'000'000 + i % 7 * 1000) + "\n";
  return text;
}

using Words = std::vector<std::string>;

struct Inputs {
  CommandRun command;
  std::string model = command.directory() / "m.json", output = command.directory() / "out";
  std::string good = write("good.csv", kTraceHeader + busy_rows(100));
  Inputs() { REQUIRE(save_model(small_model(), model)); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = command.directory() / name;
    REQUIRE(replace_file(path, text));
    return path;
  }

  // Every verb that reads a trace, with this trace and model.
  std::vector<Words> readers(const std::string& trace, const std::string& with) const {
    return {{"predict", "--model", with, "--output", output, trace},
            {"model", "check", with, trace},
            {"expand", "--model", with, "--phase", "2", "-o", output, trace},
            {"prototypes", "--model", with, "--output", output, trace},
            {"plot", "--model", with, "-o", output, trace},
            {"plot", "--kind", "variance", "--model", with, "-o", output, trace},
            {"plot", "--kind", "replay", "--model", with, "-o", output, trace},
            {"replay", "--model", with, trace}};
  }

  // Verbs that report a trace without history and write no file.
  static std::vector<Words> watchers(const std::string& trace, const std::string& with) {
    return {{"size", trace, "--model", with},
            {"fit", "--cpus", "0.01", "--memory", "1M", "--for", "1m", "--host-cpus", "8",
             "--host-memory", "8G", trace, "--model", with}};
  }

  // Runs a command that must be refused. Its message starts with `start` after the verb.
  void refused(const Words& words, const std::string& start) {
    REQUIRE(replace_file(output, "old"));
    const Ran ran = command.run(words);
    CAPTURE(words[0]);
    CAPTURE(ran.err);
    CHECK(ran.exit == 6);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
    CHECK(ran.err.find(": " + start) != std::string::npos);
    const Result<std::string> left = read_file(output, 1 << 20);
    REQUIRE(left);
    CHECK(*left == "old");
  }

  void all_refuse_trace(const std::string& text, const std::string& why) {
    const std::string bad = write("bad.csv", text);
    for (const Words& words : readers(bad, model)) refused(words, bad + ": " + why);
    for (const Words& words : watchers(bad, model)) refused(words, bad + ": " + why);
    refused({"train", "-o", output, good, bad}, bad + ": " + why);
  }

  void all_refuse_model(const std::string& text, const std::string& why) {
    const std::string bad = write("bad.json", text);
    for (const Words& words : readers(good, bad)) refused(words, bad + ": " + why);
    for (const Words& words : watchers(good, bad)) refused(words, bad + ": " + why);
    refused({"model", "show", bad}, bad + ": " + why);
    refused({"model", "check", bad}, bad + ": " + why);
  }
};

std::string with(std::string text, const std::string& part, const std::string& in_its_place) {
  const std::size_t at = text.find(part);
  REQUIRE(at != std::string::npos);
  return text.replace(at, part.size(), in_its_place);
}

}  // namespace

TEST_CASE_FIXTURE(Inputs, "every verb that refuses bad models and traces accepts good ones") {
  for (const Words& words : readers(good, model)) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 0, words[0], ": ", ran.err);
  }
  for (const Words& words : watchers(good, model)) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 0, words[0], ": ", ran.out, ran.err);
  }
  const Ran ran = command.run({"train", "--step", "1", "-o", output, good});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
}

TEST_CASE_FIXTURE(Inputs, "a damaged, foreign, oversized or non-finite model is refused") {
  const std::string text = serialize_model(small_model());
  all_refuse_model(text.substr(0, text.size() / 2), "not well-formed JSON: parse error at line ");
  all_refuse_model("", "not well-formed JSON: parse error at line 1, column 1");
  all_refuse_model(with(text, "\"version\": 1", "\"version\": 2"),
                   "version: only version 1 can be read");
  all_refuse_model(with(text, "\"step_seconds\": 1.0", "\"step_seconds\": 2.0"),
                   "checksum: does not match: the file was damaged or edited");
  all_refuse_model(with(text, "\"step_seconds\": 1.0", "\"step_seconds\": NaN"),
                   "not well-formed JSON: parse error at line ");
  all_refuse_model(with(text, "\"step_seconds\": 1.0", "\"step_seconds\": 1e999"),
                   "not well-formed JSON: number overflow parsing '1e999'");
  all_refuse_model("{\"format\": \"other\"}", "format: this is not a model file of cgphase");
}

TEST_CASE_FIXTURE(Inputs, "a model larger than the bound is refused without reading the rest") {
  const std::string bad = write("bad.json", std::string(kMaxModelFileBytes + 1, ' '));
  refused({"model", "check", bad}, bad + ": larger than the limit of 16777216 bytes");
  refused({"model", "import", bad, "-o", output}, bad + ": larger than the limit of");
}

TEST_CASE_FIXTURE(Inputs, "parameters that are not AI4DL's are refused by key or place") {
  const auto import = [&](const std::string& text, const std::string& why) {
    const std::string bad = write("parameters.json", text);
    refused({"model", "import", bad, "-o", output}, bad + ": " + why);
  };
  import("{\"features\": [\"cpu.usage\"],", "not well-formed JSON: parse error at line 1, column ");
  import("{}", "these are not AI4DL's parameters: key 'features' not found");
  import("{\"features\": [1e999]}", "not well-formed JSON: number overflow");
  const std::string good_one =
      R"({"features": ["a"], "scaler": {"mean": [0], "scale": [1]}, "crbm": {"n_vis": 1, "n_hid": 1,
          "n_his": 0, "W": [[1]], "A": [[]], "B": [[]], "v_bias": [0], "h_bias": [0]},
          "kmeans": {"centroids": [[0], [1]]}})";
  const std::string path = write("parameters.json", good_one);
  CHECK(command.run({"model", "import", path, "-o", output}).exit == 0);
  import(with(good_one, "\"scale\": [1]", "\"scale\": [0]"),
         "scaler.scale: contains a number that is not finite or out of bounds");
  import(with(good_one, "[[1]]", "[[\"1\"]]"), "these are not AI4DL's parameters: type must be");
  import(with(good_one, "\"n_hid\": 1", "\"n_hid\": 1e300"), "n_hid: must be a whole number");
}

TEST_CASE_FIXTURE(Inputs,
                  "a trace without time, with text in a number or with a cut row is refused") {
  all_refuse_trace("pod.id,cpu.usage.cores\na,1\n",
                   "line 1: column timestamp: is missing: this is not a trace");
  all_refuse_trace(kTraceHeader + busy_rows(50) + "200,a,many,1\n",
                   "line 52: column cpu.usage.cores: \"many\" is not a number");
  all_refuse_trace(kTraceHeader + busy_rows(50) + "200,a,0.\n", "line 52: has 3 fields, not 4");
  all_refuse_trace(kTraceHeader + busy_rows(50) + "NaN,a,1,1\n",
                   "line 52: column timestamp: is missing");
  all_refuse_trace("", "line 1: the file is empty");
}

TEST_CASE_FIXTURE(Inputs, "a trace in which time runs backwards is refused") {
  all_refuse_trace(kTraceHeader + busy_rows(50) + "101,a,1,1\n",
                   "line 52: column timestamp: runs backwards");
}

TEST_CASE_FIXTURE(Inputs, "an escape sequence in a bad cell is printed escaped") {
  all_refuse_trace(kTraceHeader + "1,a,\x1b[2J,1\n",
                   "line 2: column cpu.usage.cores: \"\\x1b[2J\" is not a number");
}

TEST_CASE_FIXTURE(Inputs, "a trace of one row trains nothing, validates nothing and has no phase") {
  const std::string one = write("one.csv", kTraceHeader + "1,a,0.5,1000\n");
  refused({"train", "-o", output, one},
          one + ": gives 0 windows of 1 step of 1 s without a gap, at least 20 are needed: ");
  refused({"train", "-o", output, one, one}, one + " and 1 more: gives 0 windows");
  refused({"train", "--compat", "-o", output, one}, one + ": no execution has the 4 rows");
  refused({"model", "check", model, one}, one + ": has no window of 2 steps of 1 s");
  refused({"expand", "--model", model, one}, one + ": has no window of 2 steps of 1 s");
  refused({"prototypes", "--model", model, "--output", output, one},
          one + ": no execution has a phase");
  const Ran ran = command.run({"predict", "--model", model, one});
  CHECK(ran.exit == 0);
  CHECK(ran.err.empty());
  CHECK(ran.out == "timestamp,pod.id,phase,state,distance,margin\n"
                   "1.000,a,,not enough history,,\n");
}

TEST_CASE_FIXTURE(Inputs, "a trace with only NaN readings is refused with the missing columns") {
  std::string text = kTraceHeader;
  for (int i = 0; i < 60; ++i) text += std::to_string(i) + ",a,NaN,nan\n";
  all_refuse_trace(text, "no row has CPU use (column cpu.usage.usec, cpu.usage or "
                         "cpu.usage.cores) or memory use (memory.anon, mem.working.set or "
                         "mem.current); found timestamp, pod.id, ");
}

TEST_CASE_FIXTURE(Inputs, "a constant feature is trained but has no effect") {
  std::string text = kTraceHeader;
  for (int i = 0; i < 100; ++i)
    text += std::to_string(i) + ",a," + (i / 10 % 2 == 0 ? "0.1" : "0.9") + ",1000000\n";
  const std::string constant = write("constant.csv", text);
  const Ran ran = command.run({"train", "--clusters", "2", "--features",
                               "cpu_usage_ratio,memory_need_ratio", "-o", output, constant});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  const Result<Model> trained = load_model(output);
  REQUIRE(trained);
  CHECK(trained->scaler.scale[0] < 0.5);
  CHECK(trained->scaler.scale[1] == 1);
  CHECK(trained->centroids.count == 2);
}

TEST_CASE_FIXTURE(Inputs, "a constant trace has no phases to learn") {
  std::string text = kTraceHeader;
  for (int i = 0; i < 100; ++i) text += std::to_string(i) + ",a,0.5,1000000\n";
  const std::string still = write("still.csv", text);
  refused({"train", "-o", output, still}, still + ": every feature is the same in all rows");
}

TEST_CASE_FIXTURE(Inputs, "a truncated compressed trace is refused at its last line") {
  // Only the first bytes of a gzip file.
  const std::string header("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
  const std::string bad = write("cut.csv.gz", header);
  for (const Words& words : readers(bad, model))
    refused(words, bad + ": line 1: cannot be read further: ");
}
