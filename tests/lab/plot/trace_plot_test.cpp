#include "lab/plot/trace_plot.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "lab/plot/phase_lane.h"
#include "tests/lab/plot/xml_check.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

// One sample per second: cores and bytes as given, limits of two cores and one GiB.
Execution execution_of(std::size_t rows, double cores = 1, std::uint64_t bytes = 700'000'000) {
  Execution execution;
  execution.id = "job";
  execution.original.cpu_max = CpuMax{Microseconds{200'000}};
  execution.original.memory_max = MemoryLimit{Bytes{kGiB}};
  for (std::size_t i = 0; i < rows; ++i) {
    TraceRow row;
    row.time = MonotonicTime(std::chrono::seconds(i));
    row.wall_time = WallTime(std::chrono::seconds(1'700'000'000 + i));
    row.sample.limits = execution.original;
    row.sample.cpu.usage_usec = static_cast<std::uint64_t>(cores * 1e6 * static_cast<double>(i));
    row.sample.memory.anon_bytes = bytes;
    execution.rows.push_back(row);
  }
  return execution;
}

std::string draw(const Execution& execution, const std::vector<int>& phases = {}) {
  TracePlot plot;
  plot.source = "t.csv";
  plot.phase_source = "made up";
  plot.phase_names = {"", "", ""};
  plot.total = 1;
  PlotSpan span;
  for (const TraceRow& row : execution.rows) span.add(row);
  PlottedExecution plotted(execution, span);
  for (std::size_t i = 0; i < execution.rows.size(); ++i)
    plotted.add(execution.rows[i], i < phases.size() ? phases[i] : 0);
  plot.executions.push_back(std::move(plotted));
  return draw_trace(plot);
}

}  // namespace

TEST_CASE("axes are in cores, in GiB or MiB, and in time, with their units") {
  const std::string text = draw(execution_of(600));
  CHECK(xml_fault(text) == "");
  CHECK(has(text, ">CPU, cores</text>"));
  CHECK(has(text, ">memory, GiB</text>"));
  CHECK(has(text, ">time since the start, min</text>"));
  Execution small = execution_of(20, 0.1, 30 * kMiB);
  for (TraceRow& row : small.rows) row.sample.limits = {};
  CHECK(has(draw(small), ">memory, MiB</text>"));
}

TEST_CASE("a limit near the use is drawn, a high or absent one is written") {
  CHECK_FALSE(has(draw(execution_of(50)), "beyond this scale"));
  CHECK(has(draw(execution_of(50, 0.1)), "limit 2 cores, beyond this scale"));
  Execution free = execution_of(50);
  for (TraceRow& row : free.rows) row.sample.limits = {};
  CHECK(has(draw(free), ">no limit</text>"));
}

TEST_CASE("the legend has the phases that occur and no others") {
  std::vector<int> phases(50, 0);
  std::fill(phases.begin() + 20, phases.begin() + 30, 2);
  std::fill(phases.begin() + 30, phases.begin() + 40, kLaneUnknown);
  const std::string text = draw(execution_of(50), phases);
  CHECK(has(text, "font-size=\"12\" fill=\"#222222\">A</text>"));
  CHECK_FALSE(has(text, "font-size=\"12\" fill=\"#222222\">B</text>"));
  CHECK(has(text, "font-size=\"12\" fill=\"#222222\">C</text>"));
  CHECK(has(text, ">unknown phase</text>"));
  CHECK_FALSE(has(text, ">not enough history</text>"));
}

TEST_CASE("the description says what the picture shows") {
  std::vector<int> phases(101, 0);
  std::fill(phases.begin() + 76, phases.end(), 1);
  const std::string text = draw(execution_of(101), phases);
  CHECK(has(text, "at most 1 cores of CPU and 0.652 GiB of memory. "
                  "A: 75 % of the time. B: 25 % of the time.</desc>"));
}

TEST_CASE("a long trace makes a small picture") {
  Execution execution = execution_of(50'000);
  std::vector<int> phases(execution.rows.size());
  for (std::size_t i = 0; i < phases.size(); ++i) {
    phases[i] = static_cast<int>(i * 2654435761 % 3);
    execution.rows[i].sample.memory.anon_bytes = 1'000'000 * (i * 7919 % 1000);
    execution.rows[i].sample.limits.memory_max = MemoryLimit{Bytes{kGiB * (1 + i % 2)}};
    *execution.rows[i].sample.cpu.usage_usec += i * 7919 % 300'000;
  }
  const std::string text = draw(execution, phases);
  CHECK(xml_fault(text) == "");
  CHECK(text.size() < 100'000);
}

TEST_CASE("one row, no readings and rows at the same time make a picture") {
  CHECK(xml_fault(draw(execution_of(1))) == "");
  CHECK(has(draw(execution_of(1)), ">no readings</text>"));
  Execution still = execution_of(5);
  for (TraceRow& row : still.rows) row.time = {};
  CHECK(xml_fault(draw(still)) == "");
  Execution empty = execution_of(5);
  for (TraceRow& row : empty.rows) row.sample = {};
  CHECK(xml_fault(draw(empty)) == "");
}

TEST_CASE("hostile names are text") {
  Execution execution = execution_of(10);
  execution.id = "</text><script>alert(1)</script>\x1b[2J\xff";
  execution.service = "\"&\xEF\xBF\xBE" + std::string(5000, 'x');
  const std::string text = draw(execution);
  CHECK(xml_fault(text) == "");
  CHECK_FALSE(has(text, "<script"));
  CHECK(has(text, "&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt;\\x1b[2J\\xff of"));
}
