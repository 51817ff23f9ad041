// What programs cost, by the kernel's own account of their run time.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fd.h"

namespace cgphase {

// Of all runs of one program while accounting was on.
struct ProgramRuns {
  std::uint64_t ns = 0;
  std::uint64_t count = 0;
};

// `program`: a descriptor. Zeros where the kernel does not tell.
ProgramRuns program_runs(int program);

// The kernel accounts run times of all programs, whosever they are, while this lives, which makes
// each run some tens of nanoseconds longer. Nothing without CAP_SYS_ADMIN.
class RunTimeAccounting {
 public:
  static std::optional<RunTimeAccounting> start();

 private:
  explicit RunTimeAccounting(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace cgphase
