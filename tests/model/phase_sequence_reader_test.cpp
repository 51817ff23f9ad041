#include "model/phase_sequence_reader.h"

#include <doctest/doctest.h>

#include "model/train/random.h"
#include "tests/model/temporary_folder.h"
#include "traces/text_lines.h"

using namespace cgphase;

namespace {

const std::string kHeader = "exec,n_samples,phase_runs(phase:length)\n";

struct Fixture {
  TemporaryFolder folder;

  std::vector<PhaseSequence> good(const std::string& text) {
    PhaseSequences sequences;
    const Status status = read_phase_sequences(folder.write("f.csv", text), sequences);
    if (!status) FAIL(status.error().text);
    return sequences.with_phases();
  }
  // Returns the error without the folder's name.
  std::string bad(const std::string& text) {
    PhaseSequences sequences;
    const std::string path = folder.write("f.csv", text);
    const Status status = read_phase_sequences(path, sequences);
    if (status) return "read";
    CHECK(status.error().kind == ErrorKind::invalid);
    REQUIRE(status.error().text.starts_with(path + ": "));
    return status.error().text.substr(path.size() + 2);
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "sequences are read with their ids, runs and unknown phases") {
  const auto read = good(kHeader + "a,7,1:4 3:2 ?:1\n\n\"b,c\",31, 31:31 \n");
  REQUIRE(read.size() == 2);
  CHECK(read[0].id == "a");
  CHECK(read[0].runs == std::vector<PhaseRun>{{1, 4}, {3, 2}, {kUnknownPhase, 1}});
  CHECK(read[1].id == "b,c");
  CHECK(read[1].runs == std::vector<PhaseRun>{{31, 31}});
}

TEST_CASE_FIXTURE(Fixture, "neighbouring runs of the same phase become one") {
  CHECK(good(kHeader + "a,7,1:4 1:2 2:1\n")[0].runs == std::vector<PhaseRun>{{1, 6}, {2, 1}});
}

TEST_CASE_FIXTURE(Fixture, "only the runs are required; the id defaults to the line") {
  const auto read = good("\xEF\xBB\xBFservice,phase_runs\r\nx,0:1000000000\r\n");
  REQUIRE(read.size() == 1);
  CHECK(read[0].id == "2");
  CHECK(read[0].runs == std::vector<PhaseRun>{{0, kMaxRunLength}});
}

TEST_CASE_FIXTURE(Fixture, "a compressed file reads as the plain one") {
  PhaseSequences sequences;
  REQUIRE(read_phase_sequences(folder.write_gzip("f.csv.gz", kHeader + "a,3,2:3\n"), sequences));
  CHECK(sequences.with_phases()[0].runs == std::vector<PhaseRun>{{2, 3}});
}

TEST_CASE_FIXTURE(Fixture, "an execution without runs is counted") {
  PhaseSequences sequences;
  REQUIRE(read_phase_sequences(folder.write("f.csv", kHeader + "a,0,\n"), sequences));
  CHECK(sequences.with_phases().empty());
  CHECK(sequences.without_phase_count() == 1);
}

TEST_CASE_FIXTURE(Fixture, "errors have line and column") {
  const std::string runs = "column phase_runs(phase:length): ";
  CHECK(bad("") == "line 1: the file is empty");
  CHECK(bad("timestamp,pod.id\n") ==
        "line 1: column phase_runs: is missing: these are not phase sequences; omit --sequences "
        "to read telemetry");
  CHECK(bad("exec,exec,phase_runs\n") == "line 1: column exec: appears twice");
  CHECK(bad("exec,\"phase_runs\n") == "line 1: column (header): a quote does not end");
  CHECK(bad(kHeader + "a,1,1:1\nb,2\n") == "line 3: has 2 fields, not 3");
  CHECK(bad(kHeader + "a,1,\"1:1\n") == "line 2: column (row): a quote does not end");
  CHECK(bad(kHeader + "a,1,1\n") == "line 2: " + runs + "\"1\" is not PHASE:LENGTH");
  CHECK(bad(kHeader + "a,1,32:1\n") ==
        "line 2: " + runs + "\"32:1\": the phase must be 0..31 or ?");
  CHECK(bad(kHeader + "a,1,-1:1\n") ==
        "line 2: " + runs + "\"-1:1\": the phase must be 0..31 or ?");
  CHECK(bad(kHeader + "a,0,1:0\n") ==
        "line 2: " + runs + "\"1:0\": the length must be 1..1000000000");
  CHECK(bad(kHeader + "a,0,1:1000000001\n") ==
        "line 2: " + runs + "\"1:1000000001\": the length must be 1..1000000000");
  CHECK(bad(kHeader + "a,0,1:2:3\n") ==
        "line 2: " + runs + "\"1:2:3\": the length must be 1..1000000000");
  CHECK(bad(kHeader + "a,9,1:4 2:4\n") ==
        "line 2: column n_samples: is 9, but the runs add up to 8");
  CHECK(bad(kHeader + "a,many,1:4\n") == "line 2: column n_samples: \"many\" is not a count");
  CHECK(bad(kHeader + "a,1,\x1b[31m\n") ==
        "line 2: " + runs + "\"\\x1b[31m\" is not PHASE:LENGTH");
  CHECK(bad(kHeader + std::string(kMaxLineBytes + 1, 'x')) ==
        "line 2: longer than 65536 bytes");
}

TEST_CASE_FIXTURE(Fixture, "a missing file and a folder are errors that name them") {
  PhaseSequences sequences;
  const Status missing = read_phase_sequences(folder.path("none"), sequences);
  REQUIRE(!missing);
  CHECK(missing.error().kind == ErrorKind::not_found);
  CHECK(!read_phase_sequences(folder.path(""), sequences));
}

TEST_CASE_FIXTURE(Fixture, "a damaged file gives valid sequences or an error that names it") {
  const std::string text = kHeader + "a,7,1:4 3:2 ?:1\n\"b\",31,31:31\nc,12,0:1 1:10 0:1\n";
  Random random(17);
  std::size_t read = 0, refused = 0;
  for (int round = 0; round < 500; ++round) {
    std::string damaged = text;
    for (int i = 0; i < 3; ++i)
      damaged[random.below(damaged.size())] = static_cast<char>(random.below(256));
    PhaseSequences sequences;
    const std::string path = folder.write("f.csv", damaged);
    if (const Status status = read_phase_sequences(path, sequences); !status) {
      ++refused;
      CHECK(status.error().text.starts_with(path + ": "));
      continue;
    }
    ++read;
    for (const PhaseSequence& sequence : sequences.with_phases())
      for (const PhaseRun& run : sequence.runs) {
        CHECK((run.phase >= 0 && run.phase <= kUnknownPhase));
        CHECK(run.length >= 1);
      }
  }
  CHECK(read > 0);
  CHECK(refused > 0);
}
