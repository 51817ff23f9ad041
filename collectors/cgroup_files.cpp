#include "collectors/cgroup_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "cgroupfs/cgroup_directory.h"

namespace cgphase {
namespace {

constexpr std::size_t index_of(KernelFile file) { return static_cast<std::size_t>(file); }

constexpr KernelFile kFilesOfLimits[] = {
    KernelFile::cpu_max,    KernelFile::cpu_max_burst, KernelFile::cpu_weight,
    KernelFile::memory_max, KernelFile::memory_high,   KernelFile::memory_low,
    KernelFile::memory_min, KernelFile::memory_swap_max, KernelFile::pids_max,
    KernelFile::cgroup_freeze};

// Reads a kernel file with one pread. After a failure the result is absent, and errno is set.
std::optional<std::string_view> read_text(int fd, std::span<char> buffer) {
  ssize_t count;
  do {
    count = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<std::size_t>(count));
}

// True if the end of a text is missing. In io.stat some kernels write the last device without
// numbers and newline.
bool is_cut(KernelFile file, std::string_view text, std::size_t room) {
  if (text.size() >= room) return true;
  if (text.empty()) return false;
  return text.back() != '\n' && !(file == KernelFile::io_stat && text.back() == ' ');
}

// True if the kernel had no memory for the text or was interrupted, so that the file may be fine.
bool is_passing(int error_number) {
  return error_number == ENOMEM || error_number == EAGAIN || error_number == EINTR;
}

// Counters never fall, even if devices are missing in the new reading.
IoStat not_below(IoStat io, const IoStat& before) {
  for (Counter IoStat::*field : {&IoStat::read_bytes, &IoStat::write_bytes, &IoStat::read_ios,
                                 &IoStat::write_ios})
    if (io.*field && before.*field) io.*field = std::max(*(io.*field), *(before.*field));
  return io;
}

bool is_due(MonotonicTime now, const std::optional<MonotonicTime>& last,
            std::chrono::nanoseconds period) {
  return !last || now < *last || now - *last >= period;
}

// A number of the record, which changes if files of this cgroup may have changed.
std::optional<std::uint64_t> number_in(const Pulled& pulled, std::uint64_t part,
                                    __u64 pull_record::*number) {
  if (pulled.record == nullptr || (pulled.record->parts & part) == 0) return std::nullopt;
  return pulled.record->*number;
}

std::optional<Bytes> as_bytes(const Counter& number) {
  if (!number) return std::nullopt;
  return Bytes{*number};
}

std::optional<Microseconds> as_microseconds(const Counter& number) {
  if (!number) return std::nullopt;
  return Microseconds{*number};
}

std::optional<std::uint32_t> as_weight(const Counter& number) {
  if (!number || *number > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*number);
}

}  // namespace

const char* kernel_file_name(KernelFile file) {
  switch (file) {
    case KernelFile::cpu_stat: return "cpu.stat";
    case KernelFile::memory_current: return "memory.current";
    case KernelFile::memory_stat: return "memory.stat";
    case KernelFile::memory_events: return "memory.events";
    case KernelFile::memory_peak: return "memory.peak";
    case KernelFile::memory_swap_current: return "memory.swap.current";
    case KernelFile::io_stat: return "io.stat";
    case KernelFile::pids_current: return "pids.current";
    case KernelFile::cgroup_events: return "cgroup.events";
    case KernelFile::cpu_max: return file_name(Knob::cpu_max);
    case KernelFile::cpu_max_burst: return file_name(Knob::cpu_max_burst);
    case KernelFile::cpu_weight: return file_name(Knob::cpu_weight);
    case KernelFile::memory_max: return file_name(Knob::memory_max);
    case KernelFile::memory_high: return file_name(Knob::memory_high);
    case KernelFile::cpu_pressure: return "cpu.pressure";
    case KernelFile::memory_pressure: return "memory.pressure";
    case KernelFile::io_pressure: return "io.pressure";
    case KernelFile::memory_low: return "memory.low";
    case KernelFile::memory_min: return "memory.min";
    case KernelFile::memory_swap_max: return "memory.swap.max";
    case KernelFile::pids_max: return "pids.max";
    case KernelFile::memory_events_local: return "memory.events.local";
    case KernelFile::cgroup_freeze: return file_name(Knob::cgroup_freeze);
  }
  return "";
}

CgroupFiles::CgroupFiles(Fd directory) : directory_(std::move(directory)) {
  is_cgroup_ = is_cgroup2(directory_.get());
}

bool CgroupFiles::read(MonotonicTime now, Sample& sample, std::span<char> buffer,
                       const ReadPlan& plan, const Pulled& pulled) {
  sample = Sample{};
  lost_file_ = false;
  const bool due = is_due(now, absent_time_, kAbsentPeriod);
  if (std::exchange(misses_file_, false) || due) {
    // The period of limits may be longer than kAbsentPeriod.
    if (limit_appeared()) {
      limits_time_.reset();
      slow_time_.reset();
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (!slot.absent || !(slot.known || due)) continue;
      slot.absent = slot.known && !exists(static_cast<KernelFile>(i));
      misses_file_ = misses_file_ || slot.absent;
    }
    short_of_descriptors_ = short_of_descriptors_ && !due;
    if (due) absent_time_ = now;
  }
  read_usage(now, plan, sample, buffer, pulled);
  read_events(now, plan, buffer, pulled);
  read_written(now, plan, buffer, pulled);
  read_memory(now, plan, sample, buffer, pulled);
  if (is_due(now, pressure_time_, plan.sparse ? kSparsePeriod : kPressurePeriod))
    read_pressure(now, buffer, pulled);
  fill_kept(sample);
  return !is_gone(sample);
}

void CgroupFiles::read_events(MonotonicTime now, const ReadPlan& plan, std::span<char> buffer,
                              const Pulled& pulled) {
  const std::optional<std::uint64_t> state = number_in(pulled, PULL_STATE, &pull_record::state);
  const bool pulled_events = pull_memory_events(pulled);
  const bool moved = state && state != state_;
  const bool walk_reports = state && pulled_events;
  if (!plan.events && !moved &&
      !is_due(now, events_time_, walk_reports ? kWalkedEventsPeriod : kEventsPeriod))
    return;
  failed_ = false;
  if (!pulled_events) read_memory_events(buffer);
  read_cgroup_events(buffer);
  state_ = state;
  events_time_ = stamp(now);
}

// The walk comes before the files, so that the next walk reports a write that happens meanwhile.
void CgroupFiles::read_written(MonotonicTime now, const ReadPlan& plan, std::span<char> buffer,
                               const Pulled& pulled) {
  const std::optional<std::uint64_t> limits =
      number_in(pulled, PULL_LIMITS, &pull_record::limits);
  const bool moved = limits && limits != limits_;
  const bool written = plan.writes_reported && plan.limits;
  if (moved || written)
    for (const KernelFile file : kFilesOfLimits) slots_[index_of(file)].absent = false;
  const bool detailed = plan.limits_period < kLimitsPeriod;
  const std::chrono::seconds period = !limits   ? plan.limits_period
                                      : detailed ? kLimitsPeriod
                                                : kWalkedLimitsPeriod;
  if (plan.limits || moved || is_due(now, limits_time_, period)) {
    failed_ = false;
    read_limits(buffer);
    limits_time_ = stamp(now);
  }
  const std::chrono::seconds slow_period =
      limits ? period : plan.writes_reported ? kLimitsPeriod : kSlowPeriod;
  if (written || moved || is_due(now, slow_time_, slow_period)) read_slow(now, buffer);
  if (moved) limits_ = limits;
}

void CgroupFiles::fill_kept(Sample& sample) const {
  sample.limits = kept_.limits;
  sample.memory = kept_.memory;
  sample.memory_peak = kept_.memory_peak;
  sample.swap_current = kept_.swap_current;
  sample.memory_events = kept_.memory_events;
  sample.own_limit_events = kept_.own_limit_events;
  sample.populated = kept_.cgroup_events.populated;
  sample.frozen = kept_.cgroup_events.frozen;
  sample.cpu_pressure = kept_.cpu_pressure;
  sample.memory_pressure = kept_.memory_pressure;
  sample.io_pressure = kept_.io_pressure;
  sample.swap_max = kept_.swap_max;
  sample.pids_max = kept_.pids_max;
}

Counter CgroupFiles::read_count(KernelFile file, std::span<char> buffer) {
  const auto text = read_open_file(file, buffer);
  return text ? scan_amount(*text) : std::nullopt;
}

std::optional<MonotonicTime> CgroupFiles::stamp(MonotonicTime now) const {
  return failed_ ? std::nullopt : std::optional(now);
}

std::optional<KernelFile> CgroupFiles::cut_file() const {
  const auto cut = std::ranges::find(slots_, true, &Slot::cut);
  if (cut == slots_.end()) return std::nullopt;
  return static_cast<KernelFile>(cut - slots_.begin());
}

// True if the record replaces this file, which then needs no descriptor. A file that was never
// readable does not exist or is not permitted, and the record must not replace it.
bool CgroupFiles::use_record(KernelFile file, const Pulled& pulled, std::uint64_t part) {
  Slot& slot = slots_[index_of(file)];
  if (!slot.readable || pulled.record == nullptr || (pulled.record->parts & part) != part)
    return false;
  slot.fd.reset();
  slot.cut = false;
  return true;
}

// True if the record has values of a controller that the file did not have when it was read.
bool CgroupFiles::bandwidth_appeared(MonotonicTime now, const Pulled& pulled) {
  const bool present = pulled.record != nullptr && (pulled.record->parts & PULL_BANDWIDTH) != 0;
  if (cpu_bandwidth_ || !present || !is_due(now, bandwidth_time_, kAbsentPeriod)) return false;
  bandwidth_time_ = now;
  return true;
}

void CgroupFiles::read_cpu(MonotonicTime now, Sample& sample, std::span<char> buffer,
                           const Pulled& pulled) {
  const std::uint64_t parts = cpu_bandwidth_ ? PULL_CPU | PULL_BANDWIDTH : PULL_CPU;
  if (!bandwidth_appeared(now, pulled) && use_record(KernelFile::cpu_stat, pulled, parts)) {
    sample.cpu = cpu_stat_of(*pulled.record);
    if (!cpu_bandwidth_) sample.cpu.nr_periods = sample.cpu.nr_throttled = std::nullopt;
    if (!cpu_bandwidth_) sample.cpu.throttled_usec.reset();
    cpu_time_.fill(*pulled.record, sample.cpu);
    return;
  }
  if (const auto text = read_open_file(KernelFile::cpu_stat, buffer))
    sample.cpu = scan_cpu_stat(*text);
  cpu_bandwidth_ = sample.cpu.nr_throttled.has_value();
}

void CgroupFiles::read_usage(MonotonicTime now, const ReadPlan& plan, Sample& sample,
                             std::span<char> buffer, const Pulled& pulled) {
  read_cpu(now, sample, buffer, pulled);
  sample.memory_current = use_record(KernelFile::memory_current, pulled, PULL_MEMORY)
                              ? pages(pulled.record->memory_pages)
                              : as_bytes(read_count(KernelFile::memory_current, buffer));
  read_pids(now, plan, sample, buffer, pulled);
  read_io(now, plan, sample, buffer, pulled);
}

void CgroupFiles::read_pids(MonotonicTime now, const ReadPlan& plan, Sample& sample,
                            std::span<char> buffer, const Pulled& pulled) {
  if (use_record(KernelFile::pids_current, pulled, PULL_PIDS)) {
    kept_.pids_current = pulled.record->pids;
  } else if (!plan.sparse || is_due(now, pids_time_, kSparsePeriod)) {
    failed_ = false;
    kept_.pids_current = read_count(KernelFile::pids_current, buffer);
    pids_time_ = stamp(now);
  }
  sample.pids_current = kept_.pids_current;
}

// A process that does I/O uses CPU time. Later writeback is seen later.
void CgroupFiles::read_io(MonotonicTime now, const ReadPlan& plan, Sample& sample,
                          std::span<char> buffer, const Pulled& pulled) {
  const Counter& usage = sample.cpu.usage_usec;
  const bool idle = usage && usage == kept_.io_usage_usec;
  if (use_record(KernelFile::io_stat, pulled, PULL_IO)) {
    kept_.io = io_stat_of(*pulled.record);
  } else if (!plan.sparse || !idle || is_due(now, io_time_, kSparsePeriod)) {
    failed_ = false;
    const auto text = read_open_file(KernelFile::io_stat, buffer);
    const IoStat io = text ? scan_io_stat(*text) : IoStat{};
    kept_.io = failed_ ? not_below(io, kept_.io) : io;
    kept_.io_usage_usec = usage;
    io_time_ = stamp(now);
  }
  sample.io = kept_.io;
}

bool CgroupFiles::pull_memory_events(const Pulled& pulled) {
  if (!kept_.own_limit_events.oom || !use_record(KernelFile::memory_events, pulled, PULL_MEMORY))
    return false;
  kept_.memory_events = memory_events_of(*pulled.record);
  kept_.own_limit_events = {pulled.record->own_max, pulled.record->own_oom};
  return true;
}

// memory.events also counts each event of memory.events.local. So memory.events.local, which is
// read after it, has no new event if memory.events has none.
void CgroupFiles::read_memory_events(std::span<char> buffer) {
  MemoryEvents events;
  OwnLimitEvents own;
  if (const auto text = read_open_file(KernelFile::memory_events, buffer)) {
    events = scan_memory_events(*text);
    own = kept_.own_limit_events;
    if (!own.oom || events != kept_.memory_events) {
      const auto local = read_once(KernelFile::memory_events_local, buffer);
      const MemoryEvents scanned = local ? scan_memory_events(*local) : MemoryEvents{};
      own = {scanned.max, scanned.oom};
    }
  }
  kept_.memory_events = events;
  kept_.own_limit_events = own;
}

void CgroupFiles::read_cgroup_events(std::span<char> buffer) {
  const auto text = read_open_file(KernelFile::cgroup_events, buffer);
  kept_.cgroup_events = text ? scan_cgroup_events(*text) : CgroupEvents{};
}

// True if an absent limit file exists now.
bool CgroupFiles::limit_appeared() const {
  return std::ranges::any_of(kFilesOfLimits, [this](KernelFile file) {
    return slots_[index_of(file)].absent && exists(file);
  });
}

bool CgroupFiles::exists(KernelFile file) const {
  return ::faccessat(directory_.get(), kernel_file_name(file), F_OK, 0) == 0;
}

// A limit whose text was cut keeps its last value, because a part of a number is another number.
void CgroupFiles::read_limits(std::span<char> buffer) {
  Limits& limits = kept_.limits;
  bool failed = false;
  const auto put = [&](auto& limit, auto read) {
    failed_ = false;
    auto found = read();
    if (!failed_) limit = found;
    failed = failed || failed_;
  };
  const auto memory = [&](KernelFile file) {
    const auto text = read_open_file(file, buffer);
    return text ? scan_limit(*text) : std::nullopt;
  };
  put(limits.cpu_max, [&] {
    const auto text = read_open_file(KernelFile::cpu_max, buffer);
    return text ? scan_cpu_max(*text) : std::nullopt;
  });
  put(limits.cpu_max_burst,
      [&] { return as_microseconds(read_count(KernelFile::cpu_max_burst, buffer)); });
  put(limits.cpu_weight, [&] { return as_weight(read_count(KernelFile::cpu_weight, buffer)); });
  put(limits.memory_max, [&] { return memory(KernelFile::memory_max); });
  put(limits.memory_high, [&] { return memory(KernelFile::memory_high); });
  put(limits.frozen, [&]() -> std::optional<bool> {
    const Counter number = read_count(KernelFile::cgroup_freeze, buffer);
    return number ? std::optional(*number != 0) : std::nullopt;
  });
  failed_ = failed;
}

bool CgroupFiles::memory_is_due(MonotonicTime now, const ReadPlan& plan,
                                const Sample& sample) const {
  const std::optional<Bytes> current = sample.memory_current;
  const bool idle = sample.cpu.usage_usec && sample.cpu.usage_usec == kept_.usage_usec &&
                    current && current == kept_.memory_current;
  if (idle) return is_due(now, memory_time_, kIdleMemoryPeriod);
  if (!plan.memory_period || !current || !kept_.memory_current) return true;
  const std::uint64_t before = kept_.memory_current->value;
  const std::uint64_t moved =
      std::max(before, current->value) - std::min(before, current->value);
  return moved > before / kMovedMemoryShare || is_due(now, memory_time_, *plan.memory_period);
}

// memory.stat, memory.current and swap together make up need, so that one sample has values of one
// moment.
void CgroupFiles::read_memory(MonotonicTime now, const ReadPlan& plan, Sample& sample,
                              std::span<char> buffer, const Pulled& pulled) {
  const bool lines = pulled.memory && use_record(KernelFile::memory_stat, pulled, PULL_MEMORY);
  bool due = lines || memory_is_due(now, plan, sample);
  failed_ = slots_[index_of(KernelFile::memory_current)].cut;
  if (due || !plan.memory_period)
    kept_.swap_current = use_record(KernelFile::memory_swap_current, pulled, PULL_MEMORY)
                             ? pages(pulled.record->swap_pages)
                             : as_bytes(read_count(KernelFile::memory_swap_current, buffer));
  // Without one of the two numbers need would be too small.
  const bool cut = failed_;
  due = due || cut;
  if (lines) {
    kept_.memory = *pulled.memory;
  } else if (due) {
    const auto text = read_open_file(KernelFile::memory_stat, buffer);
    kept_.memory = text ? scan_memory_stat(*text) : MemoryStat{};
  }
  if (cut) kept_.memory = {};
  if (due) {
    kept_.usage_usec = sample.cpu.usage_usec;
    kept_.memory_current = sample.memory_current;
    memory_time_ = stamp(now);
  } else {
    sample.memory_current = kept_.memory_current;
  }
  read_memory_peak(now, plan, buffer, pulled);
}

void CgroupFiles::read_memory_peak(MonotonicTime now, const ReadPlan& plan, std::span<char> buffer,
                                   const Pulled& pulled) {
  if (use_record(KernelFile::memory_peak, pulled, PULL_MEMORY)) {
    kept_.memory_peak = pages(pulled.record->memory_peak_pages);
  } else if (!plan.memory_period || is_due(now, peak_time_, kSlowPeriod)) {
    failed_ = false;
    kept_.memory_peak = as_bytes(read_count(KernelFile::memory_peak, buffer));
    peak_time_ = stamp(now);
  }
}

std::optional<MemoryLineValues> CgroupFiles::read_memory_lines(std::span<char> buffer) {
  const auto text = read_open_file(KernelFile::memory_stat, buffer);
  return text ? std::optional(scan_memory_lines(*text)) : std::nullopt;
}

void CgroupFiles::read_pressure(MonotonicTime now, std::span<char> buffer, const Pulled& pulled) {
  const bool present = pulled.record != nullptr && (pulled.record->parts & PULL_PRESSURE) != 0;
  if (present) stalls_.take(*pulled.record);
  failed_ = false;
  const auto pressure = [&](KernelFile file, std::size_t resource) {
    if (use_record(file, pulled, PULL_PRESSURE)) return stalls_.pressure(resource);
    const auto text = read_open_file(file, buffer);
    return text ? scan_pressure(*text) : Pressure{};
  };
  kept_.io_pressure = pressure(KernelFile::io_pressure, 0);
  kept_.memory_pressure = pressure(KernelFile::memory_pressure, 1);
  kept_.cpu_pressure = pressure(KernelFile::cpu_pressure, 2);
  pressure_time_ = stamp(now);
}

void CgroupFiles::read_slow(MonotonicTime now, std::span<char> buffer) {
  bool failed = false;
  const auto put = [&](std::optional<MemoryLimit>& limit, KernelFile file) {
    failed_ = false;
    const auto text = read_once(file, buffer);
    if (!failed_) limit = text ? scan_limit(*text) : std::nullopt;
    failed = failed || failed_;
  };
  put(kept_.limits.memory_low, KernelFile::memory_low);
  put(kept_.limits.memory_min, KernelFile::memory_min);
  put(kept_.swap_max, KernelFile::memory_swap_max);
  put(kept_.pids_max, KernelFile::pids_max);
  failed_ = failed;
  slow_time_ = stamp(now);
}

std::optional<std::string_view> CgroupFiles::read_from(const Fd& fd, KernelFile file,
                                                       std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  const auto text = read_text(fd.get(), buffer);
  slot.cut = text ? is_cut(file, *text, buffer.size()) : is_passing(errno);
  failed_ = failed_ || slot.cut;
  // ENODEV: the cgroup was removed, or only this file's controller was disabled.
  if (!text && errno == ENODEV) lost_file_ = true;
  return text;
}

std::optional<std::string_view> CgroupFiles::read_open_file(KernelFile file,
                                                            std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  if (slot.absent) return std::nullopt;
  if (!slot.fd.valid()) slot.fd = open_file(file);
  slot.cut = false;
  const auto text = slot.fd.valid() ? read_from(slot.fd, file, buffer) : std::nullopt;
  slot.readable = text.has_value();
  slot.known = slot.known || slot.readable;
  if (text || slot.cut) return text;
  slot.fd.reset();
  mark_absent(slot);
  return std::nullopt;
}

std::optional<std::string_view> CgroupFiles::read_once(KernelFile file, std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  if (slot.absent) return std::nullopt;
  const Fd fd = open_file(file);
  slot.cut = false;
  slot.known = slot.known || fd.valid();
  if (fd.valid()) return read_from(fd, file, buffer);
  mark_absent(slot);
  return std::nullopt;
}

void CgroupFiles::mark_absent(Slot& slot) {
  slot.absent = true;
  misses_file_ = misses_file_ || slot.known;
}

Fd CgroupFiles::open_file(KernelFile file) {
  // Not open_at(): absence is frequent here and its error text would allocate.
  Fd fd(::openat(directory_.get(), kernel_file_name(file), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  const bool exhausted = !fd.valid() && (errno == EMFILE || errno == ENFILE);
  if (!exhausted && !is_among_last(fd, kReservedDescriptors)) return fd;
  short_of_descriptors_ = true;
  return Fd();
}

bool CgroupFiles::is_gone(const Sample& sample) const {
  if (sample.cpu.usage_usec && !lost_file_) return false;
  // Every cgroup has this file, whatever its controllers. A removed one keeps its links, but no
  // entries; a removed plain directory has no links.
  if (is_cgroup_) return ::faccessat(directory_.get(), "cgroup.procs", F_OK, 0) != 0;
  struct stat status{};
  return ::fstat(directory_.get(), &status) != 0 || status.st_nlink == 0;
}

}  // namespace cgphase
