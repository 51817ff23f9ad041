// Stores the phases of a trace until all of it was read: in memory, or in a temporary file if there
// are many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "model/phase.h"

namespace cgphase {

// Takes rows of several executions in any order; read() returns them execution by execution. Memory
// is needed for each execution and for kRowsInMemory rows, whatever the number of rows.
class PhaseSpool {
 public:
  static constexpr std::size_t kRowsInMemory = 64 * 1024;

  struct Row {
    WallTime time;
    Phase phase;
  };

  // Executions are counted from 0. Errors: those of the temporary file.
  Status add(std::size_t execution, const Row& row);
  // Passes the rows of one execution to `take`, in order of arrival and in pieces, until `take`
  // fails.
  Status read(std::size_t execution,
              const std::function<Status(std::span<const Row>)>& take) const;

 private:
  // In the file each execution is a chain of runs: this header, then `rows` rows.
  struct Run {
    std::int64_t next = -1;  // offset in the file; -1: the last run
    std::uint64_t rows = 0;
  };
  struct Chain {
    std::int64_t first = -1, last = -1;
    std::vector<Row> waiting;  // after the rows in the file
  };

  Status write_waiting();
  Status append_run(Chain& chain, std::vector<char>& out);

  Fd file_;
  std::int64_t file_bytes_ = 0;
  std::vector<Chain> chains_;
  std::vector<std::size_t> with_waiting_;
  std::size_t waiting_ = 0;
};

}  // namespace cgphase
