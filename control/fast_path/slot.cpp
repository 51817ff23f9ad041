#include "control/fast_path/slot.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/parse.h"
#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/kernel_text.h"
#include "cgroupfs/memory_reading.h"

namespace cgphase {
namespace {

// The fast path's own read. It is empty on any failure, which disables the rule.
template <std::size_t N>
std::string_view read_held(const Fd& fd, std::array<char, N>& buffer) {
  if (!fd.valid()) return {};
  const ssize_t count = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
  if (count <= 0) return {};
  // Text after the last newline may be half a number.
  const std::string_view text(buffer.data(), static_cast<std::size_t>(count));
  return text.substr(0, text.rfind('\n') + 1);
}

std::optional<Bytes> bytes_of(std::string_view text) {
  const Counter value = scan_amount(text);
  if (!value) return std::nullopt;
  return Bytes{*value};
}

std::unexpected<Error> blind(const char* file) {
  return failure(ErrorKind::gone,
                 std::string(file) + ": the fast path cannot read it; the limit is not lowered");
}

// Opens files one after another and records whether the process ran out of descriptors. With
// O_NONBLOCK, newer kernels set a limit without reclaiming; FastPath::write handles the older ones.
class Opener {
 public:
  explicit Opener(int directory_fd) : directory_fd_(directory_fd) {}
  Fd open(const char* name, int flags) {
    Fd fd(::openat(directory_fd_, name, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!fd.valid() && (errno == EMFILE || errno == ENFILE)) out_of_descriptors_ = true;
    if (is_spare(fd)) out_of_descriptors_ = true;
    return fd;
  }
  bool out_of_descriptors() const { return out_of_descriptors_; }

 private:
  int directory_fd_;
  bool out_of_descriptors_ = false;
};

}  // namespace

bool is_spare(const Fd& fd) { return is_among_last(fd, kSpareDescriptors); }

Status FastPathFiles::open(int directory_fd, Knob must_watch) {
  Opener files(directory_fd);
  for (const Knob knob : kKnobs)
    knobs_[static_cast<std::size_t>(knob)] = files.open(file_name(knob), O_RDWR);
  memory_current_ = files.open("memory.current", O_RDONLY);
  memory_stat_ = files.open("memory.stat", O_RDONLY);
  memory_swap_ = files.open("memory.swap.current", O_RDONLY);
  // Events at a limit of a descendant cgroup do not concern us.
  memory_events_ = files.open("memory.events.local", O_RDONLY);
  if (!memory_events_.valid()) memory_events_ = files.open("memory.events", O_RDONLY);
  memory_pressure_ = files.open("memory.pressure", O_RDONLY);
  cpu_stat_ = files.open("cpu.stat", O_RDONLY);
  // Kept open also because the kernel notifies inotify only about files that a process has open.
  cgroup_events_ = files.open("cgroup.events", O_RDONLY);
  Status watched = watches(must_watch);
  if (files.out_of_descriptors())
    watched = failure(ErrorKind::io,
                      "fast path: cannot open the container's files: no descriptors left; raise "
                      "LimitNOFILE=");
  if (!watched) close();
  return watched;
}

Status FastPathFiles::watches(Knob knob) const {
  if (!read(knob)) return blind(file_name(knob));
  FastPathReading reading;
  read(reading, false);
  switch (knob) {
    case Knob::cpu_max:
    case Knob::cpu_max_burst: return reading.throttled_usec ? Status() : blind("cpu.stat");
    case Knob::memory_max:
    case Knob::memory_high: break;
    case Knob::cpu_weight:
    case Knob::cgroup_freeze: return {};
  }
  if (!reading.memory_current) return blind("memory.current");
  const bool events = knob == Knob::memory_max ? reading.max_events && reading.oom_events
                                               : reading.high_events.has_value();
  return events ? Status() : blind("memory.events");
}

void FastPathFiles::close() { *this = FastPathFiles(); }

std::optional<KnobText> FastPathFiles::read(Knob knob) const {
  std::array<char, kKnobTextBytes * 2> buffer;
  const std::string_view text = read_held(knobs_[static_cast<std::size_t>(knob)], buffer);
  if (text.empty()) return std::nullopt;
  return KnobText::from(trim(text.substr(0, text.find('\n'))));
}

bool FastPathFiles::write(Knob knob, const KnobText& value) const {
  return write_open_knob(knobs_[static_cast<std::size_t>(knob)].get(), value);
}

void FastPathFiles::read(FastPathReading& reading, bool with_high) const {
  std::array<char, kKnobFileBytes> buffer;
  reading.memory_current = bytes_of(read_held(memory_current_, buffer));
  Limits limits;
  for (const Knob knob : {Knob::memory_max, Knob::memory_high})
    if (const auto text = read(knob)) (void)parse_knob(knob, text->view(), limits);
  reading.memory_max = limits.memory_max;
  if (with_high) {
    reading.memory_high = limits.memory_high;
    read_pressure(reading);
  }
  const MemoryEvents events = scan_memory_events(read_held(memory_events_, buffer));
  reading.max_events = events.max;
  reading.oom_events = events.oom;
  reading.high_events = events.high;
  const CpuStat cpu = scan_cpu_stat(read_held(cpu_stat_, buffer));
  reading.throttled_usec = cpu.throttled_usec;
  reading.throttled_periods = cpu.nr_throttled;
  const CgroupEvents cgroup = scan_cgroup_events(read_held(cgroup_events_, buffer));
  if (cgroup.populated) reading.populated = *cgroup.populated;
}

void FastPathFiles::read_pressure(FastPathReading& reading) const {
  std::array<char, kKnobFileBytes> buffer;
  const Pressure pressure = scan_pressure(read_held(memory_pressure_, buffer));
  if (pressure.some.total_usec) reading.stalled_usec = pressure.some.total_usec;
  if (pressure.full.avg10_ratio) reading.full_avg10 = *pressure.full.avg10_ratio;
}

void FastPathFiles::read_detail(FastPathReading& reading) const {
  std::array<char, kMemoryStatBytes> stat;
  const std::optional<Bytes> swap = bytes_of(read_held(memory_swap_, stat));
  const MemoryStat memory = scan_memory_stat(read_held(memory_stat_, stat));
  if (reading.memory_current)
    reading.memory_need = memory_need(memory, reading.memory_current, swap);
  reading.pgscan = memory.pgscan;
  reading.pgsteal = memory.pgsteal;
  if (const Counter& file = memory.file_bytes)
    reading.page_cache = Bytes{*file - std::min(*file, memory.shmem_bytes.value_or(0))};
}

}  // namespace cgphase
