// Which containers run programs that read their limits: one that starts finds the originals, and
// what is read again and again while programs run stays the original (docs/safety.md).
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

// Runtimes that read limits again while they run, known by the name of the process or its program.
// Others are known once they do so where BPF tells who reads (Go since 1.25).
struct LimitReader {
  std::string_view name;
  bool reads_cpu = false, reads_memory = false;  // cpu.max, memory.high
};
// `program` is a path. Null: not known.
const LimitReader* find_limit_reader(std::string_view command, std::string_view program);

// Owned and used by the agent's thread.
class ProgramWatch {
 public:
  // Programs that are remembered of one container; with one more all are new again.
  static constexpr std::size_t kMostPrograms = 256;
  // Processes that are looked at where BPF tells nothing: of one container, and in one call, where
  // the containers left out come first in the next.
  static constexpr std::size_t kMostProcesses = 512;
  static constexpr std::size_t kMostProcessesInAll = 4096;

  struct Environment {
    ProbeSource* probes = nullptr;  // null: nothing is asked of BPF
    const std::string& proc_root;
    std::function<bool(CgroupId)> attended;  // limits may be lowered, or are
    std::function<Result<Fd>(CgroupId)> directory;
    std::chrono::nanoseconds start_up;       // for so long a program that starts reads limits
  };

  // After each reading, before the core steps: fills `programs` of the samples. Where BPF tells
  // nothing the processes of a container are compared with those at the last call, and a program is
  // new when it is none that the container ran before.
  void look(NodeSample& tick, const Environment& around);
  // Between two readings: the kernel has no room for what many programs do in a long time.
  void hear(MonotonicTime now, const Environment& around);

 private:
  struct Program {
    // Start since which all that it did was told; absent: none, or it is ignored.
    std::optional<MonotonicTime> first;
    MonotonicTime last;    // start
    bool reads = false;    // limits, or it may
    bool ignored = false;  // the kernel tells of its starts no more
  };
  struct Watched {
    bool told = false;    // by BPF
    bool listed = false;  // what runs, once at least
    std::map<std::string, std::string, std::less<>> running;  // by pid: what it runs, if not told
    std::map<std::uint64_t, Program> programs;
    ProgramStat stat;  // that one started: until a sample says so
  };
  void attend(const Sample& sample, const Environment& around);
  void drop(CgroupId id, const Environment& around);
  void list_in_turn(const NodeSample& tick, const Environment& around);
  void take(const ProgramAct& act, MonotonicTime now, const Environment& around);
  static std::size_t list(Watched& watched, CgroupId id, MonotonicTime now,
                          const Environment& around);
  static void hear_again(CgroupId id, std::uint64_t key, Program& program,
                         const Environment& around);
  static void forget_programs(CgroupId id, Watched& watched, const Environment& around);
  static void start(CgroupId id, Watched& watched, std::uint64_t key, const LimitReader* reader,
                    MonotonicTime now, const Environment& around);
  static void take_read(CgroupId id, Watched& watched, const ProgramAct& act, MonotonicTime now,
                        const Environment& around);
  static void take_untold(CgroupId id, Watched& watched, const Environment& around);
  static void ignore_quiet(CgroupId id, Watched& watched, MonotonicTime now,
                           const Environment& around);

  std::map<CgroupId, Watched> watched_;
  std::map<std::uint64_t, CgroupId> by_inode_;  // what is in watched_
  CgroupId last_listed_;  // others come first
};

}  // namespace cgphase
