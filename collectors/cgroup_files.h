// The files of one cgroup, read through a directory descriptor and file descriptors that stay
// open: open+read+close costs three times a pread. A held descriptor costs 5 KB of kernel memory,
// so files that hardly change are opened for each reading instead.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/kernel_text.h"
#include "collectors/memory_lines.h"
#include "collectors/pulled.h"
#include "collectors/sample.h"

namespace cgphase {

// The files that are read. Their names stand in kernel_file_name() and nowhere else.
enum class KernelFile : std::uint8_t {
  cpu_stat, memory_current, memory_stat, memory_events, memory_peak, memory_swap_current,
  io_stat, pids_current, cgroup_events,
  cpu_max, cpu_max_burst, cpu_weight, memory_max, memory_high,
  cpu_pressure, memory_pressure, io_pressure,
  memory_low, memory_min, memory_swap_max, pids_max, memory_events_local,
};
inline constexpr std::size_t kKernelFileCount = 22;
const char* kernel_file_name(KernelFile file);

// The kernel brings pressure up to date every 2 s; between, the last reading is what it would
// say. A little less, so that a tick that comes early by a hair does not wait for the next one.
inline constexpr std::chrono::milliseconds kPressurePeriod{1900};
// memory.low, memory.min, memory.swap.max, pids.max.
inline constexpr std::chrono::seconds kSlowPeriod{10};
// memory.stat costs more than all else together. While neither CPU time nor memory.current of a
// cgroup moved, the last reading stands, this long at most.
inline constexpr std::chrono::seconds kIdleMemoryPeriod{10};
// Limits of which nobody told that they were written, and events of which nobody told that there
// are new ones, are read all the same after so long.
inline constexpr std::chrono::seconds kUntoldLimitsPeriod{60};
inline constexpr std::chrono::seconds kUntoldCloseLimitsPeriod{5};  // where they are in play
inline constexpr std::chrono::seconds kUntoldEventsPeriod{10};
// The same where a walk tells of each change, and nothing in them is in play. Where it is, the
// period above.
inline constexpr std::chrono::minutes kWalkedLimitsPeriod{10};
inline constexpr std::chrono::seconds kWalkedEventsPeriod{60};
// memory.stat is read before its period is over where memory.current moved by more than this share
// of what it was: what grows must not grow unseen.
inline constexpr std::uint64_t kMovedMemoryShare = 32;  // 1/32
// Of one among many that are only observed, where no walk tells what files tell: memory.stat,
// pressure, pids.current. A little less than 10 s, for ticks that come early.
inline constexpr std::chrono::milliseconds kSparsePeriod{9900};
// Files that were absent are looked for again: a controller may be enabled later.
inline constexpr std::chrono::seconds kAbsentPeriod{60};
// So many descriptors are not taken for files of cgroups.
inline constexpr std::size_t kReservedDescriptors = 128;

// What a reading has to bring up to date beside usage and pressure: all of it, unless somebody
// knows better. What it leaves out stands as it was read last.
struct Look {
  bool events = true;  // memory.events, cgroup.events
  bool limits = true;
  // Each write is told of: `limits` is true because there was one.
  bool told = false;
  std::chrono::seconds untold_limits_period = kUntoldLimitsPeriod;
  // memory.stat, with it memory.swap.current: not before so long. Also memory.peak is then slow.
  std::optional<std::chrono::nanoseconds> memory_period{};
  // One of many: see kSparsePeriod. io.stat stands that long while no CPU time went by.
  bool sparse = false;
};

// Owned by the sampler's thread.
class CgroupFiles {
 public:
  // Takes the directory's descriptor. Opens no file yet.
  explicit CgroupFiles(Fd directory);

  // One reading. Absent files are absent fields. False when the cgroup is gone; `sample` is then
  // undefined. No allocation.
  // What `pulled` has is taken from there instead of the file, if the file told it before.
  bool read(MonotonicTime now, Sample& sample, std::span<char> buffer, const Look& look = {},
            const Pulled& pulled = {});
  // What stands in memory.stat at this moment.
  std::optional<MemoryLineValues> read_memory_lines(std::span<char> buffer);

  int directory_fd() const { return directory_.get(); }

  // Files that could not be opened for want of descriptors at the last try.
  bool short_of_descriptors() const { return short_of_descriptors_; }
  // A file of which the last reading lacked the end, or failed for want of memory: what was whole
  // counts, and it is read again at the next tick.
  std::optional<KernelFile> cut_file() const;

 private:
  // One that never was there is not tried again before the next kAbsentPeriod, one that was is at
  // the next reading. The slow files hold no fd.
  struct Slot {
    Fd fd;
    bool absent = false;
    bool known = false;  // was there once
    bool told = false;  // gave its text when it was read last
    bool cut = false;   // not all of it
  };
  std::optional<std::string_view> read_from(const Fd& fd, KernelFile file, std::span<char> buffer);
  // When what was read since failed_ was cleared is next due: at once, where some of it was cut.
  std::optional<MonotonicTime> stamp(MonotonicTime now) const;
  std::optional<std::string_view> read_held(KernelFile file, std::span<char> buffer);
  std::optional<std::string_view> read_once(KernelFile file, std::span<char> buffer);
  Fd open_file(KernelFile file);
  void miss(Slot& slot);
  bool is_there(KernelFile file) const;
  bool take(KernelFile file, const Pulled& pulled, std::uint64_t part);
  bool bandwidth_came(MonotonicTime now, const Pulled& pulled);
  void read_cpu(MonotonicTime now, Sample& sample, std::span<char> buffer, const Pulled& pulled);
  void read_usage(MonotonicTime now, const Look& look, Sample& sample, std::span<char> buffer,
                  const Pulled& pulled);
  void read_io(MonotonicTime now, const Look& look, Sample& sample, std::span<char> buffer,
               const Pulled& pulled);
  void read_pids(MonotonicTime now, const Look& look, Sample& sample, std::span<char> buffer,
                 const Pulled& pulled);
  void read_memory_events(std::span<char> buffer);
  bool pull_memory_events(const Pulled& pulled);
  void read_events(MonotonicTime now, const Look& look, std::span<char> buffer,
                   const Pulled& pulled);
  void read_written(MonotonicTime now, const Look& look, std::span<char> buffer,
                    const Pulled& pulled);
  void read_cgroup_events(std::span<char> buffer);
  bool limit_came() const;
  void read_limits(std::span<char> buffer);
  void read_memory(MonotonicTime now, const Look& look, Sample& sample, std::span<char> buffer,
                   const Pulled& pulled);
  void read_memory_peak(MonotonicTime now, const Look& look, std::span<char> buffer,
                        const Pulled& pulled);
  Counter read_count(KernelFile file, std::span<char> buffer);
  bool memory_is_due(MonotonicTime now, const Look& look, const Sample& sample) const;
  void read_pressure(MonotonicTime now, std::span<char> buffer, const Pulled& pulled);
  void read_slow(MonotonicTime now, std::span<char> buffer);
  void fill_kept(Sample& sample) const;
  bool is_gone(const Sample& sample) const;

  // What was read at most a period ago and still stands.
  struct Kept {
    Pressure cpu_pressure, memory_pressure, io_pressure;
    MemoryStat memory;
    MemoryEvents memory_events;
    OwnLimitEvents own_limit_events;
    CgroupEvents cgroup_events;
    Limits limits;
    IoStat io;
    Counter usage_usec;     // when memory.stat was read
    Counter io_usage_usec;  // when io.stat was read
    Counter pids_current;
    std::optional<Bytes> memory_current, memory_peak, swap_current;
    std::optional<MemoryLimit> swap_max, pids_max;
  };

  Fd directory_;
  std::array<Slot, kKernelFileCount> slots_;
  Kept kept_;
  bool cpu_bandwidth_ = false;  // cpu.stat has its lines
  AdjustedCpuTime cpu_time_;
  AgingStalls stalls_;
  std::optional<std::uint64_t> state_, limits_;  // of a record, when files were read
  std::optional<MonotonicTime> pressure_time_, memory_time_, slow_time_, absent_time_;
  std::optional<MonotonicTime> events_time_, limits_time_, peak_time_;
  std::optional<MonotonicTime> io_time_, pids_time_;
  std::optional<MonotonicTime> bandwidth_time_;  // cpu.stat was read to see whether it has them
  bool is_cgroup_ = false;  // on cgroup2, not a plain directory
  bool misses_file_ = false;  // one that was there once
  bool lost_file_ = false;  // a file that was there answered ENODEV in this reading
  bool failed_ = false;     // a file was cut since this was cleared
  bool short_of_descriptors_ = false;
};

}  // namespace cgphase
