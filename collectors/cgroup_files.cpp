#include "collectors/cgroup_files.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>

#include "collectors/kernel_text.h"

namespace cgphase {
namespace {

constexpr std::size_t index_of(KernelFile file) { return static_cast<std::size_t>(file); }

// One pread, for a kernel file gives its whole text at offset 0. Empty on any failure, errno says
// which; a text that fills the buffer may be cut and is refused, one without a last newline is cut:
// half a number would be another number.
std::optional<std::string_view> read_text(int fd, std::span<char> buffer) {
  ssize_t count;
  do {
    count = ::pread(fd, buffer.data(), buffer.size(), 0);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return std::nullopt;
  if (static_cast<std::size_t>(count) >= buffer.size()) {
    errno = EFBIG;
    return std::nullopt;
  }
  if (count > 0 && buffer[static_cast<std::size_t>(count) - 1] != '\n') {
    errno = EIO;
    return std::nullopt;
  }
  return std::string_view(buffer.data(), static_cast<std::size_t>(count));
}

bool is_due(MonotonicTime now, const std::optional<MonotonicTime>& last,
            std::chrono::nanoseconds period) {
  return !last || now < *last || now - *last >= period;
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
  struct statfs status{};
  is_cgroup_ = ::fstatfs(directory_.get(), &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

Result<CgroupId> CgroupFiles::identify(int directory_fd) {
  struct stat status{};
  if (::fstat(directory_fd, &status) != 0) return errno_failure("cgroup directory", errno);
  return CgroupId{status.st_dev, status.st_ino};
}

bool CgroupFiles::read(MonotonicTime now, Sample& sample, std::span<char> buffer) {
  sample = Sample{};
  lost_file_ = false;
  if (is_due(now, absent_time_, kAbsentPeriod)) {
    for (Slot& slot : slots_) slot.absent = false;
    short_of_descriptors_ = false;
    absent_time_ = now;
  }
  read_usage(sample, buffer);
  read_limits(sample, buffer);
  read_memory_stat(now, sample, buffer);
  if (is_due(now, pressure_time_, kPressurePeriod)) read_pressure(now, buffer);
  if (is_due(now, slow_time_, kSlowPeriod)) read_slow(now, buffer);
  sample.cpu_pressure = kept_.cpu_pressure;
  sample.memory_pressure = kept_.memory_pressure;
  sample.io_pressure = kept_.io_pressure;
  sample.limits.memory_low = kept_.memory_low;
  sample.limits.memory_min = kept_.memory_min;
  sample.swap_max = kept_.swap_max;
  sample.pids_max = kept_.pids_max;
  return !is_gone(sample);
}

void CgroupFiles::read_usage(Sample& sample, std::span<char> buffer) {
  const auto number = [&](KernelFile file) -> Counter {
    const auto text = read_held(file, buffer);
    return text ? scan_number(*text) : std::nullopt;
  };
  if (const auto text = read_held(KernelFile::cpu_stat, buffer)) sample.cpu = scan_cpu_stat(*text);
  sample.memory_current = as_bytes(number(KernelFile::memory_current));
  sample.memory_peak = as_bytes(number(KernelFile::memory_peak));
  sample.swap_current = as_bytes(number(KernelFile::memory_swap_current));
  sample.pids_current = number(KernelFile::pids_current);
  if (const auto text = read_held(KernelFile::memory_events, buffer)) {
    sample.memory_events = scan_memory_events(*text);
    read_own_limit_events(sample, buffer);
  }
  if (const auto text = read_held(KernelFile::io_stat, buffer)) sample.io = scan_io_stat(*text);
  if (const auto text = read_held(KernelFile::cgroup_events, buffer)) {
    const CgroupEvents events = scan_cgroup_events(*text);
    sample.populated = events.populated;
    sample.frozen = events.frozen;
  }
}

// Read after memory.events, which counts each of them too: so what is only there was not ours, and
// while nothing is new there, nothing is new here.
void CgroupFiles::read_own_limit_events(Sample& sample, std::span<char> buffer) {
  if (!kept_.own_limit_events.oom || sample.memory_events != kept_.memory_events) {
    const auto text = read_once(KernelFile::memory_events_local, buffer);
    const MemoryEvents own = text ? scan_memory_events(*text) : MemoryEvents{};
    kept_.own_limit_events = {own.max, own.oom};
    kept_.memory_events = sample.memory_events;
  }
  sample.own_limit_events = kept_.own_limit_events;
}

void CgroupFiles::read_limits(Sample& sample, std::span<char> buffer) {
  Limits& limits = sample.limits;
  if (const auto text = read_held(KernelFile::cpu_max, buffer))
    limits.cpu_max = scan_cpu_max(*text);
  if (const auto text = read_held(KernelFile::cpu_max_burst, buffer))
    limits.cpu_max_burst = as_microseconds(scan_number(*text));
  if (const auto text = read_held(KernelFile::cpu_weight, buffer))
    limits.cpu_weight = as_weight(scan_number(*text));
  if (const auto text = read_held(KernelFile::memory_max, buffer))
    limits.memory_max = scan_limit(*text);
  if (const auto text = read_held(KernelFile::memory_high, buffer))
    limits.memory_high = scan_limit(*text);
}

void CgroupFiles::read_memory_stat(MonotonicTime now, Sample& sample, std::span<char> buffer) {
  const bool idle = sample.cpu.usage_usec && sample.cpu.usage_usec == kept_.usage_usec &&
                    sample.memory_current && sample.memory_current == kept_.memory_current;
  if (!idle || is_due(now, memory_time_, kIdleMemoryPeriod)) {
    const auto text = read_held(KernelFile::memory_stat, buffer);
    kept_.memory = text ? scan_memory_stat(*text) : MemoryStat{};
    kept_.usage_usec = sample.cpu.usage_usec;
    kept_.memory_current = sample.memory_current;
    memory_time_ = now;
  }
  sample.memory = kept_.memory;
}

void CgroupFiles::read_pressure(MonotonicTime now, std::span<char> buffer) {
  const auto pressure = [&](KernelFile file) {
    const auto text = read_held(file, buffer);
    return text ? scan_pressure(*text) : Pressure{};
  };
  kept_.cpu_pressure = pressure(KernelFile::cpu_pressure);
  kept_.memory_pressure = pressure(KernelFile::memory_pressure);
  kept_.io_pressure = pressure(KernelFile::io_pressure);
  pressure_time_ = now;
}

void CgroupFiles::read_slow(MonotonicTime now, std::span<char> buffer) {
  const auto limit = [&](KernelFile file) -> std::optional<MemoryLimit> {
    const auto text = read_once(file, buffer);
    return text ? scan_limit(*text) : std::nullopt;
  };
  kept_.memory_low = limit(KernelFile::memory_low);
  kept_.memory_min = limit(KernelFile::memory_min);
  kept_.swap_max = limit(KernelFile::memory_swap_max);
  kept_.pids_max = limit(KernelFile::pids_max);
  slow_time_ = now;
}

std::optional<std::string_view> CgroupFiles::read_held(KernelFile file, std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  if (slot.absent) return std::nullopt;
  if (!slot.fd.valid()) slot.fd = open_file(file);
  if (slot.fd.valid()) {
    if (const auto text = read_text(slot.fd.get(), buffer)) return text;
    // ENODEV: the cgroup was removed, or only this file's controller was disabled.
    if (errno == ENODEV) lost_file_ = true;
    slot.fd.reset();
  }
  slot.absent = true;
  return std::nullopt;
}

std::optional<std::string_view> CgroupFiles::read_once(KernelFile file, std::span<char> buffer) {
  Slot& slot = slots_[index_of(file)];
  if (slot.absent) return std::nullopt;
  const Fd fd = open_file(file);
  slot.absent = !fd.valid();
  return fd.valid() ? read_text(fd.get(), buffer) : std::nullopt;
}

Fd CgroupFiles::open_file(KernelFile file) {
  // Not open_at(): absence is frequent here and its error text would allocate.
  const int fd = ::openat(directory_.get(), kernel_file_name(file),
                          O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0 && (errno == EMFILE || errno == ENFILE)) short_of_descriptors_ = true;
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
