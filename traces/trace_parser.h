// Lines of a trace to rows of executions. Private to model/.
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

// Takes the lines of one file in their order. It remembers of each execution what its next row
// needs and what all of its rows tell together, never the rows.
class TraceParser {
 public:
  TraceParser(std::string path, TraceOptions options, TraceShape shape);

  // False, and `row` as it was, for a blank line and a repeated header. Errors: invalid, naming
  // file, line, column and reason.
  Result<bool> read_row(std::string_view line, std::uint64_t line_number, TraceRow& row);

  // Of the rows so far: what a user must know of how they were read, in sentences.
  std::vector<std::string> notes() const;
  // Fails where there is no row, or none with a use of CPU or memory or a column asked for.
  Status check_measured() const;

  std::size_t index() const { return index_; }  // of the execution of the row last read, from 0
  ExecutionHeader& execution(std::size_t index) { return executions_[index]; }
  std::span<const ExecutionHeader> executions() const { return executions_; }

  // Whether the rows read so far tell all of an execution that this file can tell.
  bool complete(std::size_t index) const;
  // What the rows read so far tell together: the CPU limit where no column does, the host, and the
  // largest use.
  struct Measured {
    std::optional<CpuMax> cpu_max;
    HostCapacity host, most_used;
  };
  Measured measured(std::string_view id) const;

 private:
  // Where a named column lies; absent when the file has none.
  using Position = std::optional<std::size_t>;

  // What is remembered of an execution between its rows.
  struct Progress {
    bool begun = false;
    double timestamp = 0, seconds = 0;
    double cpu_usec = 0;                // rebuilt counter
    Counter usage_usec;                 // of the row before, and its time
    MonotonicTime time;
    std::vector<double> cores_per_pct;  // what 100 % of the request was, by row
    double most_cores = 0;
    std::uint64_t most_memory = 0;
    std::vector<CounterGuard> guards;   // of the columns that are cumulative
  };

  // What is wrong with the line. The first fault of a row is kept until the row is done.
  std::unexpected<Error> bad(std::string_view column, const std::string& reason) const;
  void fault(std::string_view column, const std::string& reason);
  void bind_columns();
  void find_conversions();
  std::string_view text(const Position& position) const;
  std::string name_text(const Position& position) const;
  // An absent value where the cell says so; so is, after fault(), what cannot be read.
  std::optional<double> number(const Position& position);
  // The same; what is below zero or above the bound is ignored and counted.
  std::optional<double> reading(const Position& position, const Bound& bound);
  void ignore(std::size_t position, double value, const Bound& bound);
  // Absent where there is no limit.
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
  // Of the row and the one before; absent where they do not tell it.
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
  std::vector<std::string_view> fields_;  // of the line being read
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
  std::vector<double> percent_;     // of each column: what "1%" is, 0 where it is nothing
  std::vector<std::size_t> ignored_;  // columns of this row
  RowBounds bounds_;                // of this row
  double row_cores_ = 0, row_memory_ = 0;  // capacities of this row, 0 unknown
  bool measured_ = false;
  Impossible impossible_;
  std::map<std::string, std::size_t, std::less<>> indices_;
  std::vector<ExecutionHeader> executions_;
  std::vector<Progress> progress_;  // of each of them
  std::optional<double> first_timestamp_;
  std::optional<Error> fault_;
};

}  // namespace cgphase
