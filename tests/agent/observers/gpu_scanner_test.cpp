#include "agent/observers/gpu_scanner.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "tests/collectors/fake_tree.h"
#include "tests/in_child.h"

using namespace cgphase;

namespace {

constexpr uid_t kUserWithoutThreads = 60'002;  // of no other process here

std::vector<GpuScanRequest> questions_of(std::initializer_list<std::uint64_t> inodes) {
  std::vector<GpuScanRequest> questions;
  for (const std::uint64_t inode : inodes) questions.push_back({CgroupId{1, inode}, "/a", {}});
  return questions;
}

std::vector<GpuScanResult> await_answers(GpuScanner& scanner, std::size_t count) {
  std::vector<GpuScanResult> answers;
  while (answers.size() < count) {
    for (GpuScanResult& answer : scanner.drain_results()) answers.push_back(std::move(answer));
    std::this_thread::yield();
  }
  return answers;
}

// A scan that reports its start, and goes on when it may.
struct BlockedScan {
  std::promise<void> began, may_end, ended;

  static GpuScanThread::Scan of(const std::shared_ptr<BlockedScan>& held) {
    return [held](const GpuScanRequest&) {
      held->began.set_value();
      held->may_end.get_future().wait();
      held->ended.set_value();
      return GpuScanResult{HostDevices{}, GpuUse::none};
    };
  }
};

// In a child that may have no thread but itself.
int scan_without_thread() {
  const rlimit none{1, 1};
  if (::getuid() == 0 && ::setuid(kUserWithoutThreads) != 0) return 1;
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
  GpuScanThread scanner(
      [](const GpuScanRequest&) { return GpuScanResult{HostDevices{}, GpuUse::none}; });
  return scanner.failed().find("cgphase-gpu") == std::string::npos ? 3 : 0;
}

}  // namespace

TEST_CASE("GPUs are looked for on a thread of its own, in the order of the questions") {
  const std::thread::id asking = std::this_thread::get_id();
  GpuScanThread scanner([=](const GpuScanRequest& question) {
    const bool elsewhere = std::this_thread::get_id() != asking;
    return GpuScanResult{HostDevices{0, question.container->inode, elsewhere}, GpuUse::none};
  });
  CHECK(scanner.failed().empty());
  for (int round = 0; round < 2; ++round) {
    scanner.ask(questions_of({7, 8, 9}));
    const std::vector<GpuScanResult> answers = await_answers(scanner, 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(answers[i].host->inode == 7 + i);
      CHECK(answers[i].host->gpu);
    }
  }
}

TEST_CASE("nobody waits for a look that hangs, at the end neither") {
  const auto held = std::make_shared<BlockedScan>();
  {
    GpuScanThread scanner(BlockedScan::of(held));
    scanner.ask(questions_of({7, 8}));
    held->began.get_future().wait();
    CHECK(scanner.drain_results().empty());
  }
  held->may_end.set_value();
  held->ended.get_future().wait();  // and what else was asked is not looked at: `began` is set once
}

TEST_CASE("a look that hangs holds no descriptor of this process") {
  const Fd lock(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  REQUIRE(lock.valid());
  GpuScanThread scanner([fd = lock.get()](const GpuScanRequest&) {
    const bool closed = ::fcntl(fd, F_GETFD) < 0 && errno == EBADF;
    return GpuScanResult{HostDevices{}, closed ? GpuUse::none : GpuUse::seen};
  });
  scanner.ask(questions_of({7}));
  CHECK(await_answers(scanner, 1)[0].use == GpuUse::none);
  CHECK(::fcntl(lock.get(), F_GETFD) >= 0);
}

TEST_CASE("where no thread can be started to look for GPUs it says so, and nothing ends") {
  CHECK(in_child(scan_without_thread) == 0);
}

TEST_CASE("a look is at the cgroup that was asked for, not at another one of its path") {
  const FakeTree tree;
  tree.make_device("/proc/1/root/dev/nvidia0");
  tree.write("/cg/box/cgroup.procs", "7\n");
  tree.link("/proc/7/root", tree.root() + "/proc/1/root");
  tree.link("/proc/7/fd/3", "/dev/nvidia0");
  struct stat status{};
  REQUIRE(::stat((tree.root() + "/cg/box").c_str(), &status) == 0);
  const auto look = [&](std::uint64_t inode) {
    return scan_for_gpu(tree.root() + "/cg", tree.root() + "/proc",
                        {CgroupId{status.st_dev, inode}, "/box", {}}).use;
  };
  CHECK(look(status.st_ino) == GpuUse::seen);
  CHECK(look(status.st_ino + 1) == GpuUse::unknown);
  CHECK(scan_for_gpu(tree.root(), tree.root() + "/proc", {}).host->gpu);
}
