#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "model/model.h"
#include "tests/cli/command_run.h"
#include "tests/cli/small_model.h"
#include "tests/lab/plot/xml_check.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

const std::string kRecorded = CGPHASE_SOURCE_DIR "/tests/data/";
const std::string kHeader =
    "timestamp,service,pod.id,cpu.num.cores,cpu.usage.cores,mem.working.set,mem.limit\n";

struct Replays {
  CommandRun command;
  std::string model = command.directory() / "small.json";
  std::string pictures = command.directory() / "pictures";
  Replays() { REQUIRE(save_model(small_model(), model)); }

  std::string trace(const std::string& text) const {
    const std::string path = command.directory() / "t.csv";
    REQUIRE(replace_file(path, text));
    return path;
  }
  Ran replay(const std::string& path, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {"replay", path, "--model", model});
    return command.run(more);
  }
  json replay_json(std::vector<std::string> more = {}) {
    more.emplace_back("--json");
    const Ran ran = replay(kGolden + "replay.csv", more);
    REQUIRE_MESSAGE(ran.exit == 0, ran.err);
    return json::parse(ran.out);
  }
  // Returns the one line of a replay that must fail and print nothing else.
  std::string refused(int exit, const std::string& path, std::vector<std::string> more = {}) {
    const Ran ran = replay(path, std::move(more));
    CHECK(ran.exit == exit);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(one_line(ran.err), ran.err);
    return ran.err;
  }
  void golden(const std::string& made, const std::string& name) {
    if (std::getenv("CGPHASE_UPDATE_GOLDEN") != nullptr) {
      REQUIRE(replace_file(kGolden + name, made));
      MESSAGE("made anew: " << name);
    }
    CHECK_MESSAGE((made == content(kGolden + name)), name, " differs: docs/internals/testing.md");
  }
};

const std::vector<std::string> kClosedLoop = {"--closed-loop", "--policy", "hold,sliding,static"};

}  // namespace

TEST_CASE_FIXTURE(Replays, "replay prints the golden table") {
  const Ran ran = replay(kGolden + "replay.csv", kClosedLoop);
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  golden(ran.out, "replay.txt");
}

TEST_CASE_FIXTURE(Replays, "replay --svg makes the golden picture of an execution") {
  std::vector<std::string> words = kClosedLoop;
  words.insert(words.end(), {"--svg", pictures});
  const Ran ran = replay(kGolden + "replay.csv", words);
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  const std::string picture = content(pictures + "/execution-02-job-2.svg");
  CHECK(xml_fault(picture) == "");
  golden(picture, "replay-execution.svg");
  CHECK(std::filesystem::exists(pictures + "/execution-01-job-1.svg"));
}

TEST_CASE_FIXTURE(Replays,
                  "plot --kind replay draws the limits of phase, of all executions or of one") {
  const std::string picture = command.directory() / "out.svg";
  const auto plot = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"plot", kGolden + "replay.csv", "--kind", "replay", "--model", model,
                               "-o", picture});
    return command.run(more);
  };
  CHECK(plot({}).exit == 0);
  const std::string all = content(picture);
  CHECK(xml_fault(all) == "");
  CHECK(has(all, ">limit by phase</text>"));
  CHECK(has(all, ">job-1 of train</text>"));
  CHECK(plot({"--id", "job-2"}).exit == 0);
  CHECK_FALSE(has(content(picture), "job-1"));
  CHECK(plot({"--id", "job-3"}).exit == 3);
}

TEST_CASE_FIXTURE(Replays, "JSON has every policy and resource, and the counts") {
  const json body = replay_json({"--policy", "hold,static", "--policy", "sliding"});
  CHECK(body["schema"] == 1);
  CHECK(body["traces"] == 1);
  CHECK(body["executions"] == 2);
  CHECK(body["policies"].size() == 6);
  for (const json& policy : body["policies"]) {
    if (policy["name"] != "static") continue;
    CHECK(policy["alloc_vs_static"] == 1);
    CHECK(policy["writes_up"] == 0);
  }
}

TEST_CASE_FIXTURE(Replays, "two replays print the same bytes") {
  const std::vector<std::string> words = {"--policy", "all", "--closed-loop", "--json",
                                          "--margin", "0,10", "--compare", "phase", "controls"};
  const Ran first = replay(kGolden + "replay.csv", words);
  CHECK(first.exit == 0);
  CHECK(first.out == replay(kGolden + "replay.csv", words).out);
}

TEST_CASE_FIXTURE(Replays, "all leaves out policies that cannot run, with one line") {
  const Ran ran = replay(kGolden + "replay.csv", {"--policy", "all", "-o", "csv"});
  CHECK(ran.exit == 0);
  CHECK(one_line(ran.err));
  CHECK(has(ran.err, "replay leaves out: "));
  CHECK(has(ran.err, "ai4dl-phase-compat"));
  CHECK(has(ran.out, "\nphase,0.0,cpu,"));
  CHECK_FALSE(has(ran.out, "ai4dl-phase-compat"));
}

TEST_CASE_FIXTURE(Replays, "a named policy that cannot run exits with 6") {
  CHECK(has(refused(6, kGolden + "replay.csv", {"--policy", "ai4dl-phase-compat"}),
            "--compat-model"));
}

TEST_CASE_FIXTURE(Replays, "assertions that hold exit with 0, others with 8 and both values") {
  const std::string path = kGolden + "replay.csv";
  CHECK(replay(path, {"--assert", "static.cpu.alloc_vs_static == 100%", "--assert",
                      "hold.cpu.alloc_vs_static < static.cpu.alloc_vs_static"})
            .exit == 0);
  const Ran ran = replay(path, {"--assert", "static.cpu.alloc_vs_static < 50 %"});
  CHECK(ran.exit == 8);
  CHECK(has(ran.err, "assertion failed: static.cpu.alloc_vs_static < 50 % (left 1, right 0.5)"));
  CHECK(has(ran.out, "assertions that hold: 0 of 1"));
  CHECK(refused(2, path, {"--assert", "vpa.cpu.slack > 0"}).find("policy") != std::string::npos);
  refused(2, path, {"--assert", "1 <"});
}

TEST_CASE_FIXTURE(Replays, "--compare prints both sides at matched violations") {
  const json body = replay_json({"--policy", "hold", "--compare", "hold", "controls"});
  CHECK(body["compare"]["a"] == "hold");
  CHECK(body["compare"]["b"] == "controls");
  REQUIRE(body["compare"]["resources"].size() == 2);
  CHECK(body["compare"]["resources"][0]["at"].size() == 4);
  CHECK(has(refused(2, kGolden + "replay.csv", {"--compare", "hold", "hodl"}), "did you mean"));
}

TEST_CASE_FIXTURE(Replays, "a policy with rails appears beside the one without") {
  const json body = replay_json({"--policy", "phase"});
  CHECK(body["policies"].size() == 4);
  CHECK(body["policies"][2]["name"] == "phase+rails");
  CHECK(body["policies"][2]["rails"] == true);
  CHECK(body["policies"][2]["guard_threshold"] == 0.9);
  CHECK_FALSE(body["policies"][0].contains("guard_threshold"));
  CHECK(replay_json({"--policy", "phase", "--bare"})["policies"].size() == 2);
  CHECK(has(refused(2, kGolden + "replay.csv",
                    {"--policy", "phase", "--bare", "--assert", "phase+rails.cpu.slack > 0"}),
            "leave out --bare"));
}

TEST_CASE_FIXTURE(Replays, "the rules of a configuration are replayed, and options count more") {
  const auto rails = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"replay", kRecorded + "train-15-heldout.csv.gz", "--train",
                               kRecorded + "train-11.csv.gz", "--policy", "phase", "--json"});
    const Ran ran = command.run(more, {{"CGPHASE_TEST_KEYS", "1"}});
    REQUIRE_MESSAGE(ran.exit == 0, ran.err);
    json body = json::parse(ran.out);
    CHECK(body["policies"][2]["name"] == "phase+rails");
    return body;
  };
  const std::string path = command.directory() / "cgphase.toml";
  REQUIRE(replace_file(path, "risk = 0.01\nenforce.cpu = \"quota\"\n" +
                                 content(CGPHASE_SOURCE_DIR "/tests/workloads/demo.toml")));
  const json shipped = rails({}), quick = rails({"--config", path});
  CHECK(shipped["policies"][2]["writes_down"] == 0);
  CHECK(quick["policies"][2]["writes_down"] > 0);  // a quota, and within 90 s
  CHECK(quick["policies"][3]["alloc_vs_static"] < shipped["policies"][3]["alloc_vs_static"]);
  CHECK(quick["settings"]["risk"] == 0.01);
  const json weighed = rails({"--config", path, "--enforce-cpu", "weight", "--risk", "2%"});
  CHECK(weighed["policies"][2]["writes_down"] == 0);
  CHECK(weighed["settings"]["risk"] == 0.02);
  CHECK(has(refused(6, kGolden + "replay.csv", {"--config", path + "x"}), "cgphase.tomlx"));
}

TEST_CASE_FIXTURE(Replays, "a claim may say that CPU has no OOM") {
  CHECK(replay(kGolden + "replay.csv", {"--policy", "hold", "--assert",
                                        "hold.cpu.would_oom == 0"}).exit == 0);
}

TEST_CASE_FIXTURE(Replays, "models that do not fit their option exit with 6") {
  CHECK(has(refused(6, kGolden + "replay.csv", {"--compat-model", model}), "imported from AI4DL"));
  Model columns = small_model();
  for (FeatureSchema::Entry& entry : columns.schema.entries)
    entry = {Feature::column, "cpu.usage.cores"};
  columns.schema.entries[1].name = "mem.limit";
  const std::string path = command.directory() / "columns.json";
  REQUIRE(save_model(columns, path));
  const Ran ran = command.run({"replay", kGolden + "replay.csv", "--model", path, "--rails"});
  CHECK(ran.exit == 6);
  CHECK(has(ran.err, "the daemon cannot use this model, it needs columns of traces; leave out "));
  const Ran bare = command.run({"replay", kGolden + "replay.csv", "--model", path});
  CHECK(bare.exit == 0);
  CHECK_FALSE(has(bare.out, "+rails"));
}

TEST_CASE_FIXTURE(Replays, "earlier runs are learned from: the first limit is not the user's") {
  const auto phase = [](const json& body) { return body["policies"][0]["alloc_vs_static"]; };
  const json cold = replay_json({"--policy", "phase"});
  const std::string other = command.directory() / "other.csv";  // the same work on another day
  std::string text = content(kGolden + "replay.csv");
  for (std::size_t at = text.find("\n1"); at != std::string::npos; at = text.find("\n1", at + 1))
    text.replace(at, 2, "\n9");
  REQUIRE(replace_file(other, text));
  const json warm = replay_json({"--policy", "phase", "--train", other});
  CHECK(phase(warm) < phase(cold));
  CHECK(warm["hashes"]["training"].size() == 1);
}

TEST_CASE_FIXTURE(Replays,
                  "without --model the default model is used, even before it is installed") {
  const auto run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"replay", kGolden + "replay.csv", "-o", "csv"});
    return command.run(more);
  };
  const Ran phase = run({"--policy", "phase"});
  CHECK(phase.exit == 0);
  CHECK(phase.out == run({"--policy", "phase", "--model",
                          CGPHASE_SOURCE_DIR "/model/default_model.json"}).out);
  CHECK(run({"--policy", "phase", "--model", command.directory() / "none.json"}).exit == 6);
}

TEST_CASE_FIXTURE(Replays, "replay needs traces or the history of a running daemon") {
  const Ran nothing = command.run({"replay"});
  CHECK(nothing.exit == 2);
  CHECK(has(nothing.err, "--host"));
  CHECK(command.run({"replay", "--host"}).exit == 4);
  CHECK(command.run({"replay", "--container", "web"}).exit == 4);
  CHECK(command.run({"replay", "--host", "--since", "soon"}).exit == 2);
  CHECK(command.run({"replay", kGolden + "replay.csv", "--since", "-10m"}).exit == 2);
  const Ran empty = command.run({"replay", "--state-dir", command.directory() / ""});
  CHECK(empty.exit == 6);
  CHECK(one_line(empty.err));
}

TEST_CASE_FIXTURE(Replays, "files that are missing, damaged or empty exit with 6") {
  CHECK(has(refused(6, command.directory() / "none.csv"), "none.csv: No such file"));
  CHECK(has(refused(6, trace(kHeader)), "t.csv: has no rows"));
  CHECK(has(refused(6, trace(kHeader + "1,s,a,1,x,1,1\n")), "line 2: column cpu.usage.cores"));
  CHECK(has(refused(6, kGolden + "replay.csv", {"--train", command.directory() / "none.csv"}),
            "none.csv"));
  const std::string damaged = command.directory() / "damaged.json";
  REQUIRE(replace_file(damaged, content(model).substr(40)));
  CHECK(has(command.run({"replay", kGolden + "replay.csv", "--model", damaged}).err, "damaged"));
}

TEST_CASE_FIXTURE(Replays, "a failed replay leaves no directory and no pictures") {
  refused(6, trace(kHeader), {"--svg", pictures});
  CHECK_FALSE(std::filesystem::exists(pictures));
  refused(2, kGolden + "replay.csv", {"--svg", pictures, "--assert", "1"});
  CHECK_FALSE(std::filesystem::exists(pictures));
}

TEST_CASE_FIXTURE(Replays, "arguments out of bounds exit with 2 and the bounds") {
  const std::string path = kGolden + "replay.csv";
  CHECK(has(refused(2, path, {"--window", "0s"}), "--window 0s: must be a duration from 1 s"));
  CHECK(has(refused(2, path, {"--window", "10"}), "such as 10m"));
  refused(2, path, {"--step", "2d"});
  CHECK(has(refused(2, path, {"--margin", "-91"}), "--margin -91: must be percents"));
  CHECK(has(refused(2, path, {"--risk", "60%"}), "--risk 60%: must be a share"));
  refused(2, path, {"--time-to-raise", "100ms"});
  refused(2, path, {"--closed-loop", "--time-to-raise", "0s"});
  refused(2, path, {"--closed-loop", "--guard-threshold", "101%"});
  refused(2, path, {"--bootstrap", "100001"});
  refused(2, path, {"--compare", "hold"});
  CHECK(has(refused(2, path, {"--policy", "hodl"}), "did you mean \"hold\"?"));
  CHECK(command.run({"replay"}).exit == 2);
}

TEST_CASE_FIXTURE(Replays, "a trace with no or one measurement exits with 6") {
  const std::pair<std::string, const char*> cases[] = {
      {"timestamp,pod.id\n1,a\n2,a\n", "t.csv: no row has CPU use"},
      {kHeader + "1,s,a,,1,9,\n", "t.csv: nothing to replay: no two successive rows have"}};
  for (const auto& [text, why] : cases)
    for (const char* policy : {"hold", "all"})
      CHECK(has(refused(6, trace(text), {"--policy", policy, "--closed-loop", "--svg", pictures}),
                why));
  CHECK_FALSE(std::filesystem::exists(pictures));
}

TEST_CASE_FIXTURE(Replays, "pictures of an earlier replay are removed, and no other files") {
  const std::vector<std::string> words = {"--policy", "hold", "--svg", pictures};
  const auto there = [&](const char* name) {
    return std::filesystem::exists(pictures + "/" + name);
  };
  REQUIRE(replay(kGolden + "replay.csv", words).exit == 0);
  REQUIRE(there("execution-02-job-2.svg"));
  for (const char* kept : {"execution-07-mine.svg", "notes.svg", "execution-1.svg"})
    REQUIRE(replace_file(pictures + "/" + kept, "<svg><title>mine</title></svg>"));
  for (const char* copy : {"copy.svg", "execution-02-job-2-edited.svg"})
    REQUIRE(replace_file(pictures + "/" + copy, content(pictures + "/execution-02-job-2.svg")));
  REQUIRE(command.run({"plot", kGolden + "replay.csv", "--kind", "replay", "--model", model, "-o",
                       pictures + "/execution-09-plot.svg"}).exit == 0);
  refused(6, trace(kHeader), words);
  CHECK(there("execution-02-job-2.svg"));
  std::string text = "timestamp,service,pod.id,cpu.num.cores,cpu.usage.cores\n";
  for (int i = 0; i < 30; ++i) text += std::to_string(i) + ",s,other,2,1\n";
  REQUIRE(replay(trace(text), words).exit == 0);
  CHECK(there("execution-01-other.svg"));
  for (const char* gone : {"execution-01-job-1.svg", "execution-02-job-2.svg"})
    CHECK_FALSE_MESSAGE(there(gone), gone);
  for (const char* kept : {"execution-07-mine.svg", "notes.svg", "execution-1.svg", "copy.svg",
                           "execution-02-job-2-edited.svg", "execution-09-plot.svg"})
    CHECK_MESSAGE(there(kept), kept);
}

TEST_CASE_FIXTURE(Replays,
                  "an earlier picture that cannot be removed causes one line and no failure") {
  // Only root can create a file that its child may not remove.
  if (::geteuid() != 0) return;
  const std::vector<std::string> words = {"--policy", "hold", "--svg", pictures};
  std::string text = "timestamp,service,pod.id,cpu.num.cores,cpu.usage.cores\n";
  for (int i = 0; i < 30; ++i) text += std::to_string(i) + ",s,other,2,1\n";
  const std::string path = trace(text);
  REQUIRE(replay(path, words).exit == 0);
  const std::string earlier = pictures + "/execution-01-other.svg";
  for (std::size_t at; (at = text.find(",other,")) != text.npos;) text.replace(at, 7, ",third,");
  REQUIRE(replace_file(path, text));
  // In a sticky folder only the owner, or a process with a capability, may remove a file; the child
  // drops that capability. It stays root otherwise, because another user might not reach the tree.
  // Under sudo it trusts the calling user.
  for (const std::string& theirs : {pictures, earlier})
    REQUIRE(::chown(theirs.c_str(), 65534, 65534) == 0);
  REQUIRE(::chmod(pictures.c_str(), 01777) == 0);
  command.through({"env", "SUDO_UID=65534", "setpriv", "--bounding-set=-fowner"});
  const Ran ran = replay(path, words);
  CHECK(ran.exit == 0);
  CHECK(has(ran.out, "hold"));
  CHECK(one_line(ran.err));
  CHECK(has(ran.err, "cannot remove earlier pictures from " + pictures +
                         ": execution-01-other.svg"));
  CHECK(std::filesystem::exists(pictures + "/execution-01-third.svg"));
}

TEST_CASE_FIXTURE(Replays, "a recording cannot be replayed and learned from, by name or by copy") {
  const std::string copy = command.directory() / "copy.csv", link = command.directory() / "l.csv";
  REQUIRE(replace_file(copy, content(kGolden + "replay.csv")));
  std::filesystem::create_symlink(kGolden + "replay.csv", link);
  for (const std::string& same : {kGolden + "replay.csv", copy, link})
    CHECK(has(refused(6, kGolden + "replay.csv", {"--train", same}),
              same + ": --train has execution \"job-1\" at the time at which " + kGolden +
                  "replay.csv replays it"));
}

TEST_CASE_FIXTURE(Replays, "an execution cannot be replayed and learned from, not even a part") {
  const std::string path = command.directory() / "part.csv";
  const auto train_on = [&](const std::string& text) {
    REQUIRE(replace_file(path, text));
    return replay(kGolden + "replay.csv", {"--policy", "phase", "--train", path});
  };
  const std::string header = "timestamp,service,pod.id,cpu.num.cores,cpu.usage.cores\n";
  // job-2 of the recording is from second 1300 to 1449.
  for (const char* rows : {"1449,train,job-2,4,1\n1450,train,job-2,4,1\n",
                           "1,train,other,4,1\n1200,train,job-2,4,1\n1300,train,job-2,4,1\n",
                           "1,train,job-2,4,1\n9999,train,job-2,4,1\n"}) {
    const Ran ran = train_on(header + rows);
    CHECK(ran.exit == 6);
    CHECK(ran.out.empty());
    CHECK_MESSAGE(one_line(ran.err), ran.err);
    CHECK(has(ran.err, path + ": --train has execution \"job-2\" at the time at which " + kGolden +
                           "replay.csv replays it; the policy would know the future"));
  }
  for (const char* rows : {"1200,train,job-2,4,1\n1299,train,job-2,4,1\n",
                           "1450,train,job-2,4,1\n1451,train,job-2,4,1\n",
                           "1300,train,job-3,4,1\n1301,train,job-3,4,1\n",
                           "1300,serve,job-2,4,1\n1301,serve,job-2,4,1\n"}) {
    const Ran ran = train_on(header + rows);
    CHECK_MESSAGE(ran.exit == 0, ran.err);
  }
}

TEST_CASE_FIXTURE(Replays, "a model trained on the replayed trace is reported in one line") {
  const std::string path = kGolden + "replay.csv";
  const Ran before = replay(path, {"--policy", "phase,hold"});
  REQUIRE(before.exit == 0);
  CHECK(before.err.empty());
  const std::string crc = replay_json()["hashes"]["traces"][0]["crc32c"];
  Model trained = small_model();
  trained.provenance["input_01"] = "other.csv crc32c 00000000";
  trained.provenance["input_02"] = "renamed.csv.gz crc32c " + crc;
  REQUIRE(save_model(trained, model));
  const Ran ran = replay(path, {"--policy", "phase,hold"});
  CHECK(ran.exit == 0);
  CHECK(ran.out == before.out);
  CHECK(ran.err == "cgphase: replay: " + model + " was trained on " + path +
                       ", which is replayed: it knows its future\n");
  CHECK(replay(path, {"--policy", "hold"}).err.empty());  // no policy uses the model
  CHECK_FALSE(replay(path, {"--policy", "hold", "--compare", "phase", "hold"}).err.empty());
}

TEST_CASE_FIXTURE(Replays,
                  "an execution without limit and host is measured by its use, with a message") {
  std::string text = "timestamp,service,pod.id,cpu.usage.cores,mem.working.set,host.memory\n";
  for (int i = 0; i < 30; ++i)
    text += std::to_string(i) + ",s,a,0." + std::to_string(1 + i % 9) + ",1000000,8000000\n";
  const Ran ran = replay(trace(text), {"--policy", "static"});
  CHECK(ran.exit == 0);
  CHECK(one_line(ran.err));
  CHECK(has(ran.err, "no limit and no host size is recorded for the CPU of 1 of 1 execution; "));
  const Ran lines = replay(trace(text), {"--policy", "static", "-o", "jsonl"});
  CHECK(lines.err.empty());
  CHECK(has(lines.out, "\"original_from\":\"largest use\",\"overrun_area\""));
  CHECK(has(lines.out, "\"original_from\":\"host\""));
}

TEST_CASE_FIXTURE(Replays, "rails use the daemon's threshold or a given one, and no step") {
  const auto threshold = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"--policy", "phase", "--closed-loop"});
    const json body = replay_json(more);
    CHECK(body["policies"][2]["rails"] == true);
    return body["policies"][2]["guard_threshold"].get<double>();
  };
  CHECK(threshold({}) == 0.9);
  CHECK(threshold({"--guard-threshold", "80%"}) == 0.8);
  CHECK(has(refused(2, kGolden + "replay.csv", {"--policy", "phase", "--step", "15s", "--rails"}),
            "--step: the safety rules decide at each row"));
  CHECK(replay_json({"--policy", "phase", "--step", "15s"})["policies"].size() == 2);
}

TEST_CASE_FIXTURE(Replays, "hostile names of executions become harmless file names") {
  std::string text = kHeader;
  for (int i = 0; i < 30; ++i)
    text += std::to_string(i) + ",s,../../<b>\x1b,2,1,1000000,4000000\n";
  const Ran ran = replay(trace(text), {"--policy", "hold", "--svg", pictures});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  const std::string picture = content(pictures + "/execution-01-.._..__b__.svg");
  CHECK(xml_fault(picture) == "");
}

TEST_CASE_FIXTURE(Replays, "hold saves CPU and memory on recorded executions") {
  const Ran ran = command.run({"replay", kRecorded + "train-15-heldout.csv.gz",
                               kRecorded + "batch-15-heldout.csv.gz", "--policy", "hold",
                               "--closed-loop", "--assert", "hold.cpu.alloc_vs_static < 60%",
                               "--assert", "hold.memory.alloc_vs_static < 60%"});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
}
