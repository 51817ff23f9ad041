#include "collectors/ebpf/program_cost.h"

#include <bpf/bpf.h>

namespace cgphase {

ProgramRuns program_runs(int program) {
  bpf_prog_info info{};
  __u32 bytes = sizeof(info);
  if (bpf_obj_get_info_by_fd(program, &info, &bytes) != 0) return {};
  return {info.run_time_ns, info.run_cnt};
}

std::optional<RunTimeAccounting> RunTimeAccounting::start() {
  Fd fd(bpf_enable_stats(BPF_STATS_RUN_TIME));
  if (!fd.valid()) return std::nullopt;
  return RunTimeAccounting(std::move(fd));
}

}  // namespace cgphase
