// Reads the cost of BPF programs from the kernel's run-time statistics.
#pragma once

#include <cstdint>
#include <optional>

#include "base/fd.h"

namespace cgphase {

// Statistics of all runs of one program while accounting was on.
struct ProgramRuns {
  std::uint64_t ns = 0;
  std::uint64_t count = 0;
};

// `program` is a descriptor. Zeros if the kernel has no statistics.
ProgramRuns program_runs(int program);

// While this object exists, the kernel measures run times of all BPF programs on the host. Each run
// then takes some tens of nanoseconds longer. Absent without CAP_SYS_ADMIN.
class RunTimeAccounting {
 public:
  static std::optional<RunTimeAccounting> start();

 private:
  explicit RunTimeAccounting(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

}  // namespace cgphase
