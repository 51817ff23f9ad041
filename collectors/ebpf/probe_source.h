// The interface to all BPF programs. A feature that a host lacks is a line in `status`, never a
// failure: each program is loaded and attached, and only then is it known.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sys/types.h>

#include "base/clock.h"
#include "base/program_starts.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/node_sampler.h"

namespace cgphase {

// An action of a program in a watched container.
struct ProgramAct {
  // Reads of cpu.max and memory.high. `dropped`: more actions happened than are reported.
  enum class Kind : std::uint8_t { starts, reads_cpu, reads_memory, dropped };
  Kind kind = Kind::starts;
  std::uint64_t container = 0;      // the inode of CgroupId; 0 with `dropped`: all containers
  std::uint64_t key = 0;            // hash of the command line; 0: unknown
  std::chrono::nanoseconds age{0};  // age of its process
  std::string command;          // its comm, foreign bytes
};

// Owned and used by one thread.
class ProbeSource {
 public:
  virtual ~ProbeSource() = default;

  // Writes since the last call, in the order in which they began. It takes everything that the
  // kernel keeps, because a write must explain a change in the same tick. Newer writes beyond that
  // limit wait for the next call. Never blocks.
  static constexpr std::size_t kMostLimitWrites = 2340;
  virtual std::vector<LimitWrite> drain_limit_writes() = 0;

  // Sets whether limit writes are needed; the default is false. Programs are loaded only while they
  // are needed. A change takes tens of milliseconds, because the kernel's types are read.
  virtual void set_wanted(bool wanted) = 0;

  // Turns reports of a container on or off: programs that start in it, and programs that read its
  // limits from inside. False if no program can report them.
  virtual bool watch_programs(CgroupId container, bool wanted) = 0;
  // With `ignored`, starts of the command line with that key are no longer reported, because it
  // reads no limits. Otherwise they are reported again.
  virtual void ignore_program(CgroupId container, std::uint64_t key, bool ignored) = 0;
  // Actions since the last call. The same action of the same command line is reported once per
  // second. Never blocks.
  static constexpr std::size_t kMostProgramActs = 4681;  // as many as the kernel keeps
  virtual std::vector<ProgramAct> drain_program_acts() = 0;
  // True if reads are reported too. Call it after the first watch_programs().
  virtual bool reports_limit_reads() const = 0;
  // Reports starts immediately, for another thread, from the first watch_programs() on. Null if
  // nothing can report them.
  virtual std::shared_ptr<ProgramStarts> program_starts() = 0;

  // Fills run_queue, network and block of the samples of the newest tick, if the kernel allows
  // programs to count them. The programs are loaded at the first call. Every tick must be passed,
  // because it reports new and vanished containers.
  virtual void fill_counters(NodeSample& tick) = 0;

  // The container's waits for a processor since they are counted; absent if they are not counted.
  virtual std::optional<RunQueueHistogram> run_queue_histogram(CgroupId container) const = 0;

  // For `status`: one source per feature, or why it is absent.
  virtual std::vector<Source> sources() const = 0;
};

// Opens the probes of the running kernel. `cgroup_root` is the mount point of cgroup v2.
// `budget_ratio` is the allowed cost of the counting programs as a fraction of one core.
std::unique_ptr<ProbeSource> open_kernel_probes(const std::string& cgroup_root,
                                                double budget_ratio);
// A source without probes; `status` shows `why`.
std::unique_ptr<ProbeSource> no_probes(const std::string& why);

// Sets the receiver of libbpf's messages, line by line. Without it they are dropped. It is global
// for the process; call it before the first probe.
void set_probe_log(void (*take)(const std::string& line));

}  // namespace cgphase
