#include <doctest/doctest.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "cli/commands/verbs.h"
#include "cli/options.h"
#include "model/feature_schema.h"
#include "model/model.h"
#include "tests/model/synthetic_trace.h"
#include "tests/model/temporary_folder.h"
#include "tests/model/test_data.h"

using namespace cgphase;
using nlohmann::json;

namespace {

// Runs `cgphase WORDS...`; CLI11 takes words in reverse order.
int run(std::vector<std::string> words) {
  CLI::App app;
  int exit_code = -1;
  const CommonOptions common;
  for (AddVerbs* const add : cli_verbs()) add(app, common, exit_code);
  std::reverse(words.begin(), words.end());
  try {
    app.parse(words);
  } catch (const CLI::ParseError&) {
    return 2;
  }
  return exit_code;
}

std::string read_back(const std::string& path) {
  const Result<std::string> text = read_file(path, 1U << 24);
  REQUIRE(text);
  return *text;
}

// A trace file of the synthetic execution, as `record` writes it.
std::string trace_text(std::uint64_t seed) {
  const Trace trace = synthetic_trace(seed, 400);
  const Execution& execution = trace.executions[0];
  ContainerInfo info;
  info.name = "job";
  info.path = "/job";
  std::string text;
  write_trace_header(text);
  for (std::size_t i = 0; i < execution.rows.size(); ++i) {
    TraceRecord record;
    record.container = &info;
    record.time = WallTime(execution.rows[i].time.time_since_epoch() + std::chrono::hours(400'000));
    record.host = execution.host;
    record.original = execution.original;
    record.sample = &execution.rows[i].sample;
    record.previous = i > 0 ? &execution.rows[i - 1].sample : nullptr;
    record.interval_seconds = 1;
    record.label = execution.rows[i].label;
    write_trace_row(text, record);
  }
  return text;
}

struct Verbs {
  TemporaryFolder folder;
  std::string trace = folder.write("a.csv", trace_text(1));
  std::string model = folder.path("m.json"), output = folder.path("out");
  Verbs() {
    REQUIRE(run({"train", "-o", model, "--clusters", "3", "--epochs", "30", "--step", "1",
                 trace}) == 0);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Verbs,
                  "train writes a model that loads; compressed traces change only its provenance") {
  const Result<Model> loaded = load_model(model);
  REQUIRE(loaded);
  CHECK(loaded->centroids.count == 3);
  const std::string packed = folder.write_gzip("a.csv.gz", read_back(trace));
  REQUIRE(run({"train", "-o", output, "--clusters", "3", "--epochs", "30", "--step", "1",
               packed}) == 0);
  CHECK(load_model(output)->crbm.w == loaded->crbm.w);
}

TEST_CASE_FIXTURE(Verbs, "train uses the named features and the batch size") {
  const auto trained = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"train", "-o", output, "--clusters", "3", "--epochs", "3",
                                   "--step", "1", trace};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(run(words) == 0);
    return *load_model(output);
  };
  const Model both = trained({"--features", "memory_need_ratio,cpu_usage_log_ratio"});
  REQUIRE(both.schema.entries.size() == 2);
  CHECK(both.schema.entries[0].name == "memory_need_ratio");
  CHECK(both.schema.entries[1].name == "cpu_usage_log_ratio");
  const Model usual = trained({});
  CHECK(usual.schema == log_schema());
  CHECK(trained({"--batch", "16", "--momentum", "0.9"}).crbm.w == usual.crbm.w);
  CHECK(trained({"--batch", "1"}).crbm.w != usual.crbm.w);
  CHECK(trained({"--momentum", "0"}).crbm.w != usual.crbm.w);
}

TEST_CASE_FIXTURE(Verbs,
                  "train takes optional features by name, and a trace without them has no phases") {
  std::string text = "timestamp,pod.id,net.rx.bytes,gpu.utilisation\n";
  for (int i = 0, received = 0; i < 300; ++i) {
    const bool busy = i % 30 >= 20;
    received += busy ? 50'000 : 10;
    text += std::to_string(1'700'000'000 + i) + ",/job," + std::to_string(received) +
            (i == 150 ? "," : busy ? ",0.9" : ",0.05") + "\n";
  }
  const std::string counted = folder.write("counted.csv", text);
  const std::vector<std::string> words{"train", "-o", output, "--clusters", "2", "--epochs", "30",
                                       "--step", "1", "--features",
                                       "network_receive_log_rate,gpu_utilisation_ratio"};
  const auto train = [&](const std::string& from) {
    std::vector<std::string> all = words;
    all.push_back(from);
    return run(all);
  };
  CHECK(train(trace) == 6);  // has neither column
  REQUIRE(train(counted) == 0);
  CHECK(load_model(output)->schema.entries[1].feature == Feature::gpu_utilisation_ratio);
  const std::string phases = folder.path("phases");
  REQUIRE(run({"predict", "--model", output, "--json", "--output", phases, counted}) == 0);
  const json reported = json::parse(read_back(phases))["executions"][0]["phases"];
  REQUIRE(reported.size() == 300);
  CHECK(reported[10] == reported[100]);
  CHECK(reported[25] == reported[115]);
  CHECK(reported[10] != reported[25]);
  CHECK(reported[150].is_null());
  CHECK(run({"predict", "--model", output, "--json", "--output", phases, trace}) == 6);
}

TEST_CASE_FIXTURE(Verbs, "predict --json has one phase or null and one margin per row") {
  REQUIRE(run({"predict", "--model", model, "--json", "--output", output, trace}) == 0);
  const json result = json::parse(read_back(output));
  CHECK(result["schema"] == 1);
  REQUIRE(result["executions"].size() == 1);
  const json& execution = result["executions"][0];
  CHECK(execution["id"] == "/job");
  CHECK(execution["phases"].size() == 400);
  CHECK(execution["margins"].size() == 400);
  CHECK(execution["phases"][0].is_null());
  CHECK(execution["margins"][0].is_null());
  CHECK(execution["phases"][20] == 0);
  CHECK(execution["phases"][60] == 2);
  CHECK(execution["phases"][100] == 1);
  CHECK(execution["margins"][20].get<double>() > 0);
}

TEST_CASE_FIXTURE(Verbs, "predict prints CSV with a row per sample by default") {
  REQUIRE(run({"predict", "--model", model, "--output", output, trace}) == 0);
  const std::string csv = read_back(output);
  CHECK(csv.starts_with("timestamp,pod.id,phase,state,distance,margin\n"));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 401);
  CHECK(csv.find("1440000000.000,/job,,not enough history,,\n") != std::string::npos);
  CHECK(csv.find("1440000020.000,/job,0,known,") != std::string::npos);
}

TEST_CASE_FIXTURE(Verbs, "interleaved executions are predicted like separate ones") {
  const std::string text = read_back(trace);
  std::string both = text.substr(0, text.find('\n') + 1);
  std::size_t from = both.size();
  while (from < text.size()) {
    const std::size_t end = text.find('\n', from) + 1;
    std::string line = text.substr(from, end - from);
    both += line;
    both += line.replace(line.find("/job"), 4, "\"/b,\"\"x\"");
    from = end;
  }
  const std::string mixed = folder.write("both.csv", both);
  for (const char* form : {"csv", "json"}) {
    REQUIRE(run({"predict", "--model", model, "-o", form, "--output", output, trace}) == 0);
    const std::string alone = read_back(output);
    REQUIRE(run({"predict", "--model", model, "-o", form, "--output", output, mixed}) == 0);
    const std::string together = read_back(output);
    if (form == std::string("csv")) {
      CHECK(together.starts_with(alone));
      CHECK(std::count(together.begin(), together.end(), '\n') == 801);
      CHECK(together.find(",\"/b,\"\"x\",0,known,") != std::string::npos);
    } else {
      const json one = json::parse(alone), two = json::parse(together);
      REQUIRE(two["executions"].size() == 2);
      CHECK(two["executions"][0] == one["executions"][0]);
      CHECK(two["executions"][1]["id"] == "/b,\"x");
      CHECK(two["executions"][1]["phases"] == one["executions"][0]["phases"]);
      CHECK(together == two.dump() + "\n");
    }
  }
}

TEST_CASE_FIXTURE(Verbs,
                  "a trace with only a header exits 6 and leaves the output file unchanged") {
  const std::string text = read_back(trace);
  const std::string none = folder.write("none.csv", text.substr(0, text.find('\n') + 1));
  folder.write("out", "old");
  CHECK(run({"predict", "--model", model, "--output", output, none}) == 6);
  CHECK(run({"predict", "--model", model, "--json", "--output", output, none}) == 6);
  CHECK(read_back(output) == "old");
}

TEST_CASE_FIXTURE(Verbs, "a bad row exits 6 and leaves the output file unchanged") {
  const std::string bad = folder.write("bad.csv", read_back(trace) + "oops\n");
  folder.write("out", "old");
  CHECK(run({"predict", "--model", model, "--output", output, bad}) == 6);
  CHECK(read_back(output) == "old");
  CHECK(run({"train", "-o", output, bad}) == 6);
  CHECK(read_back(output) == "old");
}

TEST_CASE_FIXTURE(Verbs, "a damaged or missing model, a missing trace and bad options exit 6") {
  const std::string damaged = folder.write("d.json", read_back(model).substr(100));
  CHECK(run({"predict", "--model", damaged, trace}) == 6);
  CHECK(run({"predict", "--model", folder.path("none"), trace}) == 6);
  CHECK(run({"predict", "--model", model, folder.path("none")}) == 6);
  CHECK(run({"model", "check", damaged}) == 6);
  CHECK(run({"train", "-o", output, "--clusters", "many", trace}) == 6);
  CHECK(run({"train", "-o", output, "--clusters", "33", trace}) == 6);
  CHECK(run({"train", "-o", output, "--hidden", "0", trace}) == 6);
  CHECK(run({"train", "-o", output, "--batch", "0", trace}) == 6);
  CHECK(run({"train", "-o", output, "--momentum", "1", trace}) == 6);
  CHECK(run({"train", "-o", output, "--features", "cpu_usage", trace}) == 6);
  CHECK(run({"predict", "--model", model, "--compat", trace}) == 6);
}

TEST_CASE_FIXTURE(Verbs, "wrong usage is a parse error of the command line") {
  CHECK(run({"train", trace}) == 2);
  CHECK(run({"train", "--compat", "--batch", "2", "-o", output, trace}) == 2);
  CHECK(run({"predict"}) == 2);
  CHECK(run({"model"}) == 2);
}

TEST_CASE_FIXTURE(Verbs, "model show and check accept what train wrote") {
  CHECK(run({"model", "show", model}) == 0);
  CHECK(run({"model", "check", model}) == 0);
}

TEST_CASE("predict --compat prints AI4DL's phases from an imported model") {
  const std::string parameters = test_data("ai4dl/model.json");
  if (parameters.empty()) return;
  const TemporaryFolder folder;
  const std::string model = folder.path("m.json"), output = folder.path("out");
  REQUIRE(run({"model", "import", parameters, "-o", model}) == 0);
  REQUIRE(run({"predict", "--model", model, "--compat", "--json", "--output", output,
               test_data("ai4dl/sample.csv")}) == 0);
  const json result = json::parse(read_back(output));
  const json expected = json::parse(read_back(test_data("ai4dl/expected_sample.json")));
  for (std::size_t e = 0; e < 4; ++e)
    CHECK(result["executions"][e]["phases"] == expected["executions"][e]["phases"]);
}

TEST_CASE_FIXTURE(Verbs,
                  "model merge adds up statistics of hosts, and their traces give the same sums") {
  const std::string other = folder.write("b.csv", trace_text(2));
  const auto merged = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"model", "merge", "-o", output});
    REQUIRE(run(words) == 0);
    return *load_model(output);
  };
  const std::string one = folder.path("one.json"), two = folder.path("two.json");
  REQUIRE(run({"model", "merge", model, "-o", one, "--only-traces", "--traces", trace}) == 0);
  REQUIRE(run({"model", "merge", model, "-o", two, "--only-traces", "--traces", other}) == 0);
  const Model base = *load_model(model), first = *load_model(one), second = *load_model(two);
  const Model both = merged({one, two});
  const Model traces = merged({model, "--only-traces", "--traces", trace, other});
  const Model all = merged({model, two});
  const Model more = merged({model, "--traces", other});
  CHECK(both.provenance.at("statistics").starts_with("cgphase model merge: one.json crc32c "));
  CHECK(more.provenance.at("statistics").find(", b.csv crc32c ") != std::string::npos);
  CHECK(both.centroids == base.centroids);
  double counted = 0;
  for (std::size_t k = 0; k < base.phases.size(); ++k) {
    // Counting the training trace again gives the trainer's counts.
    CHECK(first.phases[k].count == base.phases[k].count);
    CHECK(first.phases[k].cpu_m2 == doctest::Approx(base.phases[k].cpu_m2));
    CHECK(both.phases[k].count == first.phases[k].count + second.phases[k].count);
    CHECK(both.phases[k].count == traces.phases[k].count);
    CHECK(both.phases[k].cpu_mean_ratio == doctest::Approx(traces.phases[k].cpu_mean_ratio));
    CHECK(both.phases[k].memory_m2 == doctest::Approx(traces.phases[k].memory_m2));
    CHECK(all.phases[k].count == base.phases[k].count + second.phases[k].count);
    CHECK(all.phases[k].memory_mean_ratio == doctest::Approx(more.phases[k].memory_mean_ratio));
    counted += second.phases[k].count;
  }
  CHECK(counted > 300);
}

TEST_CASE_FIXTURE(Verbs, "model merge refuses models that do not match, and writes nothing") {
  const std::string stranger = folder.path("stranger.json");
  REQUIRE(run({"train", "-o", stranger, "--clusters", "3", "--epochs", "30", "--step", "1",
               "--seed", "7", trace}) == 0);
  CHECK(run({"model", "merge", model, stranger, "-o", output}) == 6);
  CHECK(run({"model", "merge", model, "-o", output}) == 6);
  CHECK(run({"model", "merge", model, folder.path("absent"), "-o", output}) == 6);
  CHECK(run({"model", "merge", model, "-o", output, "--traces", folder.path("absent")}) == 6);
  CHECK(run({"model", "merge", model, model, "-o", output, "--only-traces"}) == 2);
  CHECK(run({"model", "merge", "-o", output}) == 2);
  CHECK(!read_file(output, 1));
}

TEST_CASE_FIXTURE(Verbs, "model check validates the fixed-point arithmetic on traces") {
  CHECK(run({"model", "check", model, trace}) == 0);
  CHECK(run({"model", "check", "--json", model, trace}) == 0);
  CHECK(run({"model", "check", model, folder.path("none.csv")}) == 6);
}

TEST_CASE_FIXTURE(Verbs, "expand prints a report, and with --phase writes the split model") {
  CHECK(run({"expand", "--model", model, trace}) == 0);
  CHECK(run({"expand", "--model", model, "--phase", "1", "--clusters", "2", "-o", output, trace}) ==
        0);
  const Result<Model> split = load_model(output);
  REQUIRE(split);
  CHECK(split->centroids.count == 5);
  CHECK(split->centroids.parents == std::vector<int>{-1, -1, -1, 1, 1});
  CHECK(run({"predict", "--model", output, trace}) == 0);
  const std::string by_index = read_back(output);
  CHECK(run({"expand", "--model", model, "--phase", "B", "--clusters", "2", "-o", output, trace}) ==
        0);
  CHECK(read_back(output) == by_index);
}

TEST_CASE_FIXTURE(Verbs, "an impossible split exits 6 and leaves the output unchanged") {
  folder.write("out", "before");
  for (const char* none : {"9", "-1", "D", "b", "1x", ""})
    CHECK(run({"expand", "--model", model, "--phase", none, "-o", output, trace}) == 6);
  CHECK(read_back(output) == "before");
  CHECK(run({"expand", "--model", model, "--phase", "1", trace}) == 2);
  CHECK(run({"expand", "--model", model, "-o", output, trace}) == 2);
}

TEST_CASE("train --compat and predict --compat reproduce the release on its own trace") {
  const std::string sample = test_data("ai4dl/sample.csv");
  if (sample.empty()) return;
  const TemporaryFolder folder;
  const std::string model = folder.path("m.json"), same = folder.path("s.json");
  CHECK(run({"train", "--compat", "--epochs", "2", "-o", model, sample}) == 0);
  CHECK(run({"train", "--compat", "--epochs", "2", "-o", same, sample}) == 0);
  CHECK(read_back(model) == read_back(same));
  CHECK(run({"predict", "--compat", "--model", model, "--output", folder.path("p"), sample}) == 0);
  CHECK(run({"train", "--compat", "--initial", folder.write("w", "{}"), "-o", model, sample}) == 6);
  CHECK(run({"train", "--compat", "--clusters", "auto", "-o", model, sample}) == 6);
  CHECK(run({"train", "--in-order", "-o", model, sample}) == 2);
}
