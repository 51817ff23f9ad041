#include "traces/trace_bounds.h"

#include <doctest/doctest.h>

#include "tests/model/temporary_folder.h"
#include "traces/trace.h"

using namespace cgphase;

namespace {

constexpr double kNoJitter = 0, kPerSecond = 100;

struct BoundedRows {
  std::vector<TraceRow> rows;
  std::vector<std::string> notes;
};

BoundedRows bounded(const std::string& text, const TraceOptions& options = {}) {
  const TemporaryFolder folder;
  Result<TraceReader> reader = TraceReader::open(folder.write("t.csv", text), options);
  REQUIRE_MESSAGE(reader, reader.error().text);
  Result<Trace> trace = collect_rows(*reader);
  REQUIRE_MESSAGE(trace, trace.error().text);
  return {std::move(trace->executions.at(0).rows), reader->notes()};
}

Counter cpu_of(const TraceRow& row) { return row.sample.cpu.usage_usec; }

}  // namespace

TEST_CASE("a counter value is accepted at the largest rate and refused above it") {
  CounterGuard guard;
  CHECK(guard.takes(1'000'000, 0, kPerSecond, kNoJitter));  // every first value is accepted
  CHECK(guard.takes(1'000'100, 1, kPerSecond, kNoJitter));
  CHECK_FALSE(guard.takes(1'000'201, 2, kPerSecond, kNoJitter));
  CHECK(guard.takes(1'000'300, 3, kPerSecond, kNoJitter));
  CHECK(guard.takes(5, 4, kPerSecond, kNoJitter));  // the counter restarted
}

TEST_CASE("a counter that jumped and continues from there is accepted again") {
  CounterGuard guard;
  CHECK(guard.takes(10, 0, kPerSecond, kNoJitter));
  CHECK_FALSE(guard.takes(1'000'000, 1, kPerSecond, kNoJitter));
  CHECK(guard.takes(1'000'050, 2, kPerSecond, kNoJitter));
}

TEST_CASE("CPU use above the host's processors is absent and counted") {
  const BoundedRows read = bounded("timestamp,cpu.num.cores,cpu.usage.cores\n1,4,1\n2,4,5\n"
                                  "3,4,1.7e9\n4,4,5.01\n5,4,-1\n6,4,inf\n7,4,1\n",
                                  {.columns = {"cpu.usage.cores"}});
  const auto has = [&](std::size_t row) { return read.rows[row].columns[0].has_value(); };
  CHECK((has(0) && has(1) && has(6)));
  for (const std::size_t row : {2U, 3U, 4U, 5U}) CHECK_FALSE(has(row));
  REQUIRE(read.notes.size() == 1);
  CHECK(read.notes[0] == "4 impossible values ignored, the first: cpu.usage.cores 1.7e+09 at line "
                         "4, above the host's 4 cores");
}

TEST_CASE("a note names one impossible value with its line and its bound") {
  CHECK(bounded("timestamp,cpu.num.cores,cpu.usage.cores\n1,1,0.5\n2,1,2.47\n").notes ==
        std::vector<std::string>{"1 impossible value ignored: cpu.usage.cores 2.47 at line 3, "
                                 "above the host's 1 core"});
  CHECK(bounded("timestamp,host.memory,mem.current\n1,1000,999\n2,1000,2000\n").notes ==
        std::vector<std::string>{"1 impossible value ignored: mem.current 2000 at line 3, above "
                                 "the host's 1000 bytes"});
  CHECK(bounded("timestamp,mem.current\n1,999\n2,-5\n").notes ==
        std::vector<std::string>{"1 impossible value ignored: mem.current -5 at line 3, below "
                                 "zero"});
}

TEST_CASE("without a host, the bound comes from the limit, else from any possible host") {
  const auto notes = [](const std::string& text) { return bounded(text).notes.size(); };
  CHECK(notes("timestamp,cpu.limit.cores,cpu.usage.cores\n1,2,128\n") == 0);
  CHECK(notes("timestamp,cpu.limit.cores,cpu.usage.cores\n1,2,129\n") == 1);
  CHECK(notes("timestamp,cpu.usage.cores\n1,8192\n") == 0);
  CHECK(notes("timestamp,cpu.usage.cores\n1,8193\n") == 1);
  CHECK(notes("timestamp,mem.limit,mem.current\n1,1000,64000\n") == 0);
  CHECK(notes("timestamp,mem.limit,mem.current\n1,1000,64001\n") == 1);
  CHECK(notes("timestamp,mem.current\n1,4503599627370496\n") == 0);
  CHECK(notes("timestamp,mem.current\n1,4503599627370497\n") == 1);
}

TEST_CASE("CPU time that exceeds the interval is absent, as after a clock was set back") {
  const BoundedRows read = bounded(
      "timestamp,cpu.num.cores,cpu.usage.usec,interval\n"
      "10.0,1,0,\n11.0,1,900000,1\n11.4,1,1888000,0.4\n12.4,1,2700000,1\n");
  CHECK(cpu_of(read.rows[1]));
  CHECK_FALSE(cpu_of(read.rows[2]));
  CHECK(cpu_of(read.rows[3]) == 2'700'000);
  CHECK(read.notes.size() == 1);
}

TEST_CASE("timestamps in whole seconds may hide nearly a second of the interval") {
  const BoundedRows read = bounded("timestamp,cpu.num.cores,cpu.usage.usec\n10,1,0\n11,1,1900000\n"
                                  "12,1,9900000\n");
  CHECK(cpu_of(read.rows[1]) == 1'900'000);
  CHECK_FALSE(cpu_of(read.rows[2]));
}

TEST_CASE("counters of every kind jump at most as far as a host can count") {
  for (const char* column : {"memory.pgfault", "io.rbytes", "memory.pressure.some.usec",
                             "cpu.user.usec", "net.rx.bytes", "switches.voluntary"}) {
    CAPTURE(column);
    const BoundedRows read =
        bounded(std::string("timestamp,") + column + "\n1,1000\n2,2000\n3,9000000000000000000\n"
                                                       "4,3000\n");
    CHECK(read.notes.size() == 1);
  }
}

TEST_CASE("a negative field of memory.stat is absent, and need does not wrap around") {
  const BoundedRows read = bounded(
      "timestamp,host.memory,memory.anon,memory.shmem,memory.inactive_file\n"
      "1,17179869184,1000,18446744073709547520,18446744073709547520\n");
  CHECK_FALSE(read.rows[0].sample.memory.shmem_bytes);
  CHECK_FALSE(read.rows[0].sample.memory.inactive_file_bytes);
  CHECK(memory_need(read.rows[0].sample) == Bytes{1000});
  CHECK(read.notes.size() == 1);
}
