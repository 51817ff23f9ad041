#include "collectors/cgroup_files.h"

#include <fcntl.h>
#include <sys/resource.h>
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
    KernelFile::memory_min, KernelFile::memory_swap_max, KernelFile::pids_max};

// One pread, for a kernel file gives its whole text at offset 0. Empty on any failure, errno says
// which.
std::optional<std::string_view> read_text(int fd, std::span<char> buffer) {
  ssize_t count;
  do {
    count = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return std::nullopt;
  return std::string_view(buffer.data(), static_cast<std::size_t>(count));
}

// Whether the end of a text is missing. Of io.stat some kernels write the last device without
// numbers and newline.
bool is_cut(KernelFile file, std::string_view text, std::size_t room) {
  if (text.size() >= room) return true;
  if (text.empty()) return false;
  return text.back() != '\n' && !(file == KernelFile::io_stat && text.back() == ' ');
}

// The kernel had no memory for the text, or was interrupted: nothing is said of the file.
bool is_passing(int error_number) {
  return error_number == ENOMEM || error_number == EAGAIN || error_number == EINTR;
}

// Counters of which some devices may be missing: none falls.
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

// The kernel gives out the lowest number that is free: so few are left then. They are for others:
// who asks for the status, a container that comes, a limit that goes back.
bool is_reserved(int fd) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
  const auto number = static_cast<rlim_t>(fd);
  return number < limit.rlim_cur && number + kReservedDescriptors >= limit.rlim_cur;
}

// A number of a walk that is another one when files of this cgroup may tell something else.
std::optional<std::uint64_t> walked(const Pulled& pulled, std::uint64_t part,
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
  }
  return "";
}

CgroupFiles::CgroupFiles(Fd directory) : directory_(std::move(directory)) {
  is_cgroup_ = is_cgroup2(directory_.get());
}

bool CgroupFiles::read(MonotonicTime now, Sample& sample, std::span<char> buffer,
                       const Look& look, const Pulled& pulled) {
  sample = Sample{};
  lost_file_ = false;
  const bool due = is_due(now, absent_time_, kAbsentPeriod);
  if (std::exchange(misses_file_, false) || due) {
    // Their own period may be ten times as long.
    if (limit_came()) {
      limits_time_.reset();
      slow_time_.reset();
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      Slot& slot = slots_[i];
      if (!slot.absent || !(slot.known || due)) continue;
      slot.absent = slot.known && !is_there(static_cast<KernelFile>(i));
      misses_file_ = misses_file_ || slot.absent;
    }
    short_of_descriptors_ = short_of_descriptors_ && !due;
    if (due) absent_time_ = now;
  }
  read_usage(now, look, sample, buffer, pulled);
  read_events(now, look, buffer, pulled);
  read_written(now, look, buffer, pulled);
  read_memory(now, look, sample, buffer, pulled);
  if (is_due(now, pressure_time_, look.sparse ? kSparsePeriod : kPressurePeriod))
    read_pressure(now, buffer, pulled);
  fill_kept(sample);
  return !is_gone(sample);
}

void CgroupFiles::read_events(MonotonicTime now, const Look& look, std::span<char> buffer,
                              const Pulled& pulled) {
  const std::optional<std::uint64_t> state = walked(pulled, PULL_STATE, &pull_record::state);
  const bool pulled_events = pull_memory_events(pulled);
  const bool moved = state && state != state_;
  const bool walk_tells = state && pulled_events;
  if (!look.events && !moved &&
      !is_due(now, events_time_, walk_tells ? kWalkedEventsPeriod : kUntoldEventsPeriod))
    return;
  failed_ = false;
  if (!pulled_events) read_memory_events(buffer);
  read_cgroup_events(buffer);
  state_ = state;
  events_time_ = stamp(now);
}

// What a walk tells of before the files are read is read; what is written meanwhile it tells later.
void CgroupFiles::read_written(MonotonicTime now, const Look& look, std::span<char> buffer,
                               const Pulled& pulled) {
  const std::optional<std::uint64_t> limits = walked(pulled, PULL_LIMITS, &pull_record::limits);
  const bool moved = limits && limits != limits_;
  // Who is told of each write knows of all of them.
  const bool written = look.told && look.limits;
  if (moved || written)
    for (const KernelFile file : kFilesOfLimits) slots_[index_of(file)].absent = false;
  const bool in_play = look.untold_limits_period < kUntoldLimitsPeriod;
  const std::chrono::seconds period = !limits   ? look.untold_limits_period
                                      : in_play ? kUntoldLimitsPeriod
                                                : kWalkedLimitsPeriod;
  if (look.limits || moved || is_due(now, limits_time_, period)) {
    failed_ = false;
    read_limits(buffer);
    limits_time_ = stamp(now);
  }
  const std::chrono::seconds slow_period =
      limits ? period : look.told ? kUntoldLimitsPeriod : kSlowPeriod;
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
  const auto text = read_held(file, buffer);
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

// A file that never told anything is not there, or not for us: then the walk may not speak for it.
// One that is spoken for needs no descriptor.
bool CgroupFiles::take(KernelFile file, const Pulled& pulled, std::uint64_t part) {
  Slot& slot = slots_[index_of(file)];
  if (pulled.record == nullptr || (pulled.record->parts & part) != part || !slot.told) return false;
  slot.fd.reset();
  slot.cut = false;
  return true;
}

// Whether the walk tells of a controller that the file did not have when it was read.
bool CgroupFiles::bandwidth_came(MonotonicTime now, const Pulled& pulled) {
  const bool told = pulled.record != nullptr && (pulled.record->parts & PULL_BANDWIDTH) != 0;
  if (cpu_bandwidth_ || !told || !is_due(now, bandwidth_time_, kAbsentPeriod)) return false;
  bandwidth_time_ = now;
  return true;
}

void CgroupFiles::read_cpu(MonotonicTime now, Sample& sample, std::span<char> buffer,
                           const Pulled& pulled) {
  const std::uint64_t parts = cpu_bandwidth_ ? PULL_CPU | PULL_BANDWIDTH : PULL_CPU;
  if (!bandwidth_came(now, pulled) && take(KernelFile::cpu_stat, pulled, parts)) {
    sample.cpu = cpu_stat_of(*pulled.record);
    if (!cpu_bandwidth_) sample.cpu.nr_periods = sample.cpu.nr_throttled = std::nullopt;
    if (!cpu_bandwidth_) sample.cpu.throttled_usec.reset();
    cpu_time_.fill(*pulled.record, sample.cpu);
    return;
  }
  if (const auto text = read_held(KernelFile::cpu_stat, buffer)) sample.cpu = scan_cpu_stat(*text);
  cpu_bandwidth_ = sample.cpu.nr_throttled.has_value();
}

void CgroupFiles::read_usage(MonotonicTime now, const Look& look, Sample& sample,
                             std::span<char> buffer, const Pulled& pulled) {
  read_cpu(now, sample, buffer, pulled);
  sample.memory_current = take(KernelFile::memory_current, pulled, PULL_MEMORY)
                              ? pages(pulled.record->memory_pages)
                              : as_bytes(read_count(KernelFile::memory_current, buffer));
  read_pids(now, look, sample, buffer, pulled);
  read_io(now, look, sample, buffer, pulled);
}

void CgroupFiles::read_pids(MonotonicTime now, const Look& look, Sample& sample,
                            std::span<char> buffer, const Pulled& pulled) {
  if (take(KernelFile::pids_current, pulled, PULL_PIDS)) {
    kept_.pids_current = pulled.record->pids;
  } else if (!look.sparse || is_due(now, pids_time_, kSparsePeriod)) {
    failed_ = false;
    kept_.pids_current = read_count(KernelFile::pids_current, buffer);
    pids_time_ = stamp(now);
  }
  sample.pids_current = kept_.pids_current;
}

// Who does I/O wakes up for it; what is written back later is seen later.
void CgroupFiles::read_io(MonotonicTime now, const Look& look, Sample& sample,
                          std::span<char> buffer, const Pulled& pulled) {
  const Counter& usage = sample.cpu.usage_usec;
  const bool idle = usage && usage == kept_.io_usage_usec;
  if (take(KernelFile::io_stat, pulled, PULL_IO)) {
    kept_.io = io_stat_of(*pulled.record);
  } else if (!look.sparse || !idle || is_due(now, io_time_, kSparsePeriod)) {
    failed_ = false;
    const auto text = read_held(KernelFile::io_stat, buffer);
    const IoStat io = text ? scan_io_stat(*text) : IoStat{};
    kept_.io = failed_ ? not_below(io, kept_.io) : io;
    kept_.io_usage_usec = usage;
    io_time_ = stamp(now);
  }
  sample.io = kept_.io;
}

bool CgroupFiles::pull_memory_events(const Pulled& pulled) {
  if (!kept_.own_limit_events.oom || !take(KernelFile::memory_events, pulled, PULL_MEMORY))
    return false;
  kept_.memory_events = memory_events_of(*pulled.record);
  kept_.own_limit_events = {pulled.record->own_max, pulled.record->own_oom};
  return true;
}

// memory.events.local is read after memory.events, which counts each of its events too: so what is
// only there was not ours, and while nothing is new there, nothing is new here.
void CgroupFiles::read_memory_events(std::span<char> buffer) {
  MemoryEvents events;
  OwnLimitEvents own;
  if (const auto text = read_held(KernelFile::memory_events, buffer)) {
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
  const auto text = read_held(KernelFile::cgroup_events, buffer);
  kept_.cgroup_events = text ? scan_cgroup_events(*text) : CgroupEvents{};
}

// One that was absent is there now.
bool CgroupFiles::limit_came() const {
  return std::ranges::any_of(kFilesOfLimits, [this](KernelFile file) {
    return slots_[index_of(file)].absent && is_there(file);
  });
}

bool CgroupFiles::is_there(KernelFile file) const {
  return ::faccessat(directory_.get(), kernel_file_name(file), F_OK, 0) == 0;
}

// Of a limit that was cut the one before stands: none is no limit, and a part of one is another's.
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
    const auto text = read_held(file, buffer);
    return text ? scan_limit(*text) : std::nullopt;
  };
  put(limits.cpu_max, [&] {
    const auto text = read_held(KernelFile::cpu_max, buffer);
    return text ? scan_cpu_max(*text) : std::nullopt;
  });
  put(limits.cpu_max_burst,
      [&] { return as_microseconds(read_count(KernelFile::cpu_max_burst, buffer)); });
  put(limits.cpu_weight, [&] { return as_weight(read_count(KernelFile::cpu_weight, buffer)); });
  put(limits.memory_max, [&] { return memory(KernelFile::memory_max); });
  put(limits.memory_high, [&] { return memory(KernelFile::memory_high); });
  failed_ = failed;
}

bool CgroupFiles::memory_is_due(MonotonicTime now, const Look& look, const Sample& sample) const {
  const std::optional<Bytes> current = sample.memory_current;
  const bool idle = sample.cpu.usage_usec && sample.cpu.usage_usec == kept_.usage_usec &&
                    current && current == kept_.memory_current;
  if (idle) return is_due(now, memory_time_, kIdleMemoryPeriod);
  if (!look.memory_period || !current || !kept_.memory_current) return true;
  const std::uint64_t before = kept_.memory_current->value;
  const std::uint64_t moved =
      std::max(before, current->value) - std::min(before, current->value);
  return moved > before / kMovedMemoryShare || is_due(now, memory_time_, *look.memory_period);
}

// memory.stat, memory.current and what is swapped out make up need together: those of one sample
// are of one moment.
void CgroupFiles::read_memory(MonotonicTime now, const Look& look, Sample& sample,
                              std::span<char> buffer, const Pulled& pulled) {
  const bool lines = pulled.memory && take(KernelFile::memory_stat, pulled, PULL_MEMORY);
  bool due = lines || memory_is_due(now, look, sample);
  failed_ = slots_[index_of(KernelFile::memory_current)].cut;
  if (due || !look.memory_period)
    kept_.swap_current = take(KernelFile::memory_swap_current, pulled, PULL_MEMORY)
                             ? pages(pulled.record->swap_pages)
                             : as_bytes(read_count(KernelFile::memory_swap_current, buffer));
  // Without one of the two numbers need would be too small.
  const bool cut = failed_;
  due = due || cut;
  if (lines) {
    kept_.memory = *pulled.memory;
  } else if (due) {
    const auto text = read_held(KernelFile::memory_stat, buffer);
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
  read_memory_peak(now, look, buffer, pulled);
}

void CgroupFiles::read_memory_peak(MonotonicTime now, const Look& look, std::span<char> buffer,
                                   const Pulled& pulled) {
  if (take(KernelFile::memory_peak, pulled, PULL_MEMORY)) {
    kept_.memory_peak = pages(pulled.record->memory_peak_pages);
  } else if (!look.memory_period || is_due(now, peak_time_, kSlowPeriod)) {
    failed_ = false;
    kept_.memory_peak = as_bytes(read_count(KernelFile::memory_peak, buffer));
    peak_time_ = stamp(now);
  }
}

std::optional<MemoryLineValues> CgroupFiles::read_memory_lines(std::span<char> buffer) {
  const auto text = read_held(KernelFile::memory_stat, buffer);
  return text ? std::optional(scan_memory_lines(*text)) : std::nullopt;
}

void CgroupFiles::read_pressure(MonotonicTime now, std::span<char> buffer, const Pulled& pulled) {
  const bool told = pulled.record != nullptr && (pulled.record->parts & PULL_PRESSURE) != 0;
  if (told) stalls_.take(*pulled.record);
  failed_ = false;
  const auto pressure = [&](KernelFile file, std::size_t resource) {
    if (take(file, pulled, PULL_PRESSURE)) return stalls_.pressure(resource);
    const auto text = read_held(file, buffer);
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

std::optional<std::string_view> CgroupFiles::read_held(KernelFile file, std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  if (slot.absent) return std::nullopt;
  if (!slot.fd.valid()) slot.fd = open_file(file);
  slot.cut = false;
  const auto text = slot.fd.valid() ? read_from(slot.fd, file, buffer) : std::nullopt;
  slot.told = text.has_value();
  slot.known = slot.known || slot.told;
  if (text || slot.cut) return text;
  slot.fd.reset();
  miss(slot);
  return std::nullopt;
}

std::optional<std::string_view> CgroupFiles::read_once(KernelFile file, std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  if (slot.absent) return std::nullopt;
  const Fd fd = open_file(file);
  slot.cut = false;
  slot.known = slot.known || fd.valid();
  if (fd.valid()) return read_from(fd, file, buffer);
  miss(slot);
  return std::nullopt;
}

void CgroupFiles::miss(Slot& slot) {
  slot.absent = true;
  misses_file_ = misses_file_ || slot.known;
}

Fd CgroupFiles::open_file(KernelFile file) {
  // Not open_at(): absence is frequent here and its error text would allocate.
  const int fd = ::openat(directory_.get(), kernel_file_name(file),
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) short_of_descriptors_ = true;
  if (fd >= 0 && is_reserved(fd)) {
    ::close(fd);
    short_of_descriptors_ = true;
    return Fd();
  }
  return Fd(fd);
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
