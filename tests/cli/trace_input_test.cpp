// All verbs that read traces accept and refuse the same files with the same messages. One
// impossible value does not change their results for the rest of a trace.
#include <doctest/doctest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/file.h"
#include "model/model.h"
#include "tests/cli/command_run.h"
#include "tests/cli/small_model.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

const std::string kNames = "timestamp,pod.id,cpu.num.cores,host.memory,cpu.usage.cores,"
                           "mem.working.set";
constexpr int kRows = 120;
constexpr int kSpoiled = 70;  // the row in which a test replaces a cell

std::string row(int i, std::string cores, std::string memory) {
  return std::to_string(1'700'000'000 + i) + ",a,4,8589934592," + std::move(cores) + "," +
         std::move(memory);
}

// One row per second; two phases alternate every ten rows.
std::string row(int i) {
  return row(i, i / 10 % 2 == 0 ? "0.1" : "1.9",
             std::to_string(100'000'000 + i % 7 * 1000 + i / 10 % 2 * 90'000'000));
}

std::string trace_text() {
  std::string text = kNames + "\n";
  for (int i = 0; i < kRows; ++i) text += row(i) + "\n";
  return text;
}

std::string replaced(std::string text, const std::string& part, const std::string& by) {
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + by.size()))
    text.replace(at, part.size(), by);
  return text;
}

struct TraceVerbs {
  CommandRun command;
  std::string model = command.directory() / "m.json", output = command.directory() / "out";
  TraceVerbs() { REQUIRE(save_model(small_model(), model)); }

  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = command.directory() / name;
    REQUIRE(replace_file(path, text));
    return path;
  }

  std::vector<Ran> run_all(const std::string& trace) {
    const std::vector<std::vector<std::string>> verbs = {
        {"predict", "--model", model, "--output", output, trace},
        {"size", "--model", model, trace},
        {"plot", "--model", model, "-o", output, trace},
        {"replay", "--model", model, trace},
        {"train", "--step", "1", "--epochs", "1", "--clusters", "2", "-o", output, trace}};
    std::vector<Ran> all;
    for (const std::vector<std::string>& words : verbs) {
      std::filesystem::remove(output);
      all.push_back(command.run(words));
      CAPTURE(words[0]);
      CAPTURE(all.back().err);
      const bool writes = words[0] != "size" && words[0] != "replay";
      CHECK(std::filesystem::exists(output) == (writes && all.back().exit == 0));
      CHECK((all.back().exit == 0 || words[0] == "train" || all.back().out.empty()));
    }
    return all;
  }

  void taken(const std::string& name, const std::string& text, const std::string& note = "") {
    CAPTURE(name);
    const std::string path = write(name, text);
    for (const Ran& ran : run_all(path)) {
      CHECK(ran.exit == 0);
      CHECK(ran.err == (note.empty() ? "" : "cgphase: " + path + ": " + note + "\n"));
    }
  }

  void refused(const std::string& name, const std::string& text, const std::string& why) {
    CAPTURE(name);
    const std::string path = write(name, text);
    const std::vector<Ran> all = run_all(path);
    for (const Ran& ran : all) {
      CHECK(ran.exit == 6);
      CHECK(ran.err == all.front().err);
      CHECK(one_line(ran.err));
      CHECK(ran.err.starts_with("cgphase: " + path + ": " + why));
    }
  }

  std::string predicted(const std::string& path) {
    const Ran ran = command.run({"predict", "--model", model, path});
    CHECK(ran.exit == 0);
    return ran.out;
  }
  json policies(const std::string& path) {
    const Ran ran = command.run({"replay", "--model", model, "--json", path});
    CHECK(ran.exit == 0);
    return json::parse(ran.out).at("policies");
  }

  // The same results as with an empty cell in place of the impossible value.
  void changes_nothing(const std::string& spoiled_row, const std::string& missing_row,
                       const std::string& note) {
    const std::string good = trace_text();
    const std::string spoiled = write("s.csv", replaced(good, row(kSpoiled), spoiled_row));
    const std::string missing = write("m.csv", replaced(good, row(kSpoiled), missing_row));
    CHECK(command.run({"predict", "--model", model, spoiled}).err ==
          "cgphase: " + spoiled + ": 1 impossible value ignored: " + note + "\n");
    CHECK(predicted(spoiled) == predicted(missing));
    CHECK(policies(spoiled) == policies(missing));
  }
};

}  // namespace

TEST_CASE_FIXTURE(TraceVerbs, "predict, size, plot, replay and train accept the same files") {
  const std::string good = trace_text();
  taken("good.csv", good);
  taken("semicolon.csv", replaced(good, ",", ";"));
  taken("decimal.csv", replaced(replaced(good, ",", ";"), ".1\n", ",1\n"));
  taken("comment.csv", "# exported\n" + good);
  taken("missing.csv", good + row(kRows, "N/A", "-") + "\n");
  taken("time.csv", "Time" + good.substr(good.find(',')));
  taken("milliseconds.csv", replaced(good, ",a,", "000,a,"), "timestamps taken as milliseconds");
  taken("percent.csv", replaced(good, "cpu.usage.cores", "cpu.usage.pct"),
        "CPU use computed from cpu.usage.pct and cpu.num.cores");
  taken("twice.csv", replaced(good, row(kSpoiled), kNames + "\n" + row(kSpoiled)),
        "the header is repeated in line 72; that line is ignored");
  taken("impossible.csv", good + row(kRows, "4e9", "1") + "\n",
        "1 impossible value ignored: cpu.usage.cores 4e+09 at line 122, above the host's 4 cores");
}

TEST_CASE_FIXTURE(TraceVerbs, "predict, size, plot, replay and train refuse the same files alike") {
  const std::string good = trace_text();
  refused("empty.csv", "", "line 1: the file is empty");
  refused("header.csv", kNames + "\n", "has no rows, only a header");
  refused("headless.csv", good.substr(good.find('\n') + 1), "line 1: there is no header line");
  refused("foreign.csv", "when;cpu\n1;2\n", "line 1: column timestamp: is missing");
  refused("nothing.csv", "timestamp,value\n1,2\n2,3\n", "no row has CPU use");
  refused("absent.csv", "timestamp,cpu.usage.cores\n1,NA\n2,null\n", "no row has CPU use");
  refused("percent.csv", "timestamp,cpu.usage.pct,mem.usage.pct\n1,2,3\n2,3,4\n",
          "no row has CPU use");
  refused("unit.csv", replaced(good, "100000000\n", "95MiB\n"), "line 2: column mem.working.set: ");
  refused("backwards.csv", good + row(3) + "\n", "line 122: column timestamp: runs backwards");
  refused("dates.csv", replaced(good, "1700000000,", "14.11.2023,"), "line 2: column timestamp: ");
  refused("short.csv", good + "1700000999,a,4\n", "line 122: has 3 fields, not 6");
  refused("t.csv.xz", std::string("\xFD\x37zXZ\0", 6), "is compressed with xz; unpack it first");
  refused("t.csv.zip", "PK\x03\x04", "is a zip archive; unpack it first");
  refused("t.jsonl", "{\"CPUPerc\":\"1%\"}\n", "is JSON");
}

TEST_CASE_FIXTURE(TraceVerbs,
                  "a trace with percentages only is refused with the columns that are needed") {
  const std::string path =
      write("p.csv", "timestamp,cpu.usage.pct,mem.usage.pct\n1,2,3\n2,3,4\n3,3,4\n");
  for (const Ran& ran : run_all(path)) {
    CHECK(has(ran.err, "cpu.usage.pct needs the column cpu.num.cores"));
    CHECK(has(ran.err, "mem.usage.pct needs the column mem.limit or host.memory"));
  }
}

TEST_CASE_FIXTURE(TraceVerbs, "an impossible value has the same effect as a missing one") {
  changes_nothing(row(kSpoiled, "1.7e9", "100000000"), row(kSpoiled, "NA", "100000000"),
                  "cpu.usage.cores 1.7e+09 at line 72, above the host's 4 cores");
  changes_nothing(row(kSpoiled, "5.5", "100000000"), row(kSpoiled, "NA", "100000000"),
                  "cpu.usage.cores 5.5 at line 72, above the host's 4 cores");
  changes_nothing(row(kSpoiled, "-1", "100000000"), row(kSpoiled, "NA", "100000000"),
                  "cpu.usage.cores -1 at line 72, below zero");
  changes_nothing(row(kSpoiled, "inf", "100000000"), row(kSpoiled, "NA", "100000000"),
                  "cpu.usage.cores inf at line 72, more than a counter holds");
  changes_nothing(row(kSpoiled, "0.1", "1e15"), row(kSpoiled, "0.1", ""),
                  "mem.working.set 1e+15 at line 72, above the host's 8.58993e+09 bytes");
}
