#include "bench/react_causes.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "control/fast_path/fast_path.h"

namespace cgphase {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr off_t kHeld = 16 * kMiB;  // of the data file
constexpr auto kThrottledUsec = static_cast<std::uint64_t>(
    SafetyConfig{}.throttled_ratio *
    static_cast<double>(std::chrono::microseconds(kFastPathThrottledWindow).count()));
constexpr std::chrono::milliseconds kNoLooks{0};
const SystemClock kCauseClock;

// Blocks until the start. A loop of short sleeps would be pressure on the CPU before the trouble.
void wait_for_go(int go) {
  pollfd told{go, POLLIN, 0};
  while (::poll(&told, 1, -1) != 1) {
  }
}

[[noreturn]] void spin() {
  for (std::atomic<std::uint64_t> turns = 0;;) turns.fetch_add(1, std::memory_order_relaxed);
}

void rest_then_spin(Shared&, int go, const std::string&, const std::string&) {
  wait_for_go(go);
  spin();
}

// All run on one processor and wait for it, so there is pressure before any of them is throttled.
void contend(Shared&, int, const std::string&, const std::string&) {
  cpu_set_t first;
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  ::sched_setaffinity(0, sizeof first, &first);
  spin();
}

// Reads until its cache reaches memory.max.
void read_through(Shared& shared, int go, const std::string& group, const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);  // charged to the cgroup that rereads it
  std::vector<char> block(kBlockBytes);
  const Fd events(::open((group + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC));
  wait_for_go(go);
  for (std::size_t at = 0; at < kDataFileBytes; at += kBlockBytes) {
    const std::int64_t began = now_ns();
    if (::pread(fd.get(), block.data(), block.size(), static_cast<off_t>(at)) <= 0) ::_exit(2);
    if (value_of_key(events.get(), "max") == 0) continue;
    shared.first_ns.store(began);
    return;
  }
}

// Uses anonymous memory in turn, step by step, and records the step that reached memory.high. With
// each step it reads a page of `file`, if there is one.
[[noreturn]] void turn_over(Shared& shared, const std::string& group, std::size_t bytes,
                            const Fd& file) {
  // A step is about as large as the kernel's charge batch per processor.
  constexpr std::size_t kStep = 256 * 1024;
  const Fd events(::open((group + "/memory.events").c_str(), O_RDONLY | O_CLOEXEC));
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  // A huge page counts as a whole until the kernel reclaims, even if little of it is used.
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  for (std::size_t at = 0;; at = (at + kStep) % bytes) {
    const bool lowered = shared.lowered.load();
    const std::int64_t began = now_ns();
    ::madvise(memory + at, kStep, MADV_DONTNEED);
    for (std::size_t page = 0; page < kStep; page += 4096) memory[at + page] = 1;
    char page[4096];
    if (file.valid() && ::pread(file.get(), page, sizeof page, kHeld + at) < 0) ::_exit(2);
    if (lowered && shared.first_ns.load() == 0 && value_of_key(events.get(), "high") > 0)
      shared.first_ns.store(began);
  }
}

// Without swap none of this memory can be reclaimed.
void take_too_much(Shared& shared, int go, const std::string& group, const std::string&) {
  wait_for_go(go);
  turn_over(shared, group, 24 * kMiB, Fd());
}

// Its need is small. The rest is cache that the kernel scans and cannot free: pages kept in pipes,
// as by a server with sendfile(2).
void hold_cache(Shared& shared, int, const std::string& group, const std::string& path) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  for (off_t from = 0; from < kHeld;) {
    int ends[2];
    if (::pipe(ends) != 0 || ::fcntl(ends[1], F_SETPIPE_SZ, kMiB) < 0) ::_exit(3);
    const off_t end = from + static_cast<off_t>(kMiB);
    while (from < end)
      if (::splice(file.get(), &from, ends[1], nullptr, static_cast<std::size_t>(end - from),
                   SPLICE_F_NONBLOCK) <= 0)
        break;
    from = end;
  }
  turn_over(shared, group, kMiB, file);
}

}  // namespace

const std::array<Cause, 6> kCauses = {{
    {"processes_ended", Knob::memory_max, "1073741824", "536870912", nullptr, nullptr,
     "cgroup.events", "populated", 0, 0, true, kNoLooks, nullptr, 1, 0, 0},
    {"memory_max_event", Knob::memory_max, "1073741824", "8388608", nullptr, nullptr,
     "memory.events.local", "max", 1, 1, true, kNoLooks, read_through, 1, 0, 0},
    {"memory_high_need", Knob::memory_high, "max", "16777216", nullptr, nullptr,
     "memory.events.local", "high", 1, 1, true, kNoLooks, take_too_much, 1, 0, 0},
    {"memory_high_vain", Knob::memory_high, "max", "8388608", "memory.pressure",
     "full 50000 500000", "memory.events.local", "high", kStallHighEvents, 1, true, kNoLooks,
     hold_cache, 1, kHeld, 0},
    {"cpu_throttled", Knob::cpu_max, "80000 100000", "20000 100000", "cpu.pressure",
     "some 10000 500000", "cpu.stat", "throttled_usec", kThrottledUsec + 1, kThrottledUsec + 1,
     false, kPeriodLook, rest_then_spin, 1, 0, 0},
    {"cpu_throttled_busy", Knob::cpu_max, "max 100000", "20000 100000", "cpu.pressure",
     "some 10000 500000", "cpu.stat", "throttled_usec", kThrottledUsec + 1, kThrottledUsec + 1,
     false, kFastPathRiskInterval, contend, 2, 0, 1000},
}};

std::int64_t now_ns() { return kCauseClock.monotonic_now().time_since_epoch().count(); }

void pause_ms(int ms) { ::poll(nullptr, 0, ms); }

std::uint64_t value_of_key(int fd, std::string_view key) {
  std::array<char, 1024> buffer;
  const ssize_t count = ::pread(fd, buffer.data(), buffer.size(), 0);
  std::string_view text(buffer.data(), static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
  std::string_view line, name, number;
  while (next_line(text, line))
    if (next_word(line, name) && name == key && next_word(line, number))
      return parse_u64(number).value_or(0);
  return 0;
}

bool evident(const Cause& cause, int fd, bool told) {
  const std::uint64_t value = value_of_key(fd, cause.key);
  if (cause.least == 0) return value == 0;
  return value >= (told ? cause.least_told : cause.least);
}

void make_data_file(const std::string& path) {
  const Fd fd = open_path(path, O_WRONLY | O_CREAT | O_TRUNC, 0600).value();
  const std::string block(kBlockBytes, 'x');
  for (std::size_t at = 0; at < kDataFileBytes; at += block.size())
    if (const Status written = write_all(fd.get(), block); !written) fail(written.error().text);
  ::fsync(fd.get());
}

Child::Child(const std::string& directory, const std::function<void()>& work) {
  pid_ = ::fork();
  if (pid_ < 0) fail("fork");
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const Fd procs(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
  if (::write(procs.get(), "0", 1) != 1) ::_exit(1);
  work();
  for (;;) ::pause();
}

Child::~Child() {
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

}  // namespace cgphase
