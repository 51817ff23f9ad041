#include "lab/challenge.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/installed_models.h"
#include "model/train/random.h"
#include "protocol/report.h"
#include "tests/cli/command_run.h"
#include "tests/cli/small_model.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

constexpr std::chrono::hours kOrigin{400'000};

// A job that alternates between idle and busy, 2 min each, one row per second.
std::string history(int seconds, int first = 0) {
  ContainerInfo info;
  info.name = "job";
  info.path = "/job";
  Random random(7);
  std::string text;
  write_trace_header(text);
  Sample sample, previous;
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{400'000}};
  limits.memory_max = MemoryLimit{Bytes{kGiB}};
  double cpu = 0;
  for (int t = first; t < first + seconds; ++t) {
    const bool busy = (t / 120) % 2 == 1;
    cpu += (busy ? 1.6 : 0.1) * (1 + 0.05 * random.normal()) * 1e6;
    previous = sample;
    sample.cpu.usage_usec = static_cast<std::uint64_t>(cpu);
    sample.memory.anon_bytes = static_cast<std::uint64_t>((busy ? 500 : 100) * 1e6);
    sample.limits = limits;
    write_trace_row(text, {.container = &info, .time = WallTime(kOrigin + std::chrono::seconds(t)),
                           .host = {8, Bytes{16 * kGiB}}, .original = limits, .sample = &sample,
                           .previous = t > first ? &previous : nullptr, .interval_seconds = 1,
                           .phase = std::nullopt, .label = {}, .label_detail = {}});
  }
  return text;
}

struct Contest {
  TemporaryDirectory directory;
  std::vector<std::string> traces;
  std::string why;
  void record(const std::string& name, const std::string& text) {
    REQUIRE(replace_file(directory / name, text));
    traces.push_back(directory / name);
  }
  std::optional<HistorySplit> split(HistoryBounds bounds) {
    const auto found = split_history(traces, bounds, why);
    REQUIRE(found);
    return *found;
  }
};

ReplaySums sums(double allocated, std::int64_t over = 0, std::int64_t oom = 0) {
  ReplaySums one;
  one.seconds = 100;
  one.original = 100;
  one.allocated = allocated;
  one.samples = 100;
  one.samples_over = over;
  one.would_oom = oom;
  return one;
}

double seconds_after(WallTime time) {
  return std::chrono::duration<double>(time.time_since_epoch() - kOrigin).count();
}

}  // namespace

TEST_CASE_FIXTURE(Contest, "the newest rows are held out, and all training rows are older") {
  record("a.csv", history(1000));
  const auto found = split({.held_out_ratio = 0.3, .least_seconds = 900});
  REQUIRE(found);
  CHECK(found->training_rows + found->held_out_rows == 1000);
  CHECK(found->held_out_rows <= 300);
  CHECK(found->held_out_rows >= 298);
  CHECK(seconds_after(found->cut) == doctest::Approx(700).epsilon(0.01));
  CHECK(seconds_after(found->begin) <= 0);
  CHECK(seconds_after(found->end) == 999);
}

TEST_CASE_FIXTURE(Contest, "the split is by time over all traces, in any order of the files") {
  record("new.csv", history(500, 500));
  record("old.csv", history(500));
  const auto found = split({.held_out_ratio = 0.3, .least_seconds = 0});
  REQUIRE(found);
  CHECK(seconds_after(found->cut) == doctest::Approx(700).epsilon(0.01));
}

TEST_CASE_FIXTURE(Contest, "only the newest rows of a long history are used") {
  record("a.csv", history(1000));
  const auto found = split({.held_out_ratio = 0.9, .least_seconds = 0,
                            .most_training_rows = 200, .most_held_out_rows = 100,
                            .most_teaching_rows = 50});
  REQUIRE(found);
  CHECK(seconds_after(found->teaching) == doctest::Approx(850).epsilon(0.01));
  CHECK(found->held_out_rows == 100);
  CHECK(found->training_rows == 200);
  CHECK(seconds_after(found->begin) == doctest::Approx(700).epsilon(0.01));
}

TEST_CASE_FIXTURE(Contest,
                  "a history one second too short is reported, one that is long enough is not") {
  record("a.csv", history(1000));
  CHECK_FALSE(split({.least_seconds = 1000}));
  CHECK(has(why, "too little history"));
  CHECK(split({.least_seconds = 999}));
}

TEST_CASE("a challenger wins if it allocates 1 % less and nothing is worse") {
  const ChallengeSide old{sums(50, 3, 1), sums(50, 3, 1)};
  CHECK(why_not_better(old, {sums(49, 3, 1), sums(50, 3, 1)}).empty());
  CHECK(has(why_not_better(old, {sums(49.1, 3, 1), sums(50, 3, 1)}), "it allocates"));
  CHECK(has(why_not_better(old, old), "it allocates"));
}

TEST_CASE("a challenger loses with one more sample over or one more OOM, whatever it saves") {
  const ChallengeSide old{sums(50, 3, 1), sums(50, 3, 1)};
  CHECK(has(why_not_better(old, {sums(5, 4, 1), sums(5)}), "cpu: 4 samples over"));
  CHECK(has(why_not_better(old, {sums(5), sums(5, 4, 0)}), "memory: 4 samples over"));
  CHECK(has(why_not_better(old, {sums(5), sums(5, 0, 2)}), "memory: 2 windows"));
  CHECK(why_not_better({sums(50), std::nullopt}, {sums(40), std::nullopt}).empty());
}

TEST_CASE_FIXTURE(Contest, "the same history and champion give the same challenger") {
  record("a.csv", history(600));
  ChallengeOptions options{.traces = traces, .bounds = {.least_seconds = 60},
                           .policy = parse_policy_spec("phase").value(), .clusters = 2};
  const Result<ChallengeReport> once = challenge(small_model(), options);
  const Result<ChallengeReport> twice = challenge(small_model(), options);
  REQUIRE_MESSAGE(once, once.error().text);
  REQUIRE(twice);
  REQUIRE(once->model);
  CHECK(serialize_model(*once->model) == serialize_model(*twice->model));
  CHECK(once->lost == twice->lost);
  CHECK(once->champion.cpu->allocated == twice->champion.cpu->allocated);
  CHECK(once->windows > 300);
  CHECK(once->windows < 430);  // no held-out window
}

namespace {

// Runs the command on traces, without a daemon.
struct Challenged : Contest {
  CommandRun command;
  std::string state = command.directory() / "state", champion = command.directory() / "old.json";
  Challenged() {
    std::filesystem::create_directory(state);
    record("a.csv", history(6000));
  }
  Ran run(std::vector<std::string> more) {
    std::vector<std::string> words = {"model", "challenge", traces[0], "--state-dir", state,
                                      "--clusters", "2", "--model", champion};
    words.insert(words.end(), more.begin(), more.end());
    return command.run(words);
  }
  // One phase for all samples.
  void write_blind_champion() const {
    Model model = small_model();
    model.centroids = {1, 2, {0, 0}};
    model.phases.resize(1);
    model.phases[0].novelty_distance = 1e9;
    REQUIRE(save_model(model, champion));
  }
  bool nothing_changed() const { return installed_models(state)->models.empty(); }
};

}  // namespace

TEST_CASE_FIXTURE(Challenged, "too little history changes nothing: exit 0, or 7 with --exit-code") {
  write_blind_champion();
  const Ran ran = run({});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.out, "nothing is changed: too little history"));
  CHECK(run({"--exit-code"}).exit == 7);
  CHECK(nothing_changed());
}

TEST_CASE_FIXTURE(Challenged, "a better model is installed, and does not beat itself next") {
  write_blind_champion();
  const Ran won = run({"--least", "5m", "--json"});
  REQUIRE_MESSAGE(won.exit == 0, won.err);
  const json body = json::parse(won.out);
  CHECK_MESSAGE(body["installed"] == true, won.out);
  CHECK(body["challenger"]["cpu"]["samples_over"] <= body["champion"]["cpu"]["samples_over"]);
  const auto found = installed_models(state);
  REQUIRE(found);
  REQUIRE(found->current == 1);
  champion = state + "/models/1.json";
  CHECK(has(load_model(champion)->provenance.at("challenge"), "won against"));
  const Ran lost = run({"--least", "5m", "--exit-code"});
  CHECK(lost.exit == 7);
  CHECK(has(lost.out, "nothing is changed: it allocates"));
  CHECK(installed_models(state)->current == 1);
}

TEST_CASE_FIXTURE(Challenged, "a model that was installed meanwhile is not replaced") {
  write_blind_champion();
  int asked = 0;
  command.serve([&](const Request& request) {
    if (verb_of(request) == Verb::config)
      return json{{"ok", true},
                  {"config", {{{"key", "state_dir"},
                               {"value", json(state).dump()},
                               {"origin", "default"}}}}};
    StatusReport status;
    status.model.path = ++asked == 1 ? champion : "/another.json";
    return to_json(status);
  });
  const Ran ran = command.run({"model", "challenge", traces[0], "--state-dir", state, "--clusters",
                               "2", "--least", "5m", "--exit-code"});
  CHECK_MESSAGE(ran.exit == 7, ran.err);
  CHECK(has(ran.out, "another model was installed meanwhile"));
  CHECK(asked == 2);
  CHECK(nothing_changed());
}

TEST_CASE_FIXTURE(Challenged, "a dry run compares and changes nothing") {
  write_blind_champion();
  const Ran ran = run({"--least", "5m", "--dry-run"});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.out, "ALLOCATED"));
  CHECK(nothing_changed());
}

TEST_CASE_FIXTURE(Challenged, "an unreadable champion or trace changes nothing") {
  REQUIRE(replace_file(champion, "damaged"));
  CHECK(run({"--least", "5m"}).exit == 6);
  write_blind_champion();
  traces[0] = directory / "none.csv";
  CHECK(run({"--least", "5m"}).exit == 6);
  CHECK(run({"--least", "soon"}).exit == 2);
  CHECK(run({"--clusters", "33"}).exit == 2);
  CHECK(nothing_changed());
}
