// The door to what the kernel tells through BPF programs of ours. What cannot be had on a host is a
// line in `status`, never a failure: each program is loaded and attached, and then it is known.
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

// Somebody else's write to a file with a limit, as the kernel saw it begin: it may have been
// refused. Texts are foreign bytes.
struct LimitWrite {
  MonotonicTime time;
  std::uint64_t directory = 0;  // the inode of CgroupId: the cgroup that the file belongs to
  std::string file;             // "memory.max", "cpu.max" or "cpu.max.burst"
  std::string value;            // without white space around it; its first 43 bytes
  pid_t pid = 0;                // of the writing process, in the first pid namespace
  std::string command;          // its comm
  std::uint64_t writer_cgroup = 0;  // inode of the cgroup that it was in
  CgroupPath writer_path;           // of that cgroup; empty where it is gone or not to be had
};

// What a program did in a container of which one asked to be told.
struct ProgramAct {
  // cpu.max, memory.high; and that more happened than is told.
  enum class Kind : std::uint8_t { starts, reads_cpu, reads_memory, untold };
  Kind kind = Kind::starts;
  std::uint64_t container = 0;  // the inode of CgroupId; 0, if untold: in all
  std::uint64_t key = 0;        // of the command line; 0: unknown
  std::chrono::nanoseconds age{0};  // of its process
  std::string command;          // its comm, foreign bytes
};

// Owned and used by one thread.
class ProbeSource {
 public:
  virtual ~ProbeSource() = default;

  // Writes since the last call, in the order in which they began: all that the kernel keeps until
  // it is asked, for what a write explains is read in the same tick or never. What is written
  // meanwhile and would make it more waits for the next call. Never blocks.
  static constexpr std::size_t kMostLimitWrites = 2340;
  virtual std::vector<LimitWrite> take_limit_writes() = 0;

  // Whether anybody needs to know of limit writes; nobody does at first. What tells of them is in
  // the kernel only while somebody does. A change takes tens of milliseconds, for the kernel's
  // types are read.
  virtual void set_wanted(bool wanted) = 0;

  // Programs that start in these containers are told from then on, and who reads the limits of its
  // own. False where nothing tells of them.
  virtual bool watch_programs(CgroupId container, bool wanted) = 0;
  // Starts of the command line of that key are told no longer there, as it reads no limits; or are
  // told again.
  virtual void ignore_program(CgroupId container, std::uint64_t key, bool ignored) = 0;
  // What they did since the last call; the same of the same command line once in a second. Never
  // blocks.
  static constexpr std::size_t kMostProgramActs = 4681;  // as many as the kernel keeps
  virtual std::vector<ProgramAct> take_program_acts() = 0;
  // Whether reads are among them. Not before the first watch_programs().
  virtual bool tells_limit_reads() const = 0;
  // The starts among these at once, for another thread, from the first watch_programs() on; null
  // where nothing tells of them.
  virtual std::shared_ptr<ProgramStarts> program_starts() = 0;

  // Fills run_queue, network and block of the samples of a tick just read, as far as this kernel
  // lets something count them; the programs are loaded at the first call. Every tick is to be
  // shown, for it tells who appeared and who vanished.
  virtual void fill_counters(NodeSample& tick) = 0;

  // Of a container's waits for a processor, since they are counted; nothing where they are not.
  virtual std::optional<RunQueueHistogram> run_queue_histogram(CgroupId container) const = 0;

  // For `status`: one for each thing that can be told, or why not.
  virtual std::vector<Source> sources() const = 0;
};

// Those of the running kernel. `cgroup_root` is where cgroup v2 is mounted, `budget_ratio` what the
// counting programs may cost of one core.
std::unique_ptr<ProbeSource> open_kernel_probes(const std::string& cgroup_root,
                                                double budget_ratio);
// None, whoever wants them: `why` is what `status` says.
std::unique_ptr<ProbeSource> no_probes(const std::string& why);

// Where libbpf's own words go, a line at a time; nowhere until this is called. For the whole
// process, before its first probe.
void set_probe_log(void (*take)(const std::string& line));

}  // namespace cgphase
