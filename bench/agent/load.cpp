// The containers of bench/agent: N live cgroups with one process each. Each process does the same
// small work once a second, spread evenly over the second, whatever program is measured.
//
//   bench_agent_load FOLDER COUNT DISK
//
// FOLDER is a cgroup2 directory in which docker-ID.scope are created, with a limit of each kind
// that it supports. DISK is a block device or a file that is read past the cache. Prints one line
// when all of them work, and continues until it is killed.
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"

using namespace cgphase;

namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMaxCount = 4096;
constexpr std::chrono::nanoseconds kPeriod = 1s;
constexpr int kLoops = 5000;
constexpr std::size_t kTouchedBytes = 64 * 1024;
constexpr std::size_t kBlockBytes = 4096;

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

void write_knob(const std::string& path, const std::string& value) {
  const Result<Fd> fd = open_path(path, O_WRONLY);
  if (!fd || !pwrite_text(fd->get(), value)) fail("cannot write " + value + " to " + path);
}

// The name that Docker gives to a container's cgroup with systemd's driver.
std::string scope_name(std::uint64_t index) {
  std::array<char, 65> id{};
  std::snprintf(id.data(), id.size(), "%064llx", static_cast<unsigned long long>(index) + 1);
  return "docker-" + std::string(id.data()) + ".scope";
}

std::string make_container(const std::string& folder, std::uint64_t index) {
  std::string path = folder + "/" + scope_name(index);
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST)
    fail(path + ": " + errno_word(errno));
  for (const auto& [knob, value] : {std::pair{"/cpu.max", "50000 100000"},
                                    {"/memory.max", "268435456"}, {"/pids.max", "1000"}})
    if (::access((path + knob).c_str(), F_OK) == 0) write_knob(path + knob, value);
  return path;
}

void sleep_until(std::chrono::nanoseconds time) {
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
  const timespec at{.tv_sec = whole.count(), .tv_nsec = (time - whole).count()};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {}
}

// The loop of one process: burn CPU, touch memory, read.
[[noreturn]] void work(std::chrono::nanoseconds first, const std::string& disk) {
  const Result<Fd> fd = open_path(disk, O_RDONLY | O_DIRECT);
  if (!fd) fail("cannot open " + disk);
  auto* const block = static_cast<char*>(std::aligned_alloc(kBlockBytes, kBlockBytes));
  const auto touched = std::make_unique<char[]>(kTouchedBytes);
  if (block == nullptr) throw std::bad_alloc();
  volatile std::uint64_t sum = 0;
  for (std::chrono::nanoseconds time = first;; time += kPeriod) {
    sleep_until(time);
    for (int i = 0; i < kLoops; ++i) sum = sum + static_cast<std::uint64_t>(i);
    std::fill_n(touched.get(), kTouchedBytes, static_cast<char>(sum));
    if (::pread(fd->get(), block, kBlockBytes, 0) != static_cast<ssize_t>(kBlockBytes))
      fail(disk + ": " + errno_word(errno));
  }
}

void run(const std::string& folder, std::uint64_t count, const std::string& disk) {
  // All begin together at the second after next, in full seconds of the clock.
  const SystemClock clock;
  const auto now = clock.monotonic_now().time_since_epoch();
  const std::chrono::nanoseconds begin = now - now % kPeriod + 2 * kPeriod;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::string path = make_container(folder, i);
    const pid_t process = ::fork();
    if (process < 0) fail(std::string("fork: ") + errno_word(errno));
    if (process > 0) continue;
    (void)::prctl(PR_SET_PDEATHSIG, SIGKILL);
    write_knob(path + "/cgroup.procs", "0");
    work(begin + kPeriod * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(count), disk);
  }
  std::printf("%llu containers work\n", static_cast<unsigned long long>(count));
  std::fflush(stdout);
  // If a process ends, the load has a fault and the measurement is void.
  (void)::wait(nullptr);
  fail("a container's process has ended");
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = argc == 4 ? parse_u64(argv[2]) : std::nullopt;
  if (!count || *count == 0 || *count > kMaxCount) {
    std::fprintf(stderr, "usage: bench_agent_load FOLDER COUNT DISK\n");
    return 2;
  }
  try {
    run(argv[1], *count, argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_agent_load: %s\n", error.what());
    return 1;
  }
  return 0;
}
