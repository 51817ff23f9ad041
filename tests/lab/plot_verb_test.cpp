#include "base/file.h"
#include "model/model.h"
#include "tests/cli/command_run.h"
#include "tests/cli/small_model.h"
#include "tests/lab/plot/xml_check.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

struct PlotRun {
  CommandRun command;
  std::string model = command.directory() / "small.json";
  std::string picture = command.directory() / "out.svg";
  PlotRun() { REQUIRE(save_model(small_model(), model)); }

  std::string trace(const std::string& text) const {
    const std::string path = command.directory() / "t.csv";
    REQUIRE(replace_file(path, text));
    return path;
  }
  Ran plot(const std::string& path, std::vector<std::string> more) {
    more.insert(more.begin(), {"plot", path, "-o", picture});
    return command.run(more);
  }
  // Like plot(), and the picture must equal the golden file.
  void golden(const std::string& from, const std::string& name, std::vector<std::string> more) {
    const Ran ran = plot(kGolden + from, std::move(more));
    REQUIRE_MESSAGE(ran.exit == 0, ran.err);
    const std::string made = content(picture);
    CHECK(xml_fault(made) == "");
    if (std::getenv("CGPHASE_UPDATE_GOLDEN") != nullptr) {
      REQUIRE(replace_file(kGolden + name, made));
      MESSAGE("made anew: " << name);
    }
    CHECK_MESSAGE((made == content(kGolden + name)), name, " differs: docs/internals/testing.md");
  }
  // Returns the one line of a plot that must fail and leave an existing picture unchanged.
  std::string refused(int exit, const std::string& path, std::vector<std::string> more) {
    REQUIRE(replace_file(picture, "old"));
    const Ran ran = plot(path, std::move(more));
    CHECK(ran.exit == exit);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
    CHECK(content(picture) == "old");
    return ran.err;
  }
};

const std::string kPlotHeader = "timestamp,pod.id,cpu.usage.cores,mem.working.set\n";

}  // namespace

TEST_CASE_FIXTURE(PlotRun, "plot --model makes the golden picture") {
  golden("model.csv", "model.svg", {"--model", model});
}

TEST_CASE_FIXTURE(PlotRun, "plot --kind variance makes the golden picture") {
  golden("model.csv", "variance.svg", {"--kind", "variance", "--model", model});
}

TEST_CASE_FIXTURE(PlotRun, "--id draws one execution, by its raw or its printed name") {
  CHECK(plot(kGolden + "labels.csv", {"--model", model, "--id", "train-1"}).exit == 0);
  CHECK(has(content(picture), "train-1"));
  CHECK_FALSE(has(content(picture), "serve"));
  const std::string path = trace(kPlotHeader + "1,a\x1b,1,1\n2,a\x1b,1,1\n");
  CHECK(plot(path, {"--model", model, "--id", "a\x1b"}).exit == 0);
  CHECK(plot(path, {"--model", model, "--id", "a\\x1b"}).exit == 0);
}

TEST_CASE_FIXTURE(PlotRun, "an unknown execution exits with 3 and names the nearest one") {
  CHECK(has(refused(3, kGolden + "labels.csv", {"--model", model, "--id", "train-2"}),
            "no execution 'train-2'; did you mean 'train-1'?"));
  CHECK(has(refused(3, kGolden + "labels.csv", {"--model", model, "--id", "zzzzzzzz\n"}),
            "no execution 'zzzzzzzz\\x0a'; column pod.id has the names"));
}

TEST_CASE_FIXTURE(PlotRun, "a trace without rows, time or readings exits with 6") {
  CHECK(has(refused(6, trace(kPlotHeader), {"--model", model}), "has no rows"));
  CHECK(has(refused(6, trace("a,b\n1,2\n"), {"--model", model}), "column timestamp: is missing"));
  CHECK(has(refused(6, trace("timestamp,label\n1,x\n2,x\n"), {"--model", model}),
            "no row has CPU use"));
  CHECK(has(refused(6, trace(kPlotHeader + "1,a,1,1\n2,a,many,1\n"), {"--model", model}),
            "line 3: column cpu.usage.cores: \"many\" is not a number"));
}

TEST_CASE_FIXTURE(PlotRun, "a trace or model that is missing or damaged exits with 6") {
  CHECK(has(refused(6, command.directory() / "none.csv", {"--model", model}), "none.csv"));
  CHECK(has(refused(6, kGolden + "model.csv", {"--model", command.directory() / "none"}),
            "none: No such file or directory (ENOENT); name a model with --model"));
  const std::string damaged = command.directory() / "damaged.json";
  REQUIRE(replace_file(damaged, content(model).substr(40)));
  CHECK(has(refused(6, kGolden + "model.csv", {"--model", damaged}), "damaged.json"));
}

TEST_CASE_FIXTURE(PlotRun, "too few windows for clusters exit with 6 and their number") {
  CHECK(has(refused(6, trace(kPlotHeader + "1,a,1,1\n2,a,1,1\n3,a,1,1\n"),
                    {"--kind", "variance", "--model", model}),
            "t.csv: the trace gives 1 windows of 2 steps of 1 s without a gap, at least 20"));
}

TEST_CASE_FIXTURE(PlotRun, "wrong arguments exit with 2") {
  refused(2, kGolden + "labels.csv", {"--kind", "pie"});
  CHECK(command.run({"plot", kGolden + "labels.csv"}).exit == 2);
  CHECK(command.run({"plot", "-o", picture}).exit == 2);
}

TEST_CASE_FIXTURE(PlotRun,
                  "the first eight of many executions are drawn, and the picture says so") {
  std::string text = kPlotHeader;
  for (int execution = 1; execution <= 9; ++execution)
    for (int second = 0; second < 3; ++second)
      text += std::to_string(second) + ",pod-" + std::to_string(execution) + ",1,1000000\n";
  CHECK(plot(trace(text), {"--model", model}).exit == 0);
  const std::string made = content(picture);
  CHECK(has(made, "8 executions of 9; --id draws one of the others"));
  CHECK(has(made, ">pod-8</text>"));
  CHECK_FALSE(has(made, "pod-9"));
}

TEST_CASE_FIXTURE(PlotRun, "hostile names of executions are text") {
  const std::string row = ",\"</text><script>&\x1b\xff\",1\n";
  const std::string path = trace("timestamp,pod.id,cpu.usage.cores\n1" + row + "2" + row);
  CHECK(plot(path, {"--model", model}).exit == 0);
  const std::string made = content(picture);
  CHECK(xml_fault(made) == "");
  CHECK_FALSE(has(made, "<script"));
  CHECK(has(made, ">&lt;/text&gt;&lt;script&gt;&amp;\\x1b\\xff</text>"));
}
