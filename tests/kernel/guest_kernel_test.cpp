// Properties of the guest. If one of these fails, no other kernel test means anything.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <sstream>
#include <string>

#include "base/fd.h"
#include "base/file.h"
#include "tests/kernel/control_fixture.h"

namespace cgphase {
namespace {

constexpr std::size_t kFileLimitBytes = 64 * 1024;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kMemoryMaxBytes = 8 << 20;

// A cgroup for one test, removed at its end.
struct OwnCgroup {
  explicit OwnCgroup(const std::string& name) : path(cgroup_root() + "/" + name) {
    REQUIRE(::mkdir(path.c_str(), 0755) == 0);
  }
  ~OwnCgroup() { ::rmdir(path.c_str()); }

  std::string text(const std::string& file) const {
    const Result<std::string> read = read_file(path + "/" + file, kFileLimitBytes);
    REQUIRE_MESSAGE(read.has_value(), file);
    return *read;
  }
  void set(const std::string& file, std::string_view value) const {
    const Result<Fd> fd = open_path(path + "/" + file, O_WRONLY);
    REQUIRE_MESSAGE(fd.has_value(), file);
    REQUIRE_MESSAGE(pwrite_text(fd->get(), value).has_value(), file);
  }
  // The number after `key` in a flat keyed file such as cpu.stat.
  std::uint64_t value(const std::string& file, const std::string& key) const {
    std::istringstream lines(text(file));
    std::string name;
    std::uint64_t number = 0;
    while (lines >> name >> number) {
      if (name == key) return number;
    }
    FAIL(file << " has no " << key);
    return 0;
  }
  // Runs `work` in a child inside this cgroup and returns its wait status.
  int run(const std::function<void()>& work) const {
    const std::string procs = path + "/cgroup.procs";
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const int fd = ::open(procs.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0 || ::write(fd, "0", 1) != 1) ::_exit(1);
      work();
      ::_exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return status;
  }

  std::string path;
};

void burn(double seconds) {
  timespec used{};
  do {
    ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
  } while (static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9 < seconds);
}

void touch(std::size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(1);
  volatile char* const bytes_of_it = static_cast<char*>(memory);
  for (std::size_t at = 0; at < bytes; at += kPageBytes) bytes_of_it[at] = 1;
}

TEST_CASE("the guest has cgroup v2 alone") {
  struct statfs filesystem {};
  REQUIRE(::statfs(cgroup_root().c_str(), &filesystem) == 0);
  CHECK(filesystem.f_type == CGROUP2_SUPER_MAGIC);
  const Result<std::string> mounts = read_file("/proc/mounts", kFileLimitBytes);
  REQUIRE(mounts.has_value());
  CHECK(mounts->find(" cgroup2 ") != std::string::npos);
  CHECK(mounts->find(" cgroup ") == std::string::npos);
}

TEST_CASE("cpu, memory, io and pids are enabled for the guest's cgroups") {
  const OwnCgroup cgroup("guest-controllers");
  std::istringstream controllers(cgroup.text("cgroup.controllers"));
  const std::string all(std::istreambuf_iterator<char>(controllers), {});
  for (const char* controller : {"cpu", "memory", "io", "pids"}) {
    CAPTURE(controller);
    CHECK(all.find(controller) != std::string::npos);
  }
  CHECK(cgroup.text("cpu.max") == "max 100000\n");
  CHECK(cgroup.text("memory.max") == "max\n");
  CHECK(cgroup.text("pids.max") == "max\n");
}

TEST_CASE("a process above its cpu.max is throttled, and cpu.stat counts it") {
  const OwnCgroup cgroup("guest-throttled");
  cgroup.set("cpu.max", "20000 100000");
  CHECK(cgroup.run([] { burn(0.2); }) == 0);
  CHECK(cgroup.value("cpu.stat", "nr_throttled") >= 1);
  CHECK(cgroup.value("cpu.stat", "throttled_usec") > 0);
}

TEST_CASE("a process without cpu.max is not throttled") {
  const OwnCgroup cgroup("guest-unthrottled");
  CHECK(cgroup.run([] { burn(0.2); }) == 0);
  CHECK(cgroup.value("cpu.stat", "nr_throttled") == 0);
  CHECK(cgroup.value("cpu.stat", "usage_usec") >= 100'000);  // counted in ticks of 10 ms
}

TEST_CASE("a process above its memory.max is killed, and memory.events counts it") {
  const OwnCgroup cgroup("guest-oom");
  cgroup.set("memory.max", std::to_string(kMemoryMaxBytes));
  const int status = cgroup.run([] { touch(4 * kMemoryMaxBytes); });
  CHECK(WIFSIGNALED(status));
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(cgroup.value("memory.events", "oom_kill") == 1);
}

TEST_CASE("a process below its memory.max survives") {
  const OwnCgroup cgroup("guest-no-oom");
  cgroup.set("memory.max", std::to_string(kMemoryMaxBytes));
  CHECK(cgroup.run([] { touch(kMemoryMaxBytes / 4); }) == 0);
  CHECK(cgroup.value("memory.events", "oom_kill") == 0);
}

TEST_CASE("an open file of a removed cgroup reads as ENODEV") {
  Fd held;
  {
    const OwnCgroup cgroup("guest-removed");
    Result<Fd> opened = open_path(cgroup.path + "/cpu.stat", O_RDONLY);
    REQUIRE(opened.has_value());
    held = std::move(*opened);
  }
  std::array<char, kPageBytes> buffer{};
  CHECK(::pread(held.get(), buffer.data(), buffer.size(), 0) == -1);
  CHECK(errno == ENODEV);
  const Result<std::string_view> text = pread_text(held.get(), buffer);
  REQUIRE_FALSE(text.has_value());
  CHECK(text.error().kind == ErrorKind::gone);
}

}  // namespace
}  // namespace cgphase
