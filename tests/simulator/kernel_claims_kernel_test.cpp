// Runs the same scripts on the kernel of a guest.
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
#include <ctime>
#include <filesystem>
#include <map>

#include "base/fd.h"
#include "base/file.h"
#include "base/units.h"
#include "tests/simulator/kernel_claims.h"

using namespace cgphase;
using namespace cgphase::simulator;

namespace {

constexpr int kPatienceMs = 60'000;
constexpr const char* kShared = "/dev/shm/claim";  // exists longer than the process that wrote it

int write_file(int fd, const std::string& text) {
  return ::write(fd, text.data(), text.size()) < 0 ? errno : 0;
}

// --- inside the cgroup's process: orders arrive through a pipe ---

struct Order {
  char what = 0;  // a(non), s(hmem), f(ile), c(pu)
  std::uint64_t amount = 0;
};

void take_anon_here(std::uint64_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) ::_exit(5);
  for (std::uint64_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
}

void take_shmem_here(std::uint64_t bytes) {
  const int fd = ::open(kShared, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) != 0) ::_exit(5);
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) ::_exit(5);
  for (std::uint64_t at = 0; at < bytes; at += 4096) static_cast<volatile char*>(memory)[at] = 1;
}

// Reads files of the system and keeps them open. The guest's hostfs drops the cache of a file
// without open descriptors.
void take_file_here(std::uint64_t bytes) {
  static std::array<char, 1 << 20> buffer;
  std::uint64_t total = 0;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator("/usr/lib/x86_64-linux-gnu", error)) {
    if (!entry.is_regular_file(error) || entry.file_size(error) < 4 * kMiB) continue;
    const int fd = ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ssize_t count = 1;
    while (total < bytes && (count = ::read(fd, buffer.data(), buffer.size())) > 0)
      total += static_cast<std::uint64_t>(count);
    if (total >= bytes) return;
  }
  ::_exit(7);
}

void spin_here(std::uint64_t milliseconds) {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  const auto ms = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1000 +
           static_cast<std::uint64_t>(time.tv_nsec) / 1'000'000;
  };
  for (const std::uint64_t end = ms(now) + milliseconds; ms(now) < end;)
    ::clock_gettime(CLOCK_MONOTONIC, &now);
}

[[noreturn]] void obey(int orders, int done) {
  Order order;
  while (::read(orders, &order, sizeof order) == sizeof order) {
    if (order.what == 'a') take_anon_here(order.amount);
    if (order.what == 's') take_shmem_here(order.amount);
    if (order.what == 'f') take_file_here(order.amount);
    if (order.what == 'c') spin_here(order.amount);
    if (::write(done, "d", 1) != 1) ::_exit(4);
  }
  ::_exit(0);
}

class RealHierarchy final : public Hierarchy {
 public:
  RealHierarchy() {
    const char* const root = ::getenv("CGPHASE_CGROUP_ROOT");
    REQUIRE_MESSAGE(root != nullptr, "run this through scripts/guest, as ctest -L kernel does");
    static int count = 0;
    place_ = std::string(root) + "/claims-" + std::to_string(count++);
    enable(root);
    REQUIRE(::mkdir(place_.c_str(), 0755) == 0);
    enable(place_);
  }
  ~RealHierarchy() override {
    for (auto& [pid, process] : processes_) stop(pid);
    ::unlink(kShared);
    for (const char* path : {"/a/b", "/a", ""}) ::rmdir((place_ + path).c_str());
  }

  int make(const std::string& path) override {
    if (::mkdir((place_ + path).c_str(), 0755) != 0) return errno;
    // A cgroup with children delegates its controllers. It must have no processes then.
    if (path == "/a/b") enable(place_ + "/a");
    return 0;
  }
  int remove(const std::string& path) override {
    return ::rmdir((place_ + path).c_str()) == 0 ? 0 : errno;
  }
  std::uint64_t inode(const std::string& path) override {
    struct stat status {};
    REQUIRE(::stat((place_ + path).c_str(), &status) == 0);
    return status.st_ino;
  }
  int write(const std::string& path, const std::string& file, const std::string& text) override {
    const Fd fd(::open((place_ + path + "/" + file).c_str(), O_WRONLY | O_CLOEXEC));
    return fd.valid() ? write_file(fd.get(), text) : errno;
  }
  std::string read(const std::string& path, const std::string& file) override {
    const Fd fd(::open((place_ + path + "/" + file).c_str(), O_RDONLY | O_CLOEXEC));
    return fd.valid() ? text_of(fd) : errno_word(errno);
  }
  int hold(const std::string& path, const std::string& file) override {
    held_.reset(::open((place_ + path + "/" + file).c_str(), O_RDWR | O_CLOEXEC));
    return held_.valid() ? 0 : errno;
  }
  std::string read_held() override { return text_of(held_); }
  int write_held(const std::string& text) override { return write_file(held_.get(), text); }
  int hold_directory(const std::string& path) override {
    directory_.reset(::open((place_ + path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    return directory_.valid() ? 0 : errno;
  }
  int open_in_held(const std::string& file) override {
    const Fd fd(::openat(directory_.get(), file.c_str(), O_RDONLY | O_CLOEXEC));
    return fd.valid() ? 0 : errno;
  }

  int spawn(const std::string& path) override {
    std::array<int, 2> orders, done;
    REQUIRE(::pipe2(orders.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(done.data(), O_CLOEXEC) == 0);
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      ::close(orders[1]);
      const Fd procs(::open((place_ + path + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
      if (!procs.valid() || write_file(procs.get(), "0") != 0) ::_exit(3);
      if (::write(done[1], "r", 1) != 1) ::_exit(4);
      obey(orders[0], done[1]);
    }
    ::close(orders[0]);
    ::close(done[1]);
    Process& process = processes_[pid];
    process.orders.reset(orders[1]);
    process.done.reset(done[0]);
    await(process);
    return pid;
  }
  bool alive(int process) override {
    Process& one = processes_.at(process);
    if (one.alive && ::waitpid(process, nullptr, WNOHANG) == process) one.alive = false;
    return one.alive;
  }
  void end(int process) override { stop(process); }
  void take_anon(int process, std::uint64_t amount) override { order(process, {'a', amount}); }
  void take_shmem(int process, std::uint64_t amount) override { order(process, {'s', amount}); }
  void take_file(int process, std::uint64_t amount) override { order(process, {'f', amount}); }
  void spin(int process, int milliseconds) override {
    order(process, {'c', static_cast<std::uint64_t>(milliseconds)});
  }

 private:
  struct Process {
    Fd orders, done;
    bool alive = true;
  };
  static void enable(const std::string& directory) {
    const Fd fd(::open((directory + "/cgroup.subtree_control").c_str(), O_WRONLY | O_CLOEXEC));
    REQUIRE(write_file(fd.get(), "+cpu +memory") == 0);
  }
  static std::string text_of(const Fd& fd) {
    std::array<char, 16384> buffer;
    const ssize_t count = ::pread(fd.get(), buffer.data(), buffer.size(), 0);
    if (count < 0) return errno_word(errno);
    return std::string(buffer.data(), static_cast<std::size_t>(count > 0 ? count - 1 : 0));
  }
  // Reads a byte when the process has finished, and end of file when it is dead.
  static void await(Process& process) {
    pollfd ready{process.done.get(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, kPatienceMs) == 1);
    char byte = 0;
    (void)::read(process.done.get(), &byte, 1);
  }
  void order(int pid, const Order& what) {
    Process& process = processes_.at(pid);
    if (::write(process.orders.get(), &what, sizeof what) != sizeof what) return;
    await(process);
    // The kernel reports the end of a process's files before the end of the process.
    for (int waited = 0; waited < kPatienceMs && ended(process) && alive(pid); waited += 10)
      ::poll(nullptr, 0, 10);
  }
  static bool ended(const Process& process) {
    pollfd ready{process.done.get(), POLLIN, 0};
    return ::poll(&ready, 1, 0) == 1 && (ready.revents & POLLHUP) != 0;
  }
  void stop(int pid) {
    Process& process = processes_.at(pid);
    if (!process.alive) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    process.alive = false;
  }

  std::string place_;
  Fd held_, directory_;
  std::map<int, Process> processes_;
};

}  // namespace

TEST_CASE("kernel: a real cgroup v2 does what the simulator claims") {
  ::signal(SIGPIPE, SIG_IGN);
  for (const Claim& claim : kernel_claims()) {
    CAPTURE(claim.name);
    RealHierarchy tree;
    REQUIRE(tree.make("/a") == 0);
    CHECK(claim.outcome(tree) == claim.expected);
  }
}
