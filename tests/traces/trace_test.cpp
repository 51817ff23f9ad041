#include "traces/trace.h"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/model/temporary_folder.h"
#include "tests/model/test_data.h"
#include "traces/text_lines.h"

using namespace cgphase;

namespace {

constexpr std::uint64_t kMost = 9'200'000'000'000'000'000U;
const std::string kOwnHeader = "timestamp,service,pod.id,cpu.num.cores,cpu.usage.cores,mem.current,"
                            "mem.limit,mem.working.set,label\n";

Result<Trace> read_text(const std::string& text, const TraceOptions& options = {}) {
  const TemporaryFolder folder;
  return read_trace(folder.write("t.csv", text), options);
}

std::string refused(const std::string& text, const TraceOptions& options = {}) {
  const Result<Trace> trace = read_text(text, options);
  REQUIRE(!trace.has_value());
  CHECK(trace.error().kind == ErrorKind::invalid);
  return trace.error().text.substr(trace.error().text.find("t.csv"));
}

}  // namespace

TEST_CASE("rows become executions by pod.id, in file order") {
  const Result<Trace> trace = read_text(kOwnHeader +
                                        "100,s,b,4,0.5,1000,4096,800,train\n"
                                        "100,s,a,4,0.5,1000,4096,800,idle\n"
                                        "101,s,b,4,1.5,1000,4096,900,train\n");
  REQUIRE(trace);
  REQUIRE(trace->executions.size() == 2);
  const Execution& b = trace->executions[0];
  CHECK(b.id == "b");
  CHECK(b.service == "s");
  REQUIRE(b.rows.size() == 2);
  CHECK(b.rows[1].line == 4);
  CHECK(b.rows[1].label == "train");
  CHECK(b.rows[1].time.time_since_epoch() == std::chrono::seconds(1));
  CHECK(b.rows[1].wall_time.time_since_epoch() == std::chrono::seconds(101));
  CHECK(*b.rows[1].sample.cpu.usage_usec - *b.rows[0].sample.cpu.usage_usec == 1'500'000);
  CHECK(b.rows[1].sample.memory_current->value == 1000);
  CHECK(memory_need(b.rows[1].sample)->value == 900);
  CHECK(b.original.memory_bytes()->value == 4096);
  CHECK(b.host.cpu_cores == 4);
  CHECK(b.rows[0].sample.id != trace->executions[1].rows[0].sample.id);
}

TEST_CASE("need of a row is computed as of a sample: unexplained charged memory is in it") {
  const Result<Trace> trace = read_text(
      "timestamp,pod.id,mem.current,memory.anon,memory.file,memory.inactive_file,memory.swap\n"
      "1,a,70000,1000,9000,9000,500\n"
      "2,a,10000,1000,9000,9000,\n"
      "3,a,70000,,9000,9000,\n"
      "4,a,,1000,9000,9000,\n");
  REQUIRE(trace);
  const auto& rows = trace->executions[0].rows;
  CHECK(memory_need(rows[0].sample) == Bytes{61'500});
  CHECK(memory_need(rows[1].sample) == Bytes{1000});
  CHECK(memory_need(rows[2].sample) == Bytes{61'000});
  CHECK(memory_need(rows[3].sample) == Bytes{1000});
}

TEST_CASE("CRLF and quotes are accepted, and blank lines are skipped") {
  const Result<Trace> trace =
      read_text("\"timestamp\",\"pod.id\"\r\n\"1\",\"a \"\"b\"\", c\"\r\n\r\n2,\"a \"\"b\"\", c\"");
  REQUIRE(trace);
  REQUIRE(trace->executions.size() == 1);
  CHECK(trace->executions[0].id == "a \"b\", c");
  CHECK(trace->executions[0].rows.size() == 2);
}

TEST_CASE("an unnamed first index column may be missing in the header") {
  const Result<Trace> missing = read_text("timestamp,pod.id\n1,50,x\n2,51,x\n");
  REQUIRE(missing);
  CHECK(missing->executions[0].rows[0].wall_time.time_since_epoch() == std::chrono::seconds(50));
  const Result<Trace> unnamed = read_text("\"\",timestamp,pod.id\n1,50,x\n");
  REQUIRE(unnamed);
  CHECK(unnamed->executions[0].rows[0].wall_time.time_since_epoch() == std::chrono::seconds(50));
}

TEST_CASE("gzip reads like plain text, and the CRC covers the uncompressed text") {
  const std::string text = kOwnHeader + "100,s,b,4,0.5,1000,4096,800,train\n";
  const TemporaryFolder folder;
  const Result<Trace> plain = read_trace(folder.write("t.csv", text));
  const Result<Trace> packed = read_trace(folder.write_gzip("t.csv.gz", text));
  REQUIRE(plain);
  REQUIRE(packed);
  CHECK(packed->executions[0].rows.size() == 1);
  CHECK(packed->crc == plain->crc);
}

TEST_CASE("a truncated gzip file is refused, not read as a shorter one") {
  std::string text = kOwnHeader;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i * 7919) + ",s,b,4,0.5,1000,4096,800,x\n";
  const TemporaryFolder folder;
  const std::string path = folder.write_gzip("t.csv.gz", text);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  const Result<Trace> trace = read_trace(path);
  REQUIRE(!trace);
  CHECK(trace.error().kind == ErrorKind::invalid);
}

TEST_CASE("empty and NaN cells are absent values") {
  const Result<Trace> trace = read_text(kOwnHeader + "100,s,b,,NaN,,,,\n");
  REQUIRE(trace);
  const Sample& sample = trace->executions[0].rows[0].sample;
  CHECK(!sample.cpu.usage_usec);
  CHECK(!sample.memory_current);
  CHECK(!memory_need(sample));
  CHECK(sample.limits.memory_max);  // the column exists and means no limit
  CHECK(!sample.limits.memory_bytes());
}

TEST_CASE("an unknown column is kept on request, and is absent if the file lacks it") {
  TraceOptions options;
  options.columns = {"gpu.load", "other"};
  const Result<Trace> trace = read_text("timestamp,gpu.load\n1,-0.5\n", options);
  REQUIRE(trace);
  const auto& columns = trace->executions[0].rows[0].columns;
  REQUIRE(columns.size() == 2);
  CHECK(columns[0] == -0.5);
  CHECK(!columns[1]);
}

TEST_CASE("columns of other tools replace ours if the file lacks them") {
  const Result<Trace> trace = read_text("timestamp,threads,io.rchar,io.wchar\n1,7,100,20\n");
  REQUIRE(trace);
  const Sample& sample = trace->executions[0].rows[0].sample;
  CHECK(sample.pids_current == 7);
  CHECK(sample.io.read_bytes == 100);
  CHECK(sample.io.write_bytes == 20);
}

TEST_CASE("our column is never mixed with its replacement, even if its cell is empty") {
  const Result<Trace> trace =
      read_text("timestamp,io.rchar,io.rbytes,threads,pids\n1,100,5,7,2\n2,200,,8,\n");
  REQUIRE(trace);
  const std::vector<TraceRow>& rows = trace->executions[0].rows;
  CHECK(rows[0].sample.io.read_bytes == 5);
  CHECK(rows[0].sample.pids_current == 2);
  CHECK_FALSE(rows[1].sample.io.read_bytes);
  CHECK_FALSE(rows[1].sample.pids_current);
  CHECK_FALSE(rows[0].sample.io.write_bytes);
}

TEST_CASE("a bad cell is refused with file, line, column and reason") {
  CHECK(refused(kOwnHeader + "100,s,b,4,0.5,1000,4096,800,x\n101,s,b,4,fast,1000,4096,800,x\n") ==
        "t.csv: line 3: column cpu.usage.cores: \"fast\" is not a number");
  CHECK(refused(kOwnHeader + ",s,b,4,1,1000,4096,800,x\n") ==
        "t.csv: line 2: column timestamp: is missing");
  CHECK(refused(kOwnHeader + "-1,s,b,4,1,1000,4096,800,x\n") ==
        "t.csv: line 2: column timestamp: is before 1970");
}

TEST_CASE("time may run backwards between executions but not within one") {
  const std::string header = "timestamp,pod.id,interval\n";
  CHECK(refused(header + "5,a,\n6,a,1\n2,a,\n") ==
        "t.csv: line 4: column timestamp: runs backwards: it is before that of the row above with "
        "the same pod.id; sort the rows by time, or give later rows another pod.id");
  CHECK(read_text(header + "5,a,\n2,b,\n6,a,1\n3,b,1\n"));
  // The clock was set back by less than the tolerance of timestamps, and the interval column is
  // right.
  CHECK(read_text(header + "5,a,\n4.75,a,1\n"));
  CHECK(read_text(header + "5,a,\n5,a,\n"));
}

TEST_CASE("a counter at its limit is read, and absent above it") {
  const auto usage = [](const std::string& cell) {
    const Result<Trace> trace = read_text("timestamp,cpu.usage.usec\n1," + cell + "\n");
    REQUIRE(trace);
    return trace->executions[0].rows[0].sample.cpu.usage_usec;
  };
  CHECK(usage("9200000000000000000") == 9'200'000'000'000'000'000U);
  CHECK_FALSE(usage("9200000000000000001"));
  CHECK_FALSE(usage("18446744073709551615"));
}

TEST_CASE("a row with a missing or an additional field is refused") {
  CHECK(refused(kOwnHeader + "100,s,b,4\n") == "t.csv: line 2: has 4 fields, not 9");
  CHECK(refused("timestamp,pod.id\n1,a\n2,a,3\n") == "t.csv: line 3: has 3 fields, not 2");
}

TEST_CASE("a quote that is not closed is refused") {
  CHECK(refused(kOwnHeader + "100,\"s,b,4,1,1000,4096,800,x\n") ==
        "t.csv: line 2: column (row): a quote does not end");
}

TEST_CASE("an empty file, a header without timestamp and a column named twice are refused") {
  CHECK(refused("") == "t.csv: line 1: the file is empty");
  CHECK(refused("a,b\n") == "t.csv: line 1: column timestamp: is missing: this is not a trace "
                            "(docs/internals/trace-format.md); found a, b");
  CHECK(refused("timestamp,b,b\n") == "t.csv: line 1: column b: appears twice");
}

TEST_CASE("a header alone is a trace without executions") {
  const Result<Trace> trace = read_text(kOwnHeader);
  REQUIRE(trace);
  CHECK(trace->executions.empty());
}

TEST_CASE("a missing file is not found") {
  const Result<Trace> trace = read_trace("/nonexistent/t.csv");
  REQUIRE(!trace);
  CHECK(trace.error().kind == ErrorKind::not_found);
}

TEST_CASE("the row limit accepts the last row and refuses one more") {
  TraceOptions options;
  options.max_rows = 2;
  CHECK(read_text("timestamp\n1\n2\n", options));
  CHECK(!read_text("timestamp\n1\n2\n3\n", options));
}

TEST_CASE("the column limit accepts the last column and refuses one more") {
  std::string header = "timestamp";
  for (std::size_t i = 1; i < kMaxTraceColumns; ++i) header += ",c" + std::to_string(i);
  CHECK(read_text(header + "\n"));
  CHECK(!read_text(header + ",more\n"));
}

TEST_CASE("the line limit accepts the last byte and refuses one more") {
  const std::string row = "1," + std::string(kMaxLineBytes - 2, 'x');
  CHECK(read_text("timestamp,pod.id\n" + row + "\n"));
  CHECK(!read_text("timestamp,pod.id\n" + row + "x\n"));
  CHECK(!read_text(std::string(10 * kMaxLineBytes, 'x')));
}

TEST_CASE("the CPU limit is derived from usage and its percentage if no column has it") {
  const Result<Trace> trace = read_text(
      "timestamp,cpu.usage.cores,cpu.usage.pct.container.requested\n"
      "1,0.041,1\n2,2.048,50\n3,4.096,100\n");
  REQUIRE(trace);
  REQUIRE(trace->executions[0].original.cpu_cores());
  CHECK(trace->executions[0].original.cpu_cores()->value == doctest::Approx(4.096));
}

TEST_CASE("the interval is the time base if it agrees with rounded timestamps") {
  const Result<Trace> trace = read_text("timestamp,cpu.usage,interval\n10,0,\n11,500000000,0.75\n"
                                        "12,100,500\n");
  REQUIRE(trace);
  const auto& rows = trace->executions[0].rows;
  CHECK(rows[1].time - rows[0].time == std::chrono::milliseconds(750));
  CHECK(rows[2].time - rows[1].time == std::chrono::seconds(1));
  CHECK(*rows[1].sample.cpu.usage_usec == 500'000);
}

TEST_CASE("a trace without limit and host uses its largest use as the scale") {
  const Result<Trace> trace = read_text("timestamp,cpu.usage.cores,mem.current\n1,2,100\n2,3,50\n");
  REQUIRE(trace);
  CHECK(trace->executions[0].host.cpu_cores == 3);
  CHECK(trace->executions[0].host.memory.value == 100);
  CHECK(!trace->executions[0].original.cpu_cores());
  CHECK_FALSE(trace->executions[0].host_cores_told);
  CHECK_FALSE(trace->executions[0].host_memory_told);
}

TEST_CASE("the largest use comes from the counter if no column has cores") {
  const auto host_of = [](const std::string& text) {
    const Result<Trace> trace = read_text(text);
    REQUIRE(trace);
    CHECK_FALSE(trace->executions[0].host_cores_told);
    return trace->executions[0].host.cpu_cores;
  };
  // 2, 3 and 0.5 cores. The counter restarted before the last row, which has no use then.
  CHECK(host_of("timestamp,cpu.usage.usec\n10,500000\n11,2500000\n13,8500000\n15,9500000\n"
                "16,0\n") == 3);
  CHECK(host_of("timestamp,cpu.usage\n10,9000000000\n11,2000000000\n13,6000000000\n") == 3);
  // An empty cell counts as a missing column.
  CHECK(host_of("timestamp,cpu.usage.cores,cpu.usage.usec\n10,,0\n11,,1500000\n12,1,2500000\n") ==
        1.5);
  CHECK(host_of("timestamp,cpu.usage.usec\n10,5\n") == 0);
}

TEST_CASE("a host with as many cores as Linux supports is accepted, with more it is ignored") {
  const Result<Trace> most = read_text("timestamp,cpu.num.cores\n1,8192\n");
  REQUIRE(most);
  CHECK(most->executions[0].host.cpu_cores == 8192);
  CHECK(most->executions[0].host_cores_told);
  const Result<Trace> more = read_text("timestamp,cpu.num.cores\n1,8193\n");
  REQUIRE(more);
  CHECK_FALSE(more->executions[0].host_cores_told);
}

TEST_CASE("the host may be known per resource and per execution") {
  const Result<Trace> trace = read_text(
      "timestamp,pod.id,cpu.num.cores,cpu.usage.cores,mem.current\n"
      "1,a,,1,100\n2,a,4,1,100\n2,b,,2,50\n");
  REQUIRE(trace);
  CHECK(trace->executions[0].host_cores_told);
  CHECK(trace->executions[0].host.cpu_cores == 4);
  CHECK_FALSE(trace->executions[0].host_memory_told);
  CHECK_FALSE(trace->executions[1].host_cores_told);
  CHECK(trace->executions[1].host.cpu_cores == 2);
}

TEST_CASE("max in a limit column is no number and no error") {
  const Result<Trace> trace = read_text("timestamp,memory.high,pids.max\n1,max,12\n",
                                        {.columns = {"memory.high", "pids.max"}});
  REQUIRE(trace);
  CHECK_FALSE(trace->executions[0].rows[0].columns[0]);
  CHECK(trace->executions[0].rows[0].columns[1] == 12);
  CHECK_FALSE(read_text("timestamp,memory.high\n1,most\n", {.columns = {"memory.high"}}));
}

TEST_CASE("every notation of no limit is absent") {
  const auto limits = [](const std::string& cell) {
    const Result<Trace> trace = read_text("timestamp,mem.limit,cpu.limit.cores,memory.high\n1," +
                                              cell + "," + cell + "," + cell + "\n",
                                          {.columns = {"mem.limit", "memory.high"}});
    REQUIRE_MESSAGE(trace, trace.error().text);
    return trace->executions[0];
  };
  for (const char* none : {"9223372036854771712", "9.22e18", "9.223372036854772e+18",
                           "18446744073709551615", "4611686018427387904", "-1", "0", "max", "Max",
                           "+Inf", "inf", "Infinity", "unlimited", "none", "null", "NaN", ""}) {
    CAPTURE(none);
    const Execution execution = limits(none);
    CHECK(execution.original.memory_max);
    CHECK_FALSE(execution.original.memory_bytes());
    CHECK_FALSE(execution.original.cpu_cores());
    CHECK_FALSE(execution.rows[0].columns[0]);
    CHECK_FALSE(execution.rows[0].columns[1]);
  }
  CHECK(limits("4611686018427387000").original.memory_bytes());
  CHECK(limits("1073741824").original.memory_bytes() == Bytes{kGiB});
}

namespace {

Sample full_sample(std::uint64_t step) {
  Sample sample;
  sample.id = {1, 7};
  sample.cpu.usage_usec = 1'000'000 * step;
  sample.cpu.nr_throttled = 3 * step;
  sample.memory_current = Bytes{900'000 + step};
  sample.memory.anon_bytes = 500'000 + step;
  sample.memory.shmem_bytes = 1000;
  sample.memory.kernel_bytes = 5000;
  sample.memory.slab_reclaimable_bytes = 2000;
  sample.memory.inactive_file_bytes = 100'000;
  sample.memory.pgfault = (std::uint64_t{1} << 60) + step;
  sample.swap_current = Bytes{77};
  sample.io.read_bytes = 4096 * step;
  sample.io.write_bytes = 8192 * step;
  sample.memory_pressure.some.total_usec = 11;
  sample.pids_current = 4;
  return sample;
}

}  // namespace

TEST_CASE("written rows read back as the same samples, limits and labels") {
  ContainerInfo info;
  info.name = "job \x1b[31m,\"x\"";
  info.path = "/a";
  const Sample first = full_sample(1), second = full_sample(3);
  TraceRecord record;
  record.container = &info;
  record.time = WallTime(std::chrono::milliseconds(1'700'000'000'250));
  record.host = {8, Bytes{16 * kGiB}};
  record.original.cpu_max = CpuMax{Microseconds{250'000}};
  record.original.memory_max = MemoryLimit{Bytes{2 * kGiB}};
  record.sample = &first;
  record.label = "train";
  record.label_detail = "epoch1";
  std::string text;
  write_trace_header(text);
  write_trace_row(text, record);
  record.time += std::chrono::milliseconds(1001);
  record.sample = &second;
  record.previous = &first;
  record.interval_seconds = 1.001;
  write_trace_row(text, record);

  const Result<Trace> trace = read_text(text);
  REQUIRE(trace);
  REQUIRE(trace->executions.size() == 1);
  const Execution& execution = trace->executions[0];
  CHECK(execution.id == "/a");
  CHECK(execution.host.cpu_cores == 8);
  CHECK(execution.host.memory.value == 16 * kGiB);
  CHECK(execution.original == record.original);
  REQUIRE(execution.rows.size() == 2);
  const TraceRow& row = execution.rows[1];
  CHECK(row.time.time_since_epoch() == std::chrono::milliseconds(1001));
  CHECK(row.label == "train");
  CHECK(row.label_detail == "epoch1");
  CHECK(row.sample.cpu.usage_usec == second.cpu.usage_usec);
  CHECK(row.sample.cpu.nr_throttled == second.cpu.nr_throttled);
  CHECK(row.sample.memory.pgfault == second.memory.pgfault);
  CHECK(row.sample.io.write_bytes == second.io.write_bytes);
  CHECK(row.sample.pids_current == second.pids_current);
  CHECK(row.sample.memory_pressure.some.total_usec == second.memory_pressure.some.total_usec);
  CHECK(!row.sample.memory.file_bytes);
  CHECK(memory_need(row.sample) == memory_need(second));
}

TEST_CASE("a negative value from the kernel is written as absent and reads back") {
  ContainerInfo info;
  Sample first = full_sample(1), second = full_sample(2);
  first.memory.inactive_file_bytes = second.memory.shmem_bytes = 18'446'744'073'709'547'520U;
  second.cpu.usage_usec = 18'446'744'073'709'547'520U;
  second.memory_current = Bytes{18'446'744'073'709'547'520U};
  TraceRecord record{.container = &info, .time = {}, .host = {8, Bytes{16 * kGiB}},
                     .original = {}, .sample = &first, .label = {}, .label_detail = {}};
  std::string text;
  write_trace_header(text);
  write_trace_row(text, record);
  record.previous = &first;
  record.sample = &second;
  record.interval_seconds = 1;
  record.time += std::chrono::seconds(1);
  write_trace_row(text, record);
  CHECK_FALSE(text.contains("18446744073709547520"));
  const TemporaryFolder folder;
  Result<TraceReader> reader = TraceReader::open(folder.write("t.csv", text));
  REQUIRE(reader);
  const Result<Trace> trace = collect_rows(*reader);
  REQUIRE_MESSAGE(trace, trace.error().text);
  CHECK(reader->notes().empty());
  const std::vector<TraceRow>& rows = trace->executions[0].rows;
  CHECK_FALSE(rows[0].sample.memory.inactive_file_bytes);
  CHECK_FALSE(rows[1].sample.memory.shmem_bytes);
  CHECK_FALSE(rows[1].sample.cpu.usage_usec);
  CHECK_FALSE(rows[1].sample.memory_current);
  CHECK(rows[1].sample.memory.anon_bytes == second.memory.anon_bytes);
}

TEST_CASE("AI4DL's columns in a written row are derived from the two samples") {
  ContainerInfo info;
  info.name = "a";
  const Sample first = full_sample(1), second = full_sample(3);
  TraceRecord record;
  record.container = &info;
  record.host = {8, Bytes{16 * kGiB}};
  record.original.cpu_max = CpuMax{Microseconds{400'000}};
  record.sample = &second;
  record.previous = &first;
  record.interval_seconds = 2;
  std::string text;
  write_trace_header(text);
  write_trace_row(text, record);
  TraceOptions options;
  options.columns = {"cpu.usage", "cpu.usage.cores", "cpu.usage.pct",
                     "cpu.usage.pct.container.requested", "mem.working.set"};
  const Result<Trace> trace = read_text(text, options);
  REQUIRE(trace);
  const auto& columns = trace->executions[0].rows[0].columns;
  CHECK(columns[0] == 2e9);
  CHECK(columns[1] == 1.0);
  CHECK(columns[2] == 12.5);
  CHECK(columns[3] == 25.0);
  CHECK(columns[4] == 800'003.0);
}

TEST_CASE("a counter that fell gives no usage in a written row") {
  ContainerInfo info;
  const Sample first = full_sample(3), second = full_sample(1);
  TraceRecord record;
  record.container = &info;
  record.sample = &second;
  record.previous = &first;
  record.interval_seconds = 1;
  std::string text;
  write_trace_header(text);
  write_trace_row(text, record);
  TraceOptions options;
  options.columns = {"cpu.usage"};
  const Result<Trace> trace = read_text(text, options);
  REQUIRE(trace);
  CHECK(!trace->executions[0].rows[0].columns[0]);
}

TEST_CASE("all public traces read, with their rows, executions and CPU limits") {
  struct Expected {
    const char* file;
    std::size_t executions, rows;
    double cpu_limit;
  };
  const Expected files[] = {{"ai4dl/sample.csv", 4, 204, 4.096},
                            {"ai4dl/sample-vr.csv", 1, 2286, 4.096},
                            {"nezha/nezha.csv", 50, 44'548, 0.03},
                            {"supercloud/supercloud.csv", 1, 11'172, 0},
                            {"torch/gpt-a.csv", 1, 212, 2},
                            {"torch/serve-a.csv", 1, 212, 2}};
  for (const Expected& expected : files) {
    const std::string path = test_data(expected.file);
    if (path.empty()) return;
    CAPTURE(path);
    const Result<Trace> trace = read_trace(path);
    if (!trace) FAIL(trace.error().text);
    CHECK(trace->executions.size() == expected.executions);
    std::size_t rows = 0;
    for (const Execution& execution : trace->executions) rows += execution.rows.size();
    CHECK(rows == expected.rows);
    const std::optional<Cores> limit = trace->executions[0].original.cpu_cores();
    CHECK((limit ? limit->value : 0) == doctest::Approx(expected.cpu_limit).epsilon(0.01));
  }
}

TEST_CASE("any sample can be written and read again") {
  ContainerInfo info;
  info.name = "a";
  Sample sample = full_sample(1);
  sample.memory_current = Bytes{UINT64_MAX};
  sample.memory.anon_bytes = UINT64_MAX - 4095;
  sample.memory.pgfault = kMost;
  sample.io.read_bytes = kMost + 1;
  sample.limits.memory_max = MemoryLimit{Bytes{9'223'372'036'854'771'712U}};
  TraceRecord record;
  record.container = &info;
  record.host = {8, Bytes{16 * kGiB}};
  record.original = sample.limits;
  record.sample = &sample;
  std::string text;
  write_trace_header(text);
  write_trace_row(text, record);
  const Result<Trace> trace = read_text(text);
  REQUIRE(trace);
  const Sample& back = trace->executions[0].rows[0].sample;
  CHECK_FALSE(back.memory_current.has_value());
  CHECK_FALSE(back.memory.anon_bytes.has_value());
  CHECK(back.memory.pgfault == kMost);
  CHECK_FALSE(back.io.read_bytes.has_value());
  CHECK_FALSE(trace->executions[0].original.memory_bytes().has_value());
}
