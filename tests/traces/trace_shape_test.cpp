// One trace in the formats that programs and spreadsheets write. Each must read as the plain one.
#include "traces/trace_shape.h"

#include <doctest/doctest.h>

#include <functional>

#include "tests/model/temporary_folder.h"
#include "traces/trace.h"

using namespace cgphase;

namespace {

using Rewrite = std::function<std::string(const std::string&)>;

using Cells = std::vector<std::string>;

const Cells kShapeNames = {"timestamp", "service", "pod.id", "cpu.num.cores", "cpu.usage.cores",
                    "mem.limit", "mem.current", "mem.working.set"};

std::vector<Cells> plain_rows() {
  std::vector<Cells> rows;
  for (int i = 0; i < 20; ++i)
    rows.push_back({std::to_string(1'700'000'000 + i % 10), "svc", i < 10 ? "a" : "b", "4",
                    "0." + std::to_string(1000 + i * 37), "2147483648",
                    i % 5 == 0 ? "" : std::to_string(209'715'200 + i * 4096),
                    std::to_string(200'000'000 + i * 4096)});
  return rows;
}

std::string joined(const Cells& row, const std::string& separator) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) line += (i > 0 ? separator : "") + row[i];
  return line;
}

struct Shape {
  std::string separator = ",", end = "\n", before;
  std::function<void(Cells&)> header = [](Cells&) {}, row = [](Cells&) {};
};

std::string shaped(const Shape& shape) {
  Cells names = kShapeNames;
  shape.header(names);
  std::string text = shape.before + joined(names, shape.separator) + shape.end;
  for (Cells row : plain_rows()) {
    shape.row(row);
    text += joined(row, shape.separator) + shape.end;
  }
  return text;
}

Shape with_column(std::size_t column, const Rewrite& rewrite) {
  Shape shape;
  shape.row = [=](Cells& row) { row[column] = rewrite(row[column]); };
  return shape;
}

struct ShapedTrace {
  Result<Trace> trace = failure(ErrorKind::io, "not read");
  std::vector<std::string> notes;
};

ShapedTrace read_bytes(const std::string& text) {
  const TemporaryFolder folder;
  Result<TraceReader> reader = TraceReader::open(folder.write("t.csv", text));
  ShapedTrace read;
  if (!reader) {
    read.trace = std::unexpected(reader.error());
    return read;
  }
  read.trace = collect_rows(*reader);
  read.notes = reader->notes();
  return read;
}

// The content of the rows, without line numbers.
std::string told_rows(const Trace& trace) {
  std::string text;
  const auto add = [&](const auto& value) { text += std::to_string(value) + "|"; };
  for (const Execution& execution : trace.executions) {
    text += execution.id + "|" + execution.service + "|";
    add(execution.host.cpu_cores);
    add(execution.original.memory_bytes().value_or(Bytes{}).value);
    for (const TraceRow& row : execution.rows) {
      add(row.wall_time.time_since_epoch().count());
      add(row.sample.cpu.usage_usec.value_or(9));
      add(row.sample.memory_current.value_or(Bytes{9}).value);
      add(row.sample.memory.anon_bytes.value_or(9));
    }
  }
  return text;
}

std::string plain_told() { return told_rows(*read_bytes(shaped({})).trace); }

void reads_same(const std::string& text, const std::vector<std::string>& notes = {}) {
  const ShapedTrace read = read_bytes(text);
  REQUIRE_MESSAGE(read.trace, read.trace.error().text);
  CHECK(told_rows(*read.trace) == plain_told());
  CHECK(read.notes == notes);
}

std::string not_read(const std::string& text) {
  const ShapedTrace read = read_bytes(text);
  REQUIRE_FALSE(read.trace);
  CHECK(read.trace.error().kind == ErrorKind::invalid);
  return read.trace.error().text.substr(read.trace.error().text.find("t.csv"));
}

std::string utf16(const std::string& text, bool little) {
  std::string bytes = little ? "\xFF\xFE" : "\xFE\xFF";
  for (const char c : text) bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
  return bytes;
}

std::string iso_cell(const std::string& seconds, const std::string& middle,
                     const std::string& zone) {
  return "2023-11-14" + middle + "22:13:2" + seconds.back() + zone;
}

}  // namespace

TEST_CASE("separators, line ends and encodings of spreadsheets read as commas, LF and UTF-8") {
  reads_same(shaped({.separator = ";"}));
  reads_same(shaped({.separator = "\t"}));
  reads_same(shaped({.separator = ", "}));
  reads_same(shaped({.separator = " ; "}));
  reads_same(shaped({.separator = ",\t"}));
  reads_same(shaped({.end = "\r\n"}));
  reads_same(shaped({.end = "\r"}));
  reads_same(shaped({.before = "sep=,\n"}));
  reads_same(shaped({.separator = ";", .end = "\r\n", .before = "\"sep=;\"\r\n"}));
  reads_same("\xEF\xBB\xBF" + shaped({}));
  for (const bool little : {true, false}) {
    reads_same(utf16(shaped({}), little));
    reads_same(utf16(shaped({.separator = "\t", .end = "\r\n"}), little));
  }
}

TEST_CASE("UTF-16 becomes UTF-8 across chunks, with characters beyond 16 bits") {
  const std::string head = utf16("timestamp,pod.id,cpu.usage.cores\n1,", true);
  const std::string name("\x3D\xD8\x00\xDE\xE4\x00", 6);  // U+1F600, U+00E4
  for (const std::size_t padding : {0U, 1U, 2U, 3U}) {
    std::string blanks;
    while (head.size() + blanks.size() < 65'536 - 2 * padding) blanks += std::string("\n\0", 2);
    const std::size_t row = head.size() - 4;
    const std::string text = head.substr(0, row) + blanks + head.substr(row) + name +
                             std::string(",\0" "1\0", 4);
    const ShapedTrace read = read_bytes(text);
    REQUIRE_MESSAGE(read.trace, read.trace.error().text);
    CHECK(read.trace->executions.at(0).id == "\xF0\x9F\x98\x80\xC3\xA4");
  }
}

TEST_CASE("the header may have capitals, blanks and comments around it, or be in a comment") {
  Shape capitals;
  capitals.header = [](Cells& names) {
    for (std::string& name : names) name[0] = static_cast<char>(name[0] - 'a' + 'A');
    names[5] = "Mem.Limit ";
  };
  reads_same(shaped(capitals));
  Shape time;
  time.header = [](Cells& names) { names[0] = "Time"; };
  reads_same(shaped(time));
  reads_same(shaped({.before = "# exported by a script\n#\n\n"}));
  reads_same(shaped({.before = "# "}));
  reads_same(shaped({.before = "#"}));
}

TEST_CASE("every word for a missing value reads as an empty cell") {
  for (const char* word : {"NA", "N/A", "null", "None", "nan", "NAN", "-", "undefined", "\"\""}) {
    CAPTURE(word);
    const Rewrite to_word = [&](const std::string& cell) { return cell.empty() ? word : cell; };
    reads_same(shaped(with_column(6, to_word)));
  }
}

TEST_CASE("an additional column in all rows is an index before them or an empty one after them") {
  Shape trailing;
  trailing.row = [](Cells& row) { row.emplace_back(); };
  reads_same(shaped(trailing));
  Shape index;
  index.row = [i = 0](Cells& row) mutable { row.insert(row.begin(), std::to_string(++i)); };
  reads_same(shaped(index));
  Shape both = index;
  both.row = [i = 0](Cells& row) mutable {
    row.insert(row.begin(), std::to_string(++i));
    row.emplace_back();
  };
  reads_same(shaped(both));
  Shape named = both;
  named.header = [](Cells& names) {
    names.insert(names.begin(), "");
    names.emplace_back();
  };
  reads_same(shaped(named));
}

TEST_CASE("a value after the last column is refused, also in a late row") {
  std::string text = "timestamp,cpu.usage.cores\n";
  for (std::size_t i = 0; i < kShapeRows; ++i) text += std::to_string(i) + ",1,\n";
  CHECK(read_bytes(text).trace);
  CHECK(not_read(text + "1000,1,5\n") ==
        "t.csv: line 258: has a value after the last column of the header");
}

TEST_CASE("timestamps in other units and in ISO 8601 read as seconds, with one note") {
  const auto stamps = [](const std::string& zeros) {
    return shaped(with_column(0, [&](const std::string& cell) { return cell + zeros; }));
  };
  reads_same(stamps(".0"));
  reads_same(stamps("000"), {"timestamps taken as milliseconds"});
  reads_same(stamps("000000"), {"timestamps taken as microseconds"});
  reads_same(stamps("000000000"), {"timestamps taken as nanoseconds"});
  const auto dates = [](const std::string& middle, const std::string& zone) {
    const Rewrite date = [&](const std::string& cell) { return iso_cell(cell, middle, zone); };
    return shaped(with_column(0, date));
  };
  for (const char* zone : {"Z", "+00:00", "-0000", ".000Z", " UTC"})
    reads_same(dates("T", zone), {"timestamps taken as ISO 8601"});
  for (const char* middle : {"T", " "})
    reads_same(dates(middle, ""), {"timestamps taken as ISO 8601, in UTC if they have no zone"});
}

TEST_CASE("time since the start has the unit that an interval implies") {
  const auto second = [](const std::string& text) {
    const ShapedTrace read = read_bytes(text);
    REQUIRE_MESSAGE(read.trace, read.trace.error().text);
    return seconds_of(read.trace->executions[0].rows[1].time);
  };
  CHECK(second("timestamp,interval,cpu.usage.cores\n0,,1\n1000,1,1\n2000,1,1\n") == 1);
  CHECK(second("timestamp,cpu.usage,cpu.usage.cores\n0,1000000000,1\n5000000,2500000000,0.5\n") ==
        5);
  CHECK(second("timestamp,cpu.usage.cores\n0,1\n1000,1\n") == 1000);
  std::string slow = "timestamp,cpu.usage.cores\n";
  for (int i = 0; i <= 10; ++i) slow += std::to_string(1000 * i) + ",1\n";
  CHECK(read_bytes(slow).notes ==
        std::vector<std::string>{"timestamps taken as seconds: one row every 1000 s"});
  CHECK(not_read("timestamp,cpu.usage.cores\n0,1\n300000000,1\n")
            .starts_with("t.csv: line 2: column timestamp: the unit is unclear: rows are "
                         "300000000 apart"));
}

TEST_CASE("a timestamp in another format than the first ones is refused with its line") {
  CHECK(not_read(shaped({}) + "2023-11-14T22:13:20Z,svc,c,4,1,1,1,1\n")
            .starts_with("t.csv: line 22: column timestamp: \"2023-11-14T22:13:20Z\" is not"));
  CHECK(not_read("timestamp,pod.id,mem.current\n1700000000000,a,1\n1700000001000,a,1\n"
                 "1700000002,b,1\n") ==
        "t.csv: line 4: column timestamp: is not in milliseconds, unlike the first rows");
  CHECK(not_read("timestamp,pod.id,mem.current\n2023-11-14T22:13:20,a,1\n14.11.2023,a,1\n")
            .starts_with("t.csv: line 3: column timestamp: \"14.11.2023\" is not a time"));
}

TEST_CASE("a decimal comma is read if it is unambiguous") {
  Shape commas = with_column(4, [](std::string cell) { return cell.replace(1, 1, ","); });
  commas.separator = ";";
  reads_same(shaped(commas));
  commas.separator = "\t";
  reads_same(shaped(commas));
  reads_same(shaped(with_column(4, [](std::string cell) {
    return "\"" + cell.replace(1, 1, ",") + "\"";
  })));
  CHECK(not_read("timestamp;mem.current\n1;1,234\n2;2,345\n")
            .starts_with("t.csv: line 2: column mem.current: \"1,234\" may have a decimal comma"));
}

TEST_CASE("percent signs are accepted only in columns of percentages") {
  const std::string header = "timestamp,cpu.num.cores,cpu.usage.cores,cpu.usage.pct\n";
  CHECK(read_bytes(header + "1,4,1,25%\n2,4,1,25 %\n").trace);
  CHECK(not_read(header + "1,4,1%,25\n") ==
        "t.csv: line 2: column cpu.usage.cores: \"1%\" is a percentage, and the column is not");
}

TEST_CASE("percentages and capacities replace missing columns") {
  const ShapedTrace read = read_bytes(
      "timestamp,cpu.num.cores,cpu.usage.pct,mem.limit,mem.usage.pct\n"
      "1,4,25,1000,50\n2,4,50,1000,60\n");
  REQUIRE(read.trace);
  const std::vector<TraceRow>& rows = read.trace->executions[0].rows;
  CHECK(*rows[1].sample.cpu.usage_usec - *rows[0].sample.cpu.usage_usec == 2'000'000);
  CHECK(memory_need(rows[1].sample) == Bytes{600});
  CHECK(read.notes.size() == 2);
  const ShapedTrace of_limits = read_bytes(
      "timestamp,cpu.limit.cores,cpu.usage.pct.container.requested,host.memory,mem.usage.pct\n"
      "1,2,25,1000,50\n2,2,50,1000,60\n");
  REQUIRE(of_limits.trace);
  CHECK(of_limits.trace->executions[0].rows[1].sample.cpu.usage_usec == 1'000'000);
  CHECK(memory_need(of_limits.trace->executions[0].rows[1].sample) == Bytes{600});
}

TEST_CASE("a repeated header is skipped and noted") {
  std::string text = shaped({});
  const std::string header = text.substr(0, text.find('\n') + 1);
  text.insert(text.find("1700000000,svc,b"), header);
  reads_same(text, {"the header is repeated in line 12; that line is ignored"});
}

TEST_CASE("a file that is not a trace is refused, and the error names its columns") {
  CHECK(not_read("1700000000,svc,4\n1700000001,svc,4\n") ==
        "t.csv: line 1: there is no header line: the names of the columns come first "
        "(docs/internals/trace-format.md)");
  CHECK(not_read("2023-11-14 22:13:20,svc\n")
            .starts_with("t.csv: line 1: there is no header line"));
  CHECK(not_read("Timestamp [ms];CPU cores;Memory usage [KB]\n1;2;3\n") ==
        "t.csv: line 1: column timestamp: is missing: this is not a trace "
        "(docs/internals/trace-format.md); found Timestamp [ms], CPU cores, Memory usage [KB]");
  CHECK(not_read("# only a comment\n") == "t.csv: line 1: the file has no header");
  CHECK(not_read("") == "t.csv: line 1: the file is empty");
  CHECK(not_read("timestamp,Mem.Limit,MEM.LIMIT\n1,2,3\n") ==
        "t.csv: line 1: column MEM.LIMIT: appears twice");
  CHECK(not_read("PK\x03\x04").starts_with("t.csv: is a zip archive"));
}
