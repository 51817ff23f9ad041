// Tests that need a real kernel. Run them as root on a cgroup2 mount, named by CGPHASE_CGROUP_ROOT,
// whose subtree_control has cpu, memory and pids.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <deque>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "cgroupfs/cgroup_directory.h"
#include "collectors/cgroup_files.h"
#include "collectors/node_sampler.h"

using namespace cgphase;

namespace {

constexpr std::chrono::seconds kPatience{30};

// A cgroup of this test. At the end it is emptied and removed.
class OwnCgroup {
 public:
  explicit OwnCgroup(const std::string& path) : path_(path), directory_(root() + path) {
    REQUIRE(::mkdir(directory_.c_str(), 0755) == 0);
  }
  OwnCgroup(const OwnCgroup&) = delete;
  OwnCgroup& operator=(const OwnCgroup&) = delete;
  ~OwnCgroup() { remove(); }

  static std::string root() { return std::getenv("CGPHASE_CGROUP_ROOT"); }
  const std::string& path() const { return path_; }
  const std::string& directory() const { return directory_; }

  void write(const char* file, const std::string& text) const {
    const Result<Fd> fd = open_path(directory_ + "/" + file, O_WRONLY);
    REQUIRE(fd.has_value());
    REQUIRE(pwrite_text(fd->get(), text).has_value());
  }

  // Starts `work` as a process inside; kill() ends it.
  pid_t start(const std::function<void()>& work) {
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      const Result<Fd> procs = open_path(directory_ + "/cgroup.procs", O_WRONLY);
      if (!procs || !pwrite_text(procs->get(), "0")) ::_exit(1);
      work();
      ::_exit(0);
    }
    children_.push_back(pid);
    return pid;
  }
  void kill() {
    for (const pid_t pid : children_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
    children_.clear();
  }
  void remove() {
    kill();
    ::rmdir(directory_.c_str());
  }

 private:
  std::string path_, directory_;
  std::vector<pid_t> children_;
};

NodeSampler open_sampler(const std::string& include,
                         std::chrono::seconds sweep = NodeSampler::Options{}.sweep) {
  auto sampler = NodeSampler::open(
      {.cgroup_root = OwnCgroup::root(), .include = {include}, .sweep = sweep});
  REQUIRE(sampler.has_value());
  return std::move(*sampler);
}

// Samples until `done` is true; false after kPatience.
bool sample_until(NodeSampler& sampler, NodeSample& tick, const std::function<bool()>& done) {
  const SystemClock clock;
  const MonotonicTime start = clock.monotonic_now();
  while (clock.monotonic_now() - start < kPatience) {
    sampler.sample(clock, tick);
    if (done()) return true;
    ::poll(nullptr, 0, 20);
  }
  return false;
}

void burn() {
  for (;;) asm volatile("");
}

// Touches `bytes`, reports that through the pipe and keeps the memory.
void hold(std::size_t bytes, int reported) {
  auto* memory = static_cast<char*>(
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
  if (::write(reported, "x", 1) == 1) ::pause();
}

// Locks `bytes` of a file's cache. The guest has a disk at /scratch.
bool lock_file(std::size_t bytes) {
  const int file = ::open("/scratch", O_TMPFILE | O_RDWR, 0600);
  if (file < 0 || ::ftruncate(file, static_cast<off_t>(bytes)) != 0) return false;
  void* cache = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return cache != MAP_FAILED && ::mlock(cache, bytes) == 0;
}

CgroupFiles open_files(const OwnCgroup& cgroup) {
  Result<Fd> directory = open_path(cgroup.directory(), O_RDONLY | O_DIRECTORY);
  REQUIRE(directory.has_value());
  return CgroupFiles(std::move(*directory));
}

}  // namespace

TEST_SUITE_BEGIN("collectors" * doctest::skip(std::getenv("CGPHASE_CGROUP_ROOT") == nullptr));

TEST_CASE("the CPU time of a burning child grows, and its fields are all there") {
  OwnCgroup cgroup("/cgphase-sampler-burn");
  NodeSampler sampler = open_sampler(cgroup.path());
  NodeSample tick;
  cgroup.start(burn);
  REQUIRE(sample_until(sampler, tick, [&] {
    return !tick.containers.empty() && tick.containers[0].cpu.usage_usec > 20'000;
  }));
  const Sample first = tick.containers.at(0);
  REQUIRE(sample_until(sampler, tick, [&] {
    return tick.containers.at(0).cpu.usage_usec > *first.cpu.usage_usec + 50'000;
  }));
  CHECK(first.cpu.user_usec.has_value());
  CHECK(first.cpu.nr_throttled == 0);
  CHECK(first.populated == true);
  CHECK(first.frozen == false);
  CHECK(first.pids_current == 1);
  CHECK(first.limits.cpu_max == CpuMax{});
  CHECK(first.limits.memory_max == MemoryLimit{});
  CHECK(first.limits.cpu_weight == 100);
  CHECK(tick.host.cpu_cores >= 1);
  CHECK(tick.host.memory.value > 64 * kMiB);
}

TEST_CASE("memory that a child touched is in memory.current and in its need") {
  constexpr std::size_t kTouched = 16 << 20;
  OwnCgroup cgroup("/cgphase-sampler-memory");
  NodeSampler sampler = open_sampler(cgroup.path());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reported(ends[0]), telling(ends[1]);
  cgroup.start([&] { hold(kTouched, telling.get()); });
  char byte = 0;
  REQUIRE(::read(reported.get(), &byte, 1) == 1);
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  const Sample& sample = tick.containers.at(0);
  REQUIRE(sample.memory_current.has_value());
  CHECK(sample.memory_current->value >= kTouched);
  CHECK(sample.memory_current->value < kTouched + 8 * kMiB);
  REQUIRE(sample.memory.anon_bytes.has_value());
  CHECK(*sample.memory.anon_bytes >= kTouched * 9 / 10);
  CHECK(sample.memory.kernel_bytes > 0);
  CHECK(sample.memory.pgfault >= kTouched / 4096);
  REQUIRE(memory_need(sample).has_value());
  CHECK(memory_need(sample)->value >= kTouched * 9 / 10);
  CHECK(sample.memory_events.oom_kill == 0);
}

// Both limits are those of crun's two cgroups for one container; either may be set.
TEST_CASE("the cgroup whose memory.max was reached is reported, wherever the victim was") {
  constexpr std::size_t kLarge = 48 << 20;
  constexpr const char* kSmall = "16777216";
  for (const bool below : {false, true}) {
    CAPTURE(below);
    const OwnCgroup parent("/cgphase-sampler-met");
    parent.write("cgroup.subtree_control", "+memory");
    OwnCgroup child("/cgphase-sampler-met/child");
    CgroupFiles upper = open_files(parent), lower = open_files(child);
    std::vector<char> buffer(kKernelTextBytes);
    Sample ours, theirs;
    REQUIRE(upper.read(MonotonicTime{}, ours, buffer));
    CHECK(ours.own_limit_events.max == 0);
    CHECK(ours.own_limit_events.oom == 0);
    (below ? child : parent).write("memory.max", kSmall);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const Fd reading(ends[0]);
    Fd writing(ends[1]);
    child.start([&] { hold(kLarge, writing.get()); });
    writing.reset();
    char byte = 0;
    CHECK(::read(reading.get(), &byte, 1) == 0);  // killed before it could write
    child.kill();
    REQUIRE(upper.read(MonotonicTime{}, ours, buffer));
    REQUIRE(lower.read(MonotonicTime{}, theirs, buffer));
    CHECK(ours.memory_events.max > 0);
    CHECK(ours.memory_events.oom > 0);
    CHECK(ours.memory_events.oom_kill == 1);
    CHECK((ours.own_limit_events.max > 0) == !below);
    CHECK((ours.own_limit_events.oom > 0) == !below);
    CHECK((theirs.own_limit_events.max > 0) == below);
    CHECK((theirs.own_limit_events.oom > 0) == below);
  }
}

TEST_CASE("locked file cache is part of the need, with more anonymous memory beside it") {
  constexpr std::size_t kLocked = 8 << 20, kTouched = 16 << 20;
  OwnCgroup cgroup("/cgphase-sampler-locked");
  NodeSampler sampler = open_sampler(cgroup.path());
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reported(ends[0]);
  Fd telling(ends[1]);
  cgroup.start([&] {
    if (lock_file(kLocked)) hold(kTouched, telling.get());
  });
  telling.reset();  // a child that fails ends the wait
  char byte = 0;
  REQUIRE(::read(reported.get(), &byte, 1) == 1);
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  const Sample& sample = tick.containers.at(0);
  REQUIRE(memory_need(sample).has_value());
  CHECK(memory_need(sample)->value >= (kLocked + kTouched) * 9 / 10);
  CHECK(memory_need(sample)->value < kLocked + kTouched + 8 * kMiB);
}

TEST_CASE("a burning child under a small quota is seen throttled") {
  OwnCgroup cgroup("/cgphase-sampler-throttle");
  cgroup.write("cpu.max", "10000 100000");
  NodeSampler sampler = open_sampler(cgroup.path());
  NodeSample tick;
  cgroup.start(burn);
  REQUIRE(sample_until(sampler, tick, [&] {
    return !tick.containers.empty() && tick.containers[0].cpu.nr_throttled > 2;
  }));
  const Sample& sample = tick.containers[0];
  CHECK(sample.cpu.throttled_usec > 0);
  CHECK(sample.cpu.nr_periods >= *sample.cpu.nr_throttled);
  CHECK(sample.limits.cpu_max == CpuMax{Microseconds{10'000}, Microseconds{100'000}});
}

TEST_CASE("limits that somebody else wrote are in the next sample") {
  OwnCgroup cgroup("/cgphase-sampler-limits");
  NodeSampler sampler = open_sampler(cgroup.path());
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  CHECK(tick.containers.at(0).limits.memory_max == MemoryLimit{});
  cgroup.write("memory.max", "67108864");
  cgroup.write("memory.high", "33554432");
  cgroup.write("cpu.weight", "250");
  sampler.sample(SystemClock(), tick);
  const Limits& limits = tick.containers.at(0).limits;
  CHECK(limits.memory_max == MemoryLimit{Bytes{64 * kMiB}});
  CHECK(limits.memory_high == MemoryLimit{Bytes{32 * kMiB}});
  CHECK(limits.cpu_weight == 250);
}

// An observed cgroup is not read at each tick, so the kernel must report changes. The clock does
// not move, so nothing is read because an interval expired.
TEST_CASE("limits, events and state of an observed cgroup are read when the kernel reports them") {
  OwnCgroup cgroup("/cgphase-sampler-observed");
  NodeSampler sampler = open_sampler(cgroup.path());
  const ManualClock standing;
  NodeSample tick;
  sampler.sample(standing, tick);
  sampler.set_detail(tick.containers.at(0).id, false);
  sampler.sample(standing, tick);
  const auto comes_true = [&](const std::function<bool(const Sample&)>& reported) {
    const MonotonicTime start = SystemClock().monotonic_now();
    while (SystemClock().monotonic_now() - start < kPatience) {
      sampler.sample(standing, tick);
      // Empty if more CPU time passed than a stopped clock can explain.
      if (!tick.containers.empty() && reported(tick.containers.at(0))) return true;
      ::poll(nullptr, 0, 20);
    }
    return false;
  };
  CHECK(tick.containers.at(0).populated == false);
  cgroup.write("memory.max", "16777216");
  cgroup.write("cpu.max", "70000 100000");
  sampler.sample(standing, tick);
  CHECK(tick.containers.at(0).limits.memory_max == MemoryLimit{Bytes{16 * kMiB}});
  CHECK(tick.containers.at(0).limits.cpu_max == CpuMax{Microseconds{70'000}});
  cgroup.start([] { ::pause(); });
  CHECK(comes_true([](const Sample& sample) { return sample.populated == true; }));
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reading(ends[0]), writing(ends[1]);
  cgroup.start([&] { hold(48 << 20, writing.get()); });
  CHECK(comes_true([](const Sample& sample) { return sample.memory_events.oom_kill == 1; }));
  CHECK(tick.containers.at(0).own_limit_events.oom == tick.containers.at(0).memory_events.oom);
}

// Without a walk. The clock moves by less than the interval after which memory.stat is read anyway,
// but enough to explain the CPU time that passes.
TEST_CASE("memory.stat of one of many observed cgroups is reread only after much memory moved") {
  std::deque<OwnCgroup> cgroups;
  for (int i = 0; i < 17; ++i) cgroups.emplace_back("/cgphase-sampler-many-" + std::to_string(i));
  NodeSampler sampler = open_sampler("/cgphase-sampler-many-*");
  ManualClock clock;
  NodeSample tick;
  sampler.sample(clock, tick);
  REQUIRE(tick.appeared.size() == cgroups.size());
  const auto info = std::ranges::find(tick.appeared, cgroups.front().path(), &ContainerInfo::path);
  REQUIRE(info != tick.appeared.end());
  const CgroupId id = info->id;
  const auto busy = [&]() -> const Sample& {
    const auto found = std::ranges::find(tick.containers, id, &Sample::id);
    REQUIRE(found != tick.containers.end());
    return *found;
  };
  for (const Sample& sample : tick.containers) sampler.set_detail(sample.id, false);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const Fd reading(ends[0]), writing(ends[1]);
  cgroups.front().start([&] { hold(16 << 20, writing.get()); });
  char done = 0;
  REQUIRE(::read(reading.get(), &done, 1) == 1);
  clock.advance(std::chrono::seconds(5));
  sampler.sample(clock, tick);
  CHECK(busy().memory.anon_bytes.value() >= 16 * kMiB);
  const Counter faults = busy().memory.pgfault;
  cgroups.front().start([] {
    while (std::clock() < CLOCKS_PER_SEC / 20) (void)::getppid();
    ::pause();
  });
  const Counter usage = busy().cpu.usage_usec;
  for (int i = 0; i < 40 && busy().cpu.usage_usec == usage; ++i) {
    ::poll(nullptr, 0, 20);
    clock.advance(std::chrono::milliseconds(100));
    sampler.sample(clock, tick);
  }
  CHECK(busy().cpu.usage_usec > usage);
  // A process started and caused page faults. Newer kernels update such small counts every two
  // seconds.
  const auto faults_now = [&] {
    std::ifstream file(cgroups.front().directory() + "/memory.stat");
    std::uint64_t value = 0;
    for (std::string name; file >> name >> value;)
      if (name == "pgfault") return value;
    return std::uint64_t{0};
  };
  const auto end = std::chrono::steady_clock::now() + kPatience;
  while (faults_now() <= faults && std::chrono::steady_clock::now() < end) ::poll(nullptr, 0, 20);
  REQUIRE(faults_now() > faults);
  clock.advance(std::chrono::milliseconds(100));
  sampler.sample(clock, tick);
  CHECK(busy().memory.pgfault == faults);
  sampler.set_detail(id, true);
  sampler.sample(clock, tick);
  CHECK(busy().memory.pgfault > faults);
}

TEST_CASE("a cgroup that an include pattern names is found through its inotify event") {
  NodeSampler sampler = open_sampler("/cgphase-sampler-n*w", std::chrono::hours(1));
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  CHECK(tick.containers.empty());
  OwnCgroup cgroup("/cgphase-sampler-new");
  cgroup.start([] { ::pause(); });
  REQUIRE(sample_until(sampler, tick, [&] { return !tick.appeared.empty(); }));
  CHECK(tick.appeared[0].path == "/cgphase-sampler-new");
}

TEST_CASE("an empty cgroup is reported with its first process and the limits set until then") {
  NodeSampler sampler = open_sampler("/cgphase-sampler-setup");
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  OwnCgroup cgroup("/cgphase-sampler-setup");
  sampler.sample(SystemClock(), tick);
  CHECK(tick.appeared.empty());
  cgroup.write("memory.max", "67108864");
  REQUIRE(::setxattr(cgroup.directory().c_str(), "user.cgphase.name", "late", 4, 0) == 0);
  cgroup.start([] { ::pause(); });
  REQUIRE(sample_until(sampler, tick, [&] { return !tick.appeared.empty(); }));
  CHECK(tick.appeared[0].name == "late");
  CHECK(tick.containers.at(0).limits.memory_max == MemoryLimit{Bytes{64 * kMiB}});
}

TEST_CASE("a removed cgroup is listed as vanished") {
  OwnCgroup cgroup("/cgphase-sampler-removed");
  NodeSampler sampler = open_sampler(cgroup.path());
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  const CgroupId id = tick.containers.at(0).id;
  cgroup.remove();
  sampler.sample(SystemClock(), tick);
  CHECK(tick.vanished == std::vector{id});
  CHECK(tick.containers.empty());
}

TEST_CASE("a cgroup removed between discovery and reading is gone, also when its name comes back") {
  OwnCgroup cgroup("/cgphase-sampler-race");
  CgroupFiles files = open_files(cgroup);
  std::vector<char> buffer(kKernelTextBytes);
  Sample sample;
  CHECK(files.read(MonotonicTime{}, sample, buffer));
  CgroupFiles unread = open_files(cgroup);
  const CgroupId id = identify(files.directory_fd()).value();
  cgroup.remove();
  CHECK_FALSE(files.read(MonotonicTime{}, sample, buffer));
  CHECK_FALSE(unread.read(MonotonicTime{}, sample, buffer));
  const OwnCgroup again("/cgphase-sampler-race");
  CHECK_FALSE(files.read(MonotonicTime{}, sample, buffer));
  CHECK(identify(open_files(again).directory_fd()).value() != id);
}

TEST_CASE("fields are absent after a controller is disabled, until the reading after its return") {
  const OwnCgroup parent("/cgphase-sampler-parent");
  parent.write("cgroup.subtree_control", "+memory");
  const OwnCgroup child("/cgphase-sampler-parent/child");
  CgroupFiles files = open_files(child);
  std::vector<char> buffer(kKernelTextBytes);
  Sample sample;
  REQUIRE(files.read(MonotonicTime{}, sample, buffer));
  CHECK(sample.memory_current.has_value());
  parent.write("cgroup.subtree_control", "-memory");
  REQUIRE(files.read(MonotonicTime{}, sample, buffer));
  CHECK_FALSE(sample.memory_current.has_value());
  CHECK(sample.cpu.usage_usec.has_value());
  parent.write("cgroup.subtree_control", "+memory");
  child.write("memory.max", "67108864");
  REQUIRE(files.read(MonotonicTime(std::chrono::seconds(1)), sample, buffer));
  CHECK(sample.memory_current.has_value());
  CHECK(sample.limits.memory_max == MemoryLimit{Bytes{67108864}});
}

TEST_CASE("a cgroup gets its name from its extended attributes") {
  const OwnCgroup cgroup("/cgphase-sampler-attributes");
  const auto set = [&](const char* name, const std::string& value) {
    REQUIRE(::setxattr(cgroup.directory().c_str(), name, value.data(), value.size(), 0) == 0);
  };
  set("user.cgphase.image", "train:1");
  set("user.cgphase.name", "trainer");
  set("user.cgphase.mode", "enforce");
  NodeSampler sampler = open_sampler(cgroup.path());
  NodeSample tick;
  sampler.sample(SystemClock(), tick);
  const ContainerInfo& container = tick.appeared.at(0);
  CHECK(container.image == "train:1");
  CHECK(container.name == "trainer");
  CHECK(container.labels.at("cgphase.mode") == "enforce");
}

TEST_CASE("the sources of a real root are present") {
  const NodeSampler sampler = open_sampler("/none");
  for (const Source& source : sampler.sources())
    if (source.name != "PSI" && source.name != "swap" && source.name != "io controller")
      CHECK_MESSAGE(source.present, source.name << ": " << source.detail);
}

TEST_CASE("many siblings are read after one flush of their parent, with the same values") {
  const OwnCgroup parent("/cgphase-sampler-many");
  std::deque<OwnCgroup> children;
  for (int i = 0; i < 16; ++i) children.emplace_back(parent.path() + "/" + std::to_string(i));
  children.back().start(burn);
  NodeSampler sampler = open_sampler(parent.path() + "/*");
  NodeSample tick;
  CHECK(sample_until(sampler, tick, [&] {
    return std::ranges::count_if(tick.containers, [](const Sample& sample) {
             return sample.cpu.usage_usec > 20'000;
           }) == 1;
  }));
  CHECK(tick.containers.size() == 16);
}

TEST_SUITE_END();
