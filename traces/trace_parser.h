// Parses lines of a trace into rows of executions. Private to traces/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "traces/trace.h"
#include "traces/trace_bounds.h"
#include "traces/trace_columns.h"
#include "traces/trace_shape.h"

namespace cgphase {

// Parses the lines of one file in order. Per execution it keeps only the data that the next row
// needs, and totals over all rows. It never keeps rows. Owned and used by one thread.
class TraceParser {
 public:
  TraceParser(std::string path, TraceOptions options, TraceShape shape);

  // False for a blank line and a repeated header; `row` is then unchanged. Errors: invalid, with
  // file, line, column and reason.
  Result<bool> read_row(std::string_view line, std::uint64_t line_number, TraceRow& row);

  // Remarks for the user on how the rows so far were read.
  std::vector<std::string> notes() const;
  // Fails if there is no row, or no row with CPU use, memory use or a requested column.
  Status check_measured() const;

  std::size_t index() const { return index_; }  // execution of the last row, from 0
  ExecutionHeader& execution(std::size_t index) { return executions_[index]; }
  std::span<const ExecutionHeader> executions() const { return executions_; }

  // True if no later row of this file can add facts about the execution.
  bool complete(std::size_t index) const;
  // Totals over the rows so far: the CPU limit if no column has it, the host, and the largest use.
  struct Measured {
    std::optional<CpuMax> cpu_max;
    HostCapacity host, most_used;
  };
  Measured measured(std::string_view id) const;

 private:
  // Index of a named column; absent if the file lacks it.
  using Position = std::optional<std::size_t>;

  // State of an execution between its rows.
  struct Progress {
    bool begun = false;
    double timestamp = 0, seconds = 0;
    double cpu_usec = 0;                // rebuilt counter
    Counter usage_usec;                 // counter and time of the previous row
    MonotonicTime time;
    std::vector<double> cores_per_pct;  // cores that 100 % of the request means, per row
    double most_cores = 0;
    std::uint64_t most_memory = 0;
    std::vector<CounterGuard> guards;  // one per cumulative column
  };

  // Errors of the line. fault() keeps the first one until the row is complete.
  std::unexpected<Error> bad(std::string_view column, const std::string& reason) const;
  void fault(std::string_view column, const std::string& reason);
  void bind_columns();
  void find_conversions();
  std::string_view text(const Position& position) const;
  std::string name_text(const Position& position) const;
  // Absent if the cell is missing. A cell that cannot be read is absent after fault().
  std::optional<double> number(const Position& position);
  // As number(), but a value below zero or above the bound is ignored and counted.
  std::optional<double> reading(const Position& position, const Bound& bound);
  void ignore(std::size_t position, double value, const Bound& bound);
  // Absent if there is no limit.
  std::optional<double> limit(const Position& position);
  double timestamp();

  Status check_fields();
  Status find_execution(std::string_view id);
  double fill_time(TraceRow& row, Progress& progress);
  void fill_capacity(TraceRow& row, ExecutionHeader& execution);
  void fill_columns(TraceRow& row, Progress& progress);
  void fill_column(const TraceColumn& column, std::size_t position, TraceRow& row,
                   CounterGuard& guard, double seconds);
  void fill_asked(TraceRow& row);
  // Mean use between the previous row and this one; absent if a row lacks the counter.
  static std::optional<double> used_cores(const TraceRow& row, const Progress& progress);
  std::optional<double> cores_of_row(const TraceRow& row, std::optional<double>& of_limit);
  void fill_cpu(TraceRow& row, Progress& progress, double elapsed);
  void fill_memory(TraceRow& row, Progress& progress);
  static void fill_need(double in_use, Sample& sample);

  std::string path_;
  TraceOptions options_;
  TraceShape shape_;
  std::uint64_t line_ = 0, repeated_header_ = 0;
  std::size_t row_count_ = 0, index_ = 0;
  std::vector<std::string_view> fields_;  // of the current line
  std::string unquoted_;
  std::vector<std::pair<const TraceColumn*, std::size_t>> sample_columns_;
  std::vector<std::pair<const TraceRatio*, Position>> ratios_;
  struct Asked {
    Position position;
    bool limit = false;
  };
  std::vector<Asked> asked_;
  Position timestamp_, service_, pod_, host_cores_, host_memory_, cpu_usage_, cpu_cores_,
      cpu_host_pct_, cpu_pct_, cpu_limit_, memory_current_, memory_limit_, memory_pct_,
      working_set_, interval_, label_, label_detail_;
  bool has_usage_counter_ = false, has_anon_ = false;
  bool cores_by_host_pct_ = false, cores_by_pct_ = false, memory_by_pct_ = false;
  std::vector<double> percent_;            // per column: the value of "1%", 0 if % is not allowed
  std::vector<std::size_t> ignored_;       // ignored columns of this row
  RowBounds bounds_;                       // bounds of this row
  double row_cores_ = 0, row_memory_ = 0;  // capacities of this row; 0 is unknown
  bool measured_ = false;
  Impossible impossible_;
  std::map<std::string, std::size_t, std::less<>> indices_;
  std::vector<ExecutionHeader> executions_;
  std::vector<Progress> progress_;  // one per execution
  std::optional<double> first_timestamp_;
  std::optional<Error> fault_;
};

}  // namespace cgphase
