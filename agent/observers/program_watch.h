// Detects programs that read their limits. A program that starts finds the original limits. A limit
// that a program rereads while it runs stays at its original (docs/safety.md).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "collectors/ebpf/probe_source.h"
#include "collectors/sample.h"

namespace cgphase {

// Runtimes that reread limits while they run, by the name of the process or of its program. Others,
// such as Go since 1.25, are detected by their reads if BPF reports them.
struct LimitReader {
  std::string_view name;
  bool reads_cpu = false, reads_memory = false;  // cpu.max, memory.high
};
// `program` is a path. Null if it is not in the list.
const LimitReader* find_limit_reader(std::string_view command, std::string_view program);

// Owned and used by the agent's thread.
class ProgramWatch {
 public:
  // Maximum number of remembered programs of one container. One more makes all new again.
  static constexpr std::size_t kMostPrograms = 256;
  // Maximum number of processes that are listed without BPF: of one container, and in one call.
  // The next call begins with the containers that were left out.
  static constexpr std::size_t kMostProcesses = 512;
  static constexpr std::size_t kMostProcessesInAll = 4096;

  struct Environment {
    ProbeSource* probes = nullptr;  // null: no BPF
    const std::string& proc_root;
    std::function<bool(CgroupId)> attended;  // its limits are lowered, or may be
    std::function<Result<Fd>(CgroupId)> directory;
    std::chrono::nanoseconds start_up;       // how long a starting program reads limits
  };

  // Call it after each sample, before the core steps. Fills `programs` of the samples. Without BPF
  // it compares the processes of a container with those of the last call. A program is new if the
  // container has not run it before.
  void observe(NodeSample& tick, const Environment& around);
  // Call it between two samples, because the kernel's buffer of events is small.
  void drain_events(MonotonicTime now, const Environment& around);

 private:
  struct Program {
    // First start since which BPF reported every event; absent: none, or the program is ignored.
    std::optional<MonotonicTime> first;
    MonotonicTime last;    // newest start
    bool reads = false;    // it reads limits, or may
    bool ignored = false;  // BPF no longer reports its starts
  };
  struct Watched {
    bool reported = false;  // BPF reports its programs
    bool listed = false;    // its processes were listed at least once
    std::map<std::string, std::string, std::less<>> running;  // pid to program, without BPF
    std::map<std::uint64_t, Program> programs;
    ProgramStat stat;  // `started` until it is in a sample
  };
  void attend(const Sample& sample, const Environment& around);
  void drop(CgroupId id, const Environment& around);
  void list_in_turn(const NodeSample& tick, const Environment& around);
  void take(const ProgramAct& act, MonotonicTime now, const Environment& around);
  static std::size_t list(Watched& watched, CgroupId id, MonotonicTime now,
                          const Environment& around);
  static void stop_ignoring(CgroupId id, std::uint64_t key, Program& program,
                         const Environment& around);
  static void forget_programs(CgroupId id, Watched& watched, const Environment& around);
  static void start(CgroupId id, Watched& watched, std::uint64_t key, const LimitReader* reader,
                    MonotonicTime now, const Environment& around);
  static void take_read(CgroupId id, Watched& watched, const ProgramAct& act, MonotonicTime now,
                        const Environment& around);
  static void take_dropped(CgroupId id, Watched& watched, const Environment& around);
  static void ignore_quiet(CgroupId id, Watched& watched, MonotonicTime now,
                           const Environment& around);

  std::map<CgroupId, Watched> watched_;
  std::map<std::uint64_t, CgroupId> by_inode_;  // the keys of watched_
  CgroupId last_listed_;  // listing continues after it
};

}  // namespace cgphase
