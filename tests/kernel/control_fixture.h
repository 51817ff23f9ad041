// Shared by the tests of control/ on a real kernel: cgroups and processes of a test, and a writer
// as in the daemon. CGPHASE_CGROUP_ROOT names the root of a cgroup v2 hierarchy.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "control/fast_path/fast_path.h"
#include "control/writer/kernel_limit_writer.h"

namespace cgphase {

inline constexpr int kPatienceMs = 60'000;

inline std::string cgroup_root() {
  const char* root = ::getenv("CGPHASE_CGROUP_ROOT");
  REQUIRE_MESSAGE(root != nullptr, "set CGPHASE_CGROUP_ROOT to a cgroup v2 mount of a guest");
  return root;
}

// Checks every 20 ms until the condition is true; false after kPatienceMs.
inline bool eventually(const std::function<bool()>& holds) {
  const auto patience = std::chrono::milliseconds(kPatienceMs);
  const auto end = std::chrono::steady_clock::now() + patience;
  while (std::chrono::steady_clock::now() < end) {
    if (holds()) return true;
    ::poll(nullptr, 0, 20);
  }
  return holds();
}

inline int try_write(const std::string& path, const std::string& text) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd.valid()) return errno;
  return ::write(fd.get(), text.data(), text.size()) < 0 ? errno : 0;
}

// A cgroup of this test. At the end it is removed with everything in it.
class TestCgroup {
 public:
  explicit TestCgroup(const std::string& name = "") : root_(cgroup_root()) {
    static int count = 0;
    path_ = "/cgphase-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++) + name;
    try_write(root_ + "/cgroup.subtree_control", "+cpu +memory");
    make();
  }
  ~TestCgroup() { remove(); }
  TestCgroup(const TestCgroup&) = delete;
  TestCgroup& operator=(const TestCgroup&) = delete;

  void make() {
    REQUIRE(::mkdir(directory().c_str(), 0755) == 0);
    REQUIRE(std::filesystem::exists(directory() + "/memory.max"));
    REQUIRE(std::filesystem::exists(directory() + "/cpu.max"));
  }
  void remove() {
    if (::access(directory().c_str(), F_OK) != 0) return;
    try_write(directory() + "/cgroup.kill", "1");
    CHECK(eventually([this] { return ::rmdir(directory().c_str()) == 0 || errno == ENOENT; }));
  }

  const std::string& path() const { return path_; }
  std::string directory() const { return root_ + path_; }
  Fd open() const { return open_path(directory(), O_RDONLY | O_DIRECTORY).value(); }
  CgroupId id() const {
    struct stat status;
    REQUIRE(::stat(directory().c_str(), &status) == 0);
    return {status.st_dev, status.st_ino};
  }
  void put(const std::string& file, const std::string& text) const {
    CAPTURE(file);
    REQUIRE(try_write(directory() + "/" + file, text) == 0);
  }
  std::string get(const std::string& file) const {
    const auto text = read_file(directory() + "/" + file, 65536);
    return text ? std::string(trim(*text)) : "unreadable: " + text.error().text;
  }
  std::uint64_t number(const std::string& file, std::string_view field) const {
    const std::string text = get(file);
    std::string_view rest = text, line, name, value;
    while (next_line(rest, line))
      if (next_word(line, name) && name == field && next_word(line, value))
        return parse_u64(value).value_or(0);
    return 0;
  }
  Limits limits() const { return read_limits(open().get()).value(); }

 private:
  std::string root_, path_;
};

// A process inside a cgroup. At the end it is killed and waited for.
class Child {
 public:
  // `work` gets a descriptor and writes a byte to it when it is ready. The child ends when it
  // returns.
  Child(const TestCgroup& group, const std::function<void(int)>& work) {
    int ready[2];
    REQUIRE(::pipe2(ready, O_CLOEXEC) == 0);
    const std::string procs = group.directory() + "/cgroup.procs";
    pid_ = ::fork();
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) {
      if (try_write(procs, "0") != 0) ::_exit(3);
      work(ready[1]);
      ::_exit(0);
    }
    ::close(ready[1]);
    const Fd reading(ready[0]);
    char byte;
    REQUIRE(::read(reading.get(), &byte, 1) == 1);
  }
  ~Child() {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
    wait();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }
  bool alive() {
    if (pid_ > 0 && ::waitpid(pid_, &status_, WNOHANG) == pid_) pid_ = -1;
    return pid_ > 0;
  }
  bool killed() const { return pid_ < 0 && WIFSIGNALED(status_) && WTERMSIG(status_) == SIGKILL; }
  bool ended_well() const { return pid_ < 0 && WIFEXITED(status_) && WEXITSTATUS(status_) == 0; }
  void wait() {
    if (pid_ > 0) ::waitpid(pid_, &status_, 0);
    pid_ = -1;
  }

 private:
  pid_t pid_ = -1;
  int status_ = 0;
};

inline void say_ready(int fd) {
  if (::write(fd, "r", 1) != 1) ::_exit(4);
}

inline char* touch(std::size_t bytes) {
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (memory == MAP_FAILED) ::_exit(5);
  for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
  return memory;
}

inline std::function<void(int)> using_memory(std::size_t bytes) {
  return [bytes](int ready) {
    touch(bytes);
    say_ready(ready);
    for (;;) ::pause();
  };
}

inline void spinning(int ready) {
  say_ready(ready);
  for (;;) ::getppid();
}

// Reads files of the system until `bytes` of cache are charged to its cgroup.
inline std::function<void(int)> caching(std::size_t bytes) {
  return [bytes](int ready) {
    static std::array<char, 1 << 20> buffer;
    std::size_t total = 0;
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator("/usr/lib/x86_64-linux-gnu", error)) {
      if (!entry.is_regular_file(error) || entry.file_size(error) < 4 * kMiB) continue;
      // The file stays open: the guest's hostfs drops the cache of a file that nobody has open.
      const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
      ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
      ssize_t count = 1;
      while (total < bytes && (count = ::read(fd, buffer.data(), buffer.size())) > 0)
        total += static_cast<std::size_t>(count);
      if (total >= bytes) break;
    }
    say_ready(ready);
    for (;;) ::pause();
  };
}

class RuntimeDirectory {
 public:
  RuntimeDirectory() {
    char name[] = "/tmp/cgphase-kernel-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
  }
  ~RuntimeDirectory() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// The writer of a daemon, optionally with a fast path.
class Writing {
 public:
  explicit Writing(bool with_fast_path = false,
                   std::chrono::milliseconds deadline = std::chrono::milliseconds(2000)) {
    leases = std::move(*LeaseTable::open({.runtime_dir = runtime_.path(), .records = 64}));
    if (with_fast_path)
      fast_path =
          std::move(*FastPath::create({.leases = leases.get(), .clock = &clock_, .containers = 8}));
    auto made = KernelLimitWriter::create({.cgroup_root = cgroup_root(),
                                           .leases = leases.get(),
                                           .fast_path = fast_path.get(),
                                           .lowering_deadline = deadline});
    REQUIRE_MESSAGE(made, made.error().text);
    writer = std::move(*made);
    if (fast_path) REQUIRE(fast_path->start());
  }
  void attach(const TestCgroup& group) {
    REQUIRE(writer->attach(group.id(), group.path(), group.open()));
  }
  LimitResult write(const TestCgroup& group, const Limits& after, bool raise = false,
                    std::optional<Bytes> ceiling = std::nullopt) {
    LimitChange change;
    change.id = group.id();
    change.path = group.path();
    change.old_limits = group.limits();
    change.new_limits = after;
    change.raise = raise;
    change.reason = "kernel test";
    change.memory_need_ceiling = ceiling;
    return submit(change);
  }
  LimitResult submit(const LimitChange& change) {
    writer->submit(change);
    return result();
  }
  LimitResult result() {
    pollfd ready{writer->result_fd(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, kPatienceMs) == 1);
    auto results = writer->drain_results();
    REQUIRE(results.size() == 1);
    return results.front();
  }

 private:
  RuntimeDirectory runtime_;
  SystemClock clock_;

 public:
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<FastPath> fast_path;
  std::unique_ptr<KernelLimitWriter> writer;
};

inline Limits with_quota(Limits limits, std::uint64_t quota_usec) {
  limits.cpu_max = CpuMax{Microseconds{quota_usec}, Microseconds{100'000}};
  return limits;
}

inline Limits with_memory(Limits limits, std::uint64_t bytes) {
  limits.memory_high = MemoryLimit{Bytes{bytes}};
  return limits;
}

}  // namespace cgphase
