// A deterministic model of cgroup v2 in Linux 6.1, for tests. It has no threads, no clock and no
// randomness of its own. kernel_claims.h compares its claims with a real kernel.
//
// Modelled: a tree of cgroups with hierarchical memory.max, high, low and min; memory by kind;
// reclaim of file cache and slab; OOM kills; cpu.max with burst and throttling; cpu.weight;
// freezing; PSI; hierarchical and local events; texts and errors of the files; removal and reuse of
// names. Not modelled: swap, io, pids, cpuset, per-CPU effects, order and size of a real reclaim.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cgphase::simulator {

// The kinds of charged memory. The first three cannot be reclaimed, because there is no swap.
enum class MemoryKind : std::size_t { anon, shmem, kernel, file_inactive, file_active, slab };
inline constexpr std::size_t kMemoryKinds = 6;
inline constexpr std::uint64_t kSimulatedPage = 4096;

struct MemoryEventCounts {
  std::uint64_t low = 0, high = 0, max = 0, oom = 0, oom_kill = 0;
};

struct MemoryController {
  std::optional<std::uint64_t> max, high;  // empty: "max"; bytes
  std::uint64_t low = 0, min = 0;
  bool oom_group = false;
  std::array<std::uint64_t, kMemoryKinds> own{};  // without the children
  std::uint64_t current = 0, peak = 0;            // including the children
  MemoryEventCounts events, local_events;
  std::uint64_t pgscan = 0, pgsteal = 0, pgfault = 0, refaults = 0;

  std::uint64_t of(MemoryKind kind) const { return own[static_cast<std::size_t>(kind)]; }
};

struct CpuController {
  std::optional<std::uint64_t> quota_usec;  // empty: "max"
  std::uint64_t period_usec = 100'000, burst_usec = 0, weight = 100;
  std::uint64_t tokens_usec = 0;  // CPU time left in this period
  std::uint64_t next_refill_usec = 0;
  bool used = false, throttled = false;  // in this period
  std::uint64_t usage_usec = 0, nr_periods = 0, nr_throttled = 0, throttled_usec = 0;
};

// One *.pressure file. Averages are shares of time.
struct PressureState {
  double avg10 = 0, avg60 = 0, avg300 = 0;
  std::uint64_t total_usec = 0;
  std::uint64_t stalled_usec = 0;  // since the last update of the averages
};

struct SimulatedProcess {
  std::uint64_t cgroup = 0;  // inode
  std::uint64_t anon_bytes = 0;
  double cores = 0;  // CPU that it wants
};

struct Cgroup {
  std::uint64_t inode = 0, parent = 0;
  std::string name;
  std::map<std::string, std::uint64_t> children;
  bool frozen = false;
  MemoryController memory;
  CpuController cpu;
  PressureState cpu_pressure, memory_pressure;
};

// A process killed for memory.
struct OomKill {
  std::uint64_t victim = 0;    // inode of its cgroup
  std::uint64_t limiting = 0;  // the cgroup whose memory.max was reached
};

// A value type, so that a state can be saved and restored.
class CgroupKernel {
 public:
  struct Machine {
    double cores = 16;
    bool pressure = true;  // PSI
  };
  static constexpr std::uint64_t kRoot = 1;  // inode

  explicit CgroupKernel(const Machine& machine);

  // --- the tree; functions return 0 or an errno ---
  int make(std::string_view path);
  int remove(std::string_view path);  // EBUSY with processes or children
  std::optional<std::uint64_t> find(std::string_view path) const;
  const Cgroup* cgroup(std::uint64_t inode) const;
  std::string path_of(std::uint64_t inode) const;
  bool populated(std::uint64_t inode) const;

  // --- the files; functions return 0 or an errno ---
  bool has_file(std::uint64_t inode, std::string_view file) const;
  // EINVAL if the mode forbids it even to root.
  int check_open(std::uint64_t inode, std::string_view file, bool for_writing) const;
  int read(std::uint64_t inode, std::string_view file, std::string& text) const;
  // The two halves of a write. The first stores the value. The second does the work that the writer
  // waits for (reclaim, OOM kills), or skips it after a signal.
  int begin_write(std::uint64_t inode, std::string_view file, std::string_view text);
  int finish_write(std::uint64_t inode, std::string_view file, std::string_view text,
                   bool interrupted);
  int write(std::uint64_t inode, std::string_view file, std::string_view text);
  // Whether the second half would have any work.
  bool would_reclaim(std::uint64_t inode, std::string_view file) const;

  // --- the workload ---
  int spawn(std::uint64_t inode);  // returns the pid
  void end(int pid);
  bool alive(int pid) const { return processes_.contains(pid); }
  // Returns false if the process was killed for it.
  bool allocate(int pid, MemoryKind kind, std::uint64_t bytes);
  void release(int pid, MemoryKind kind, std::uint64_t bytes);
  void want_cores(int pid, double cores);
  const std::map<int, SimulatedProcess>& processes() const { return processes_; }
  // Lets time pass for all processes.
  void advance(std::uint64_t usec);
  std::uint64_t now_usec() const { return now_usec_; }

  std::vector<OomKill> take_kills();
  // anon, shmem and unreclaimable kernel memory: the need.
  std::uint64_t need_bytes(std::uint64_t inode) const;
  // By kind, including descendants.
  std::array<std::uint64_t, kMemoryKinds> held_bytes(std::uint64_t inode) const;
  bool has_pressure() const { return machine_.pressure; }

 private:
  Cgroup* at(std::uint64_t inode);
  bool inside(std::uint64_t inode, std::uint64_t ancestor) const;

  // memory_controller.cpp
  int write_memory_limit(Cgroup& cgroup, std::string_view file, std::string_view text);
  void shrink_to_max(Cgroup& cgroup);
  void shrink_to_high(Cgroup& cgroup);
  std::uint64_t reclaim(std::uint64_t top, std::uint64_t bytes);
  std::uint64_t reclaim_from(Cgroup& cgroup, std::uint64_t bytes, std::uint64_t protected_bytes);
  void count(std::uint64_t inode, std::uint64_t MemoryEventCounts::*event);
  bool kill_one(std::uint64_t limiting);
  void add_memory(std::uint64_t inode, MemoryKind kind, std::uint64_t bytes);
  void take_memory(std::uint64_t inode, MemoryKind kind, std::uint64_t bytes);
  bool fits(int pid, std::uint64_t inode, std::uint64_t bytes);

  // cpu_controller.cpp
  int write_cpu_max(Cgroup& cgroup, std::string_view text);
  int write_cpu_burst(Cgroup& cgroup, std::string_view text);
  int write_cpu_weight(Cgroup& cgroup, std::string_view text);
  void run_slice(std::uint64_t usec);
  void run_process(const SimulatedProcess& process, std::uint64_t usec, double share);
  void refill();
  void update_pressure();

  // kernel_files.cpp
  int write_value(Cgroup& cgroup, std::string_view file, std::string_view text);

  Machine machine_;
  std::map<std::uint64_t, Cgroup> cgroups_;
  std::map<int, SimulatedProcess> processes_;
  std::vector<OomKill> kills_;
  std::uint64_t next_inode_ = kRoot + 1;
  int next_pid_ = 100;
  std::uint64_t now_usec_ = 0, pressure_time_usec_ = 0;
};

// The kernel's own parsers: memparse() with its suffixes, kstrtoull(), sscanf("%llu"). Absent means
// EINVAL.
struct ParsedMemory {
  std::optional<std::uint64_t> bytes;  // empty: "max"
};
std::optional<ParsedMemory> parse_memory_text(std::string_view text);
std::optional<std::uint64_t> parse_number_text(std::string_view text);

// The same name as static text. Empty if no cgroup has such a file.
std::string_view file_named(std::string_view name);

}  // namespace cgphase::simulator
