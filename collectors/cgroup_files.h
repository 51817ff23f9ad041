// Reads the files of one cgroup. Files that change often stay open, because open+read+close costs
// three times a pread. An open file costs 5 KB of kernel memory, so the others are opened for each
// reading.
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

// The files that are read.
enum class KernelFile : std::uint8_t {
  cpu_stat, memory_current, memory_stat, memory_events, memory_peak, memory_swap_current,
  io_stat, pids_current, cgroup_events,
  cpu_max, cpu_max_burst, cpu_weight, memory_max, memory_high,
  cpu_pressure, memory_pressure, io_pressure,
  memory_low, memory_min, memory_swap_max, pids_max, memory_events_local,
  cgroup_freeze,
};
inline constexpr std::size_t kKernelFileCount = 23;
const char* kernel_file_name(KernelFile file);

// The kernel updates pressure every 2 s. The period is slightly shorter, so that a tick that comes
// early does not skip an update.
inline constexpr std::chrono::milliseconds kPressurePeriod{1900};
// memory.low, memory.min, memory.swap.max, pids.max.
inline constexpr std::chrono::seconds kSlowPeriod{10};
// memory.stat costs more than all other files together. While neither CPU time nor memory.current
// of a cgroup changes, the last reading is reused for this time.
inline constexpr std::chrono::seconds kIdleMemoryPeriod{10};
// Limits and events are reread after this time, even if no change was reported.
inline constexpr std::chrono::seconds kLimitsPeriod{60};
inline constexpr std::chrono::seconds kDetailLimitsPeriod{5};  // of containers that may be changed
inline constexpr std::chrono::seconds kEventsPeriod{10};
// The same if a BPF walk reports each change and the container is only observed.
inline constexpr std::chrono::minutes kWalkedLimitsPeriod{10};
inline constexpr std::chrono::seconds kWalkedEventsPeriod{60};
// memory.stat is read early if memory.current changed by more than this fraction, so that growth is
// not missed.
inline constexpr std::uint64_t kMovedMemoryShare = 32;  // 1/32
// Period of memory.stat, pressure and pids.current of one among many containers that are only
// observed, without BPF walks. Slightly less than 10 s, for ticks that come early.
inline constexpr std::chrono::milliseconds kSparsePeriod{9900};
// Absent files are checked again after this time, because a controller may be enabled later.
inline constexpr std::chrono::seconds kAbsentPeriod{60};
// Number of descriptors that are not used for files of cgroups: they serve status requests, new
// containers and restores.
inline constexpr unsigned kReservedDescriptors = 128;

// What one reading rereads in addition to usage and pressure. Other values are reused.
struct ReadPlan {
  bool events = true;  // memory.events, cgroup.events
  bool limits = true;
  bool writes_reported = false;  // every write sets `limits`
  std::chrono::seconds limits_period = kLimitsPeriod;
  // Minimum age of memory.stat and memory.swap.current. If set, memory.peak has kSlowPeriod.
  std::optional<std::chrono::nanoseconds> memory_period{};
  // One of many: kSparsePeriod applies, also to io.stat while the cgroup uses no CPU time.
  bool sparse = false;
};

// Owned by the sampler's thread.
class CgroupFiles {
 public:
  // Opens no file yet.
  explicit CgroupFiles(Fd directory);

  // Reads once, without allocation. An absent file is an absent field. Values in `pulled` replace
  // files that were readable before. False if the cgroup is gone; `sample` is then undefined.
  bool read(MonotonicTime now, Sample& sample, std::span<char> buffer, const ReadPlan& plan = {},
            const Pulled& pulled = {});
  // Reads memory.stat now.
  std::optional<MemoryLineValues> read_memory_lines(std::span<char> buffer);

  int directory_fd() const { return directory_.get(); }

  // True if files could not be opened at the last attempt because descriptors ran out.
  bool short_of_descriptors() const { return short_of_descriptors_; }
  // A file whose last reading was truncated, or failed because the kernel had no memory. Its
  // complete lines count, and it is read again at the next tick.
  std::optional<KernelFile> cut_file() const;

 private:
  // A file that was never there is tried again after kAbsentPeriod, another one at the next
  // reading. Slow files have no open descriptor.
  struct Slot {
    Fd fd;
    bool absent = false;
    bool known = false;  // was there once
    bool readable = false;  // at the last reading
    bool cut = false;       // the text was truncated
  };
  std::optional<std::string_view> read_from(const Fd& fd, KernelFile file, std::span<char> buffer);
  // The time of the reading since failed_ was cleared; absent if it was cut and is due again.
  std::optional<MonotonicTime> stamp(MonotonicTime now) const;
  std::optional<std::string_view> read_open_file(KernelFile file, std::span<char> buffer);
  std::optional<std::string_view> read_once(KernelFile file, std::span<char> buffer);
  Fd open_file(KernelFile file);
  void mark_absent(Slot& slot);
  bool exists(KernelFile file) const;
  bool use_record(KernelFile file, const Pulled& pulled, std::uint64_t part);
  bool bandwidth_appeared(MonotonicTime now, const Pulled& pulled);
  void read_cpu(MonotonicTime now, Sample& sample, std::span<char> buffer, const Pulled& pulled);
  void read_usage(MonotonicTime now, const ReadPlan& plan, Sample& sample, std::span<char> buffer,
                  const Pulled& pulled);
  void read_io(MonotonicTime now, const ReadPlan& plan, Sample& sample, std::span<char> buffer,
               const Pulled& pulled);
  void read_pids(MonotonicTime now, const ReadPlan& plan, Sample& sample, std::span<char> buffer,
                 const Pulled& pulled);
  void read_memory_events(std::span<char> buffer);
  bool pull_memory_events(const Pulled& pulled);
  void read_events(MonotonicTime now, const ReadPlan& plan, std::span<char> buffer,
                   const Pulled& pulled);
  void read_written(MonotonicTime now, const ReadPlan& plan, std::span<char> buffer,
                    const Pulled& pulled);
  void read_cgroup_events(std::span<char> buffer);
  bool limit_appeared() const;
  void read_limits(std::span<char> buffer);
  void read_memory(MonotonicTime now, const ReadPlan& plan, Sample& sample, std::span<char> buffer,
                   const Pulled& pulled);
  void read_memory_peak(MonotonicTime now, const ReadPlan& plan, std::span<char> buffer,
                        const Pulled& pulled);
  Counter read_count(KernelFile file, std::span<char> buffer);
  bool memory_is_due(MonotonicTime now, const ReadPlan& plan, const Sample& sample) const;
  void read_pressure(MonotonicTime now, std::span<char> buffer, const Pulled& pulled);
  void read_slow(MonotonicTime now, std::span<char> buffer);
  void fill_kept(Sample& sample) const;
  bool is_gone(const Sample& sample) const;

  // The last values, which are reused until their period is over.
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
  std::optional<std::uint64_t> state_, limits_;  // of the record at the last reading of the files
  std::optional<MonotonicTime> pressure_time_, memory_time_, slow_time_, absent_time_;
  std::optional<MonotonicTime> events_time_, limits_time_, peak_time_;
  std::optional<MonotonicTime> io_time_, pids_time_;
  std::optional<MonotonicTime> bandwidth_time_;  // last check of cpu.stat for them
  bool is_cgroup_ = false;  // on cgroup2, not a plain directory
  bool misses_file_ = false;  // a file that existed before
  bool lost_file_ = false;  // a file returned ENODEV in this reading
  bool failed_ = false;     // a file was cut since this was cleared
  bool short_of_descriptors_ = false;
};

}  // namespace cgphase
