#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/model/allocated.h"
#include "tests/model/temporary_folder.h"
#include "tests/model/test_data.h"
#include "traces/trace.h"

using namespace cgphase;

namespace {

const std::string kForeignHeader = "timestamp,service,pod.id,cpu.usage.cores,"
                                   "cpu.usage.pct.container.requested,mem.current,label\n";

// Rows without limits and host, of `executions` in turns.
std::string foreign_rows(int rows, int executions) {
  std::string text = kForeignHeader;
  for (int i = 0; i < rows; ++i) {
    const int cores = 1 + (i * 7) % 13;
    text += std::to_string(100 + i) + ",s,e" + std::to_string(i % executions) + "," +
            std::to_string(cores) + "," + std::to_string(cores * 25 + i % 3) + "," +
            std::to_string(1000 + (i * 31) % 977) + ",l" + std::to_string(i % 4) + "\n";
  }
  return text;
}

// Rows with all columns, as `record` writes them.
std::string own_rows(int rows) {
  std::string text =
      "timestamp,pod.id,cpu.num.cores,host.memory,cpu.limit.cores,mem.limit,cpu.usage.usec,"
      "memory.anon,label\n";
  for (int i = 0; i < rows; ++i)
    text += std::to_string(100 + i) + ",/job,8,16000000000,2,4000000000," +
            std::to_string(500'000LL * i) + "," + std::to_string(1'000'000 + i % 500) + ",idle\n";
  return text;
}

// The content of a trace, one line per row, execution by execution.
std::string reported(const Execution& execution) {
  std::string text = execution.id + "|" + execution.service + "\n";
  for (const TraceRow& row : execution.rows)
    text += std::to_string(row.line) + "|" + std::to_string(row.time.time_since_epoch().count()) +
            "|" + std::to_string(row.wall_time.time_since_epoch().count()) + "|" + row.label +
            "|" + std::to_string(row.sample.cpu.usage_usec.value_or(0)) + "|" +
            std::to_string(row.sample.limits.cpu_cores().value_or(Cores{-1}).value) + "|" +
            std::to_string(row.sample.memory_current.value_or(Bytes{}).value) + "\n";
  return text;
}

// Collects the rows as the reader returns them one by one.
std::vector<Execution> streamed(TraceReader& reader) {
  std::vector<Execution> executions;
  TraceRow row;
  for (Result<bool> more = reader.next(row); more && *more; more = reader.next(row)) {
    if (reader.index() == executions.size()) executions.push_back({reader.execution(), {}});
    // The header of an execution is complete with its first row and never changes.
    CHECK(reader.execution().original == executions[reader.index()].original);
    CHECK(reader.execution().host.cpu_cores == executions[reader.index()].host.cpu_cores);
    executions[reader.index()].rows.push_back(row);
  }
  return executions;
}

void check_streams_as_collected(const std::string& path) {
  CAPTURE(path);
  const Result<Trace> whole = read_trace(path);
  REQUIRE(whole);
  Result<TraceReader> reader = TraceReader::open(path);
  REQUIRE(reader);
  const std::vector<Execution> executions = streamed(*reader);
  CHECK(reader->crc() == whole->crc);
  REQUIRE(executions.size() == whole->executions.size());
  REQUIRE(reader->executions().size() == executions.size());
  for (std::size_t i = 0; i < executions.size(); ++i) {
    CHECK(reported(executions[i]) == reported(whole->executions[i]));
    CHECK(executions[i].original == whole->executions[i].original);
    CHECK(executions[i].host.memory == whole->executions[i].host.memory);
  }
}

}  // namespace

TEST_CASE("streamed rows equal the collected trace, for packed and interleaved executions") {
  const TemporaryFolder folder;
  std::string text = foreign_rows(500, 7);
  check_streams_as_collected(folder.write("t.csv", text));
  check_streams_as_collected(folder.write_gzip("t.csv.gz", text));
  for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 2))
    text.insert(at, "\r");
  check_streams_as_collected(folder.write("crlf.csv", text));
  check_streams_as_collected(folder.write("own.csv", own_rows(100)));
}

TEST_CASE("every trace of the test data and of the public data streams as it is collected") {
  std::vector<std::string> folders{CGPHASE_SOURCE_DIR "/tests/data"};
  if (const std::string data = test_data("."); !data.empty()) folders.push_back(data);
  int traces = 0;
  for (const std::string& folder : folders)
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      const std::string path = entry.path();
      if (!path.ends_with(".csv") && !path.ends_with(".csv.gz")) continue;
      if (!TraceReader::open(path)) continue;  // tables that are not traces
      check_streams_as_collected(path);
      ++traces;
    }
  CHECK(traces >= 18);
}

TEST_CASE("limit and host from later rows are available with the first row") {
  const TemporaryFolder folder;
  Result<TraceReader> reader = TraceReader::open(folder.write(
      "t.csv", kForeignHeader + "1,s,a,0.041,1,500,\n2,s,b,1,50,70,\n3,s,a,2.048,50,900,\n"
                                "4,s,a,4.096,100,20,\n"));
  REQUIRE(reader);
  TraceRow row;
  REQUIRE(reader->next(row).value());
  CHECK(reader->execution().id == "a");
  CHECK(reader->execution().original.cpu_cores()->value == doctest::Approx(4.096));
  CHECK(row.sample.limits == reader->execution().original);
  CHECK(reader->execution().host.cpu_cores == 4.096);
  CHECK(reader->execution().host.memory.value == 900);
  REQUIRE(reader->next(row).value());
  CHECK(reader->index() == 1);
  CHECK(reader->execution().host.memory.value == 70);
  CHECK(row.sample.limits.cpu_cores()->value == doctest::Approx(2));
}

TEST_CASE("a host from a later cell is available with the first row") {
  const TemporaryFolder folder;
  Result<TraceReader> reader = TraceReader::open(folder.write(
      "t.csv", "timestamp,cpu.num.cores,host.memory,cpu.usage.usec\n1,,,5\n2,6,,7\n3,8,99,9\n"));
  REQUIRE(reader);
  TraceRow row;
  REQUIRE(reader->next(row).value());
  CHECK(reader->execution().host.cpu_cores == 6);
  CHECK(reader->execution().host.memory.value == 99);
}

TEST_CASE("a derived CPU limit is the median of the first usable rows, up to a maximum") {
  const TemporaryFolder folder;
  std::string text = "timestamp,cpu.usage.cores,cpu.usage.pct.container.requested\n";
  const auto add = [&](std::size_t count, const char* cells) {
    for (std::size_t i = 0; i < count; ++i) text += "1," + std::string(cells) + "\n";
  };
  add(kMaxLimitRows, "1,50");      // 2 cores
  add(3 * kMaxLimitRows, "4,50");  // 8 cores, too late
  const Result<Trace> trace = read_trace(folder.write("t.csv", text));
  REQUIRE(trace);
  CHECK(trace->executions[0].original.cpu_cores()->value == doctest::Approx(2));
}

TEST_CASE("a bad row gives the same error before any row if the whole file must be read first") {
  const TemporaryFolder folder;
  const std::string path = folder.write("t.csv", foreign_rows(50, 2) + "oops\n");
  const Result<Trace> whole = read_trace(path);
  Result<TraceReader> reader = TraceReader::open(path);
  REQUIRE(reader);
  TraceRow row;
  const Result<bool> more = reader->next(row);
  REQUIRE(!more);
  CHECK(more.error().text == path + ": line 52: has 1 fields, not 7");
  CHECK(whole.error().text == more.error().text);
}

TEST_CASE("a trace from a pipe reads as from a file, also if it is read twice") {
  const TemporaryFolder folder;
  const std::string text = foreign_rows(20'000, 3), pipe = folder.path("pipe");
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << text; });
  const Result<Trace> piped = read_trace(pipe);
  writer.join();
  const Result<Trace> plain = read_trace(folder.write("t.csv", text));
  REQUIRE(plain);
  if (!piped) FAIL(piped.error().text);
  CHECK(piped->crc == plain->crc);
  REQUIRE(piped->executions.size() == 3);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(reported(piped->executions[i]) == reported(plain->executions[i]));
    CHECK(piped->executions[i].original == plain->executions[i].original);
  }
}

TEST_CASE("a device is refused, because it may never end") {
  const auto reader = TraceReader::open("/dev/zero");
  REQUIRE(!reader);
  CHECK(reader.error().kind == ErrorKind::invalid);
  CHECK(reader.error().text == "/dev/zero: is a device, not a trace");
}

TEST_CASE("a trace can be read again from its beginning after its file was removed") {
  const TemporaryFolder folder;
  const std::string path = folder.write_gzip("t.csv.gz", foreign_rows(100, 2));
  Result<TraceReader> reader = TraceReader::open(path);
  REQUIRE(reader);
  std::filesystem::remove(path);
  const std::vector<Execution> first = streamed(*reader);
  Result<TraceReader> again = reader->again();
  REQUIRE(again);
  const std::vector<Execution> second = streamed(*again);
  REQUIRE(first.size() == 2);
  REQUIRE(second.size() == 2);
  CHECK(reported(first[1]) == reported(second[1]));
}

TEST_CASE("the execution limit accepts the last execution and refuses one more") {
  const TemporaryFolder folder;
  std::string text = "timestamp,pod.id\n";
  for (std::size_t i = 0; i < kMaxTraceExecutions; ++i) text += "1,e" + std::to_string(i) + "\n";
  const auto read = [&] {
    Result<TraceReader> reader = TraceReader::open(folder.write("t.csv", text));
    REQUIRE(reader);
    return read_rows(*reader, [](const TraceRow&) { return Status(); });
  };
  CHECK(read());
  text += "2,e0\n3,one more\n";
  const Status refused = read();
  REQUIRE(!refused);
  CHECK(refused.error().text == folder.path("t.csv") + ": line 65539: column pod.id: more than " +
                                    std::to_string(kMaxTraceExecutions) + " executions");
}

TEST_CASE("memory of a reader does not grow with the rows") {
  const TemporaryFolder folder;
  for (const bool foreign : {false, true}) {
    CAPTURE(foreign);
    std::vector<std::size_t> most;
    for (const int rows : {20'000, 80'000}) {
      const std::string text = foreign ? foreign_rows(rows, 3) : own_rows(rows);
      const std::string path = folder.write("t.csv", text);
      test::PeakAllocation allocation;
      Result<TraceReader> reader = TraceReader::open(path);
      REQUIRE(reader);
      int seen = 0;
      REQUIRE(read_rows(*reader, [&](const TraceRow&) {
        ++seen;
        return Status();
      }));
      CHECK(seen == rows);
      most.push_back(allocation.bytes());
    }
    // A row of a collected trace needs hundreds of bytes.
    CHECK(most[1] < most[0] + 60'000);
  }
}
