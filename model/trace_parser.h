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
#include "model/trace.h"
#include "model/trace_columns.h"

namespace cgphase {

// Takes the lines of one file in their order. It remembers of each execution what its next row
// needs and what all of its rows tell together, never the rows.
class TraceParser {
 public:
  TraceParser(std::string path, TraceOptions options);

  // Errors, here and of read_row(): invalid, naming file, line, column and reason.
  Status read_header(std::string_view line);
  // False, and `row` as it was, for a blank line.
  Result<bool> read_row(std::string_view line, std::uint64_t line_number, TraceRow& row);

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
  };

  // What is wrong with the line. The first fault of a row is kept until the row is done.
  std::unexpected<Error> bad(std::string_view column, const std::string& reason) const;
  void fault(std::string_view column, const std::string& reason);
  Position find(std::string_view name) const;
  std::string_view text(const Position& position) const;
  // Empty and NaN are absent; so is, after fault(), what cannot be read.
  std::optional<double> number(const Position& position);
  std::optional<double> not_negative(const Position& position);

  Status fix_offset();
  Status find_execution(std::string_view id);
  void fill_columns(TraceRow& row);
  double fill_time(TraceRow& row, Progress& progress);
  // Of the row and the one before; absent where they do not tell it.
  static std::optional<double> used_cores(const TraceRow& row, const Progress& progress);
  void fill_cpu(TraceRow& row, Progress& progress, double elapsed);
  void fill_memory(TraceRow& row, Progress& progress);
  static void fill_need(double in_use, Sample& sample);
  void fill_limits(TraceRow& row, ExecutionHeader& execution);

  std::string path_;
  TraceOptions options_;
  std::uint64_t line_ = 0;
  std::size_t offset_ = 0;  // 1 where rows begin with an unnamed number
  std::size_t row_count_ = 0, index_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string_view> fields_;  // of the line being read
  std::string unquoted_;
  std::vector<std::pair<const TraceColumn*, std::size_t>> sample_columns_;
  std::vector<std::pair<const TraceRatio*, Position>> ratios_;
  std::vector<Position> asked_;
  Position timestamp_, service_, pod_, host_cores_, host_memory_, cpu_usage_, cpu_cores_, cpu_pct_,
      cpu_limit_, memory_current_, memory_limit_, working_set_, interval_, label_, label_detail_;
  bool has_usage_counter_ = false, has_anon_ = false;
  std::map<std::string, std::size_t, std::less<>> indices_;
  std::vector<ExecutionHeader> executions_;
  std::vector<Progress> progress_;  // of each of them
  std::optional<double> first_timestamp_;
  std::optional<Error> fault_;
};

}  // namespace cgphase
