// Compares a walk over cgroups with their files: file, walk, file again. Other cases compare the
// daemon's own result with the file afterwards, for cgroups whose processes have stopped. Runs in a
// guest with BPF and all controllers.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/kernel_text.h"
#include "collectors/cgroup_files.h"
#include "collectors/ebpf/kernel_pull.h"
#include "collectors/node_sampler.h"
#include "tests/kernel/stopped.h"

namespace cgphase {
namespace {

constexpr int kPulledCount = 4;
constexpr int kMostTurns = 60;
constexpr int kCalibrationTurns = MemoryLines::kNeededComparisons + 1;  // files are read in these
constexpr int kFlushTurns = 8;
constexpr const char* kWays[] = {"BPF css iterator", "BPF iterator"};

std::string pull_root() { return std::getenv("CGPHASE_CGROUP_ROOT"); }

// Takes memory, of a file and of its own, writes to the disk, burns CPU and stops; once per
// SIGCONT.
void work_in_turns(int number) {
  const std::size_t bytes = (2U + static_cast<unsigned>(number)) << 20;
  const int file = ::open("/tmp", O_TMPFILE | O_RDWR, 0600);
  std::vector<char> block(1U << 16, 'x');
  for (;;) {
    auto* memory = static_cast<char*>(
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
    for (int i = 0; i < 1 << (2 * number); ++i)
      if (::write(file, block.data(), block.size()) < 0) ::_exit(2);
    ::fsync(file);
    for (int i = 0; i < 2'000'000; ++i) asm volatile("");
    ::raise(SIGSTOP);
    ::munmap(memory, bytes);
  }
}

// The cgroups are below one parent, so that one flush is enough.
class Worked {
 public:
  Worked() : parent_(pull_root() + "/cgphase-pulled") {
    REQUIRE(::mkdir(parent_.c_str(), 0755) == 0);
    put(parent_ + "/cgroup.subtree_control", "+cpu +memory +io +pids");
    for (int i = 0; i < kPulledCount; ++i) start(i);
    settle();
  }
  ~Worked() {
    for (const pid_t pid : pids_) ::kill(pid, SIGKILL);
    for (const pid_t pid : pids_) ::waitpid(pid, nullptr, 0);
    for (int i = 0; i < kPulledCount; ++i) ::rmdir(directory(i).c_str());
    ::rmdir(parent_.c_str());
  }
  void turn() {
    for (const pid_t pid : pids_) ::kill(pid, SIGCONT);
    settle();
  }
  const std::string& parent() const { return parent_; }
  std::string directory(int i) const { return parent_ + "/" + std::to_string(i); }
  CgroupId id(int i) const { return identify(files(i).directory_fd()).value(); }
  CgroupFiles files(int i) const {
    return CgroupFiles(open_path(directory(i), O_RDONLY | O_DIRECTORY).value());
  }

  static void put(const std::string& path, const std::string& text) {
    CAPTURE(path);
    const Result<Fd> file = open_path(path, O_WRONLY);
    REQUIRE(file.has_value());
    REQUIRE(pwrite_text(file->get(), text).has_value());
  }

 private:
  void start(int i) {
    REQUIRE(::mkdir(directory(i).c_str(), 0755) == 0);
    if (i % 2 == 1) put(directory(i) + "/cpu.max", "5000 10000");
    if (i == 2) put(directory(i) + "/memory.high", "8388608");
    const pid_t pid = ::fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
      const Result<Fd> procs = open_path(directory(i) + "/cgroup.procs", O_WRONLY);
      if (!procs || !pwrite_text(procs->get(), "0")) ::_exit(1);
      work_in_turns(i);
    }
    pids_.push_back(pid);
  }
  void settle() {
    for (const pid_t pid : pids_) REQUIRE(await_stop(pid));
  }

  std::string parent_;
  std::vector<pid_t> pids_;
};

// All fields that a walk provides. Empty if they are equal. Stall averages are equal while the
// kernel updates them; later the clock of the test ages them.
std::string difference(const Sample& a, const Sample& b, bool averages) {
  std::string text;
  const auto compare = [&](const char* name, const auto& one, const auto& other) {
    if (one != other) text += std::string(" ") + name;
  };
  const auto compare_ratio = [&](const char* name, std::optional<double> one,
                                 std::optional<double> other) {
    if (one != other)
      text += std::string(" ") + name + " " + std::to_string(one.value_or(-1)) + "/" +
              std::to_string(other.value_or(-1));
  };
  const auto bytes = [](const std::optional<Bytes>& value) {
    return value ? std::optional(value->value) : std::nullopt;
  };
  compare("usage", a.cpu.usage_usec, b.cpu.usage_usec);
  compare("user", a.cpu.user_usec, b.cpu.user_usec);
  compare("system", a.cpu.system_usec, b.cpu.system_usec);
  compare("periods", a.cpu.nr_periods, b.cpu.nr_periods);
  compare("throttled", a.cpu.nr_throttled, b.cpu.nr_throttled);
  compare("throttled_usec", a.cpu.throttled_usec, b.cpu.throttled_usec);
  compare("current", bytes(a.memory_current), bytes(b.memory_current));
  compare("peak", bytes(a.memory_peak), bytes(b.memory_peak));
  compare("swap", bytes(a.swap_current), bytes(b.swap_current));
  if (!(a.memory_events == b.memory_events)) text += " events";
  compare("own max", a.own_limit_events.max, b.own_limit_events.max);
  compare("own oom", a.own_limit_events.oom, b.own_limit_events.oom);
  compare("pids", a.pids_current, b.pids_current);
  compare("rbytes", a.io.read_bytes, b.io.read_bytes);
  compare("wbytes", a.io.write_bytes, b.io.write_bytes);
  compare("rios", a.io.read_ios, b.io.read_ios);
  compare("wios", a.io.write_ios, b.io.write_ios);
  for (const auto pressure : {&Sample::cpu_pressure, &Sample::memory_pressure,
                              &Sample::io_pressure})
    for (const auto line : {&Pressure::some, &Pressure::full}) {
      const PressureLine& one = a.*pressure.*line;
      const PressureLine& other = b.*pressure.*line;
      compare("stall", one.total_usec, other.total_usec);
      if (!averages) continue;
      compare_ratio("avg10", one.avg10_ratio, other.avg10_ratio);
      compare_ratio("avg60", one.avg60_ratio, other.avg60_ratio);
    }
  return text;
}

std::string memory_difference(const MemoryStat& a, const MemoryStat& b) {
  std::string text;
  const auto compare = [&](const char* name, Counter MemoryStat::* field) {
    const auto in_words = [](const Counter& value) {
      return value ? std::to_string(*value) : std::string("none");
    };
    if (a.*field != b.*field)
      text += std::string(" ") + name + " " + in_words(a.*field) + "/" + in_words(b.*field);
  };
  compare("anon", &MemoryStat::anon_bytes);
  compare("file", &MemoryStat::file_bytes);
  compare("shmem", &MemoryStat::shmem_bytes);
  compare("unevictable", &MemoryStat::unevictable_bytes);
  compare("kernel", &MemoryStat::kernel_bytes);
  compare("slab_reclaimable", &MemoryStat::slab_reclaimable_bytes);
  compare("slab_unreclaimable", &MemoryStat::slab_unreclaimable_bytes);
  compare("sock", &MemoryStat::sock_bytes);
  compare("inactive_file", &MemoryStat::inactive_file_bytes);
  compare("active_file", &MemoryStat::active_file_bytes);
  compare("inactive_anon", &MemoryStat::inactive_anon_bytes);
  compare("pgfault", &MemoryStat::pgfault);
  compare("pgmajfault", &MemoryStat::pgmajfault);
  compare("refault_file", &MemoryStat::workingset_refault_file);
  compare("refault_anon", &MemoryStat::workingset_refault_anon);
  compare("pgscan", &MemoryStat::pgscan);
  compare("pgsteal", &MemoryStat::pgsteal);
  compare("pgscan_direct", &MemoryStat::pgscan_direct);
  return text;
}

// A first reading from the files alone.
Sample files_tell(const Worked& worked, int i, std::vector<char>& buffer) {
  CgroupFiles files = worked.files(i);
  Sample sample;
  REQUIRE(files.read(MonotonicTime{}, sample, buffer));
  return sample;
}

// Compares counters that grow with each turn of the work and with nothing else.
std::string count_difference(const Sample& a, const Sample& b) {
  std::string text;
  const auto compare = [&](const char* name, const Counter& one, const Counter& other) {
    if (one != other)
      text += std::string(" ") + name + " " + std::to_string(one.value_or(0)) + "/" +
              std::to_string(other.value_or(0));
  };
  compare("usage", a.cpu.usage_usec, b.cpu.usage_usec);
  compare("pgfault", a.memory.pgfault, b.memory.pgfault);
  return text;
}

Result<NodeSampler> sampler_of_worked(const std::string& way) {
  return NodeSampler::open({.cgroup_root = pull_root(), .include = {"/cgphase-pulled/*"},
                            .open_pull = [way](std::size_t room) {
                              return start_kernel_pull(pull_root(), room, way);
                            }});
}

// Adds all cgroups by their own walk, without reading a file. The places are those of worked.id(0),
// (1), ...
std::vector<std::uint32_t> add_all(CgroupPull& pull, const Worked& worked) {
  std::vector<std::uint32_t> places;
  for (int i = 0; i < kPulledCount; ++i) {
    const auto place = pull.add(worked.id(i).inode);
    REQUIRE(place.has_value());
    places.push_back(*place);
  }
  return places;
}

// Names of the files of these cgroups that this process has open.
std::set<std::string> files_held(const Worked& worked) {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;  // the descriptor of this directory walk
    const std::filesystem::path file = std::filesystem::read_symlink(entry.path(), gone);
    for (int i = 0; i < kPulledCount; ++i)
      if (!gone && file.parent_path() == worked.directory(i)) names.insert(file.filename());
  }
  return names;
}

// Files whose values come from a walk must be closed; else the files would be compared with
// themselves. memory.stat may be open in a turn after an unexpected walk: see memory_was_walked().
std::string read_from_files(const Worked& worked) {
  std::string text;
  for (const std::string& name : files_held(worked))
    if ((name.ends_with(".stat") && name != "memory.stat") || name.ends_with(".current") ||
        name.ends_with(".peak") || name.ends_with(".pressure") || name.starts_with("memory.events"))
      text += " " + name;
  return text;
}

// Whether the last sample of every cgroup took memory from the walk.
bool memory_was_walked(const Worked& worked) {
  return !files_held(worked).contains("memory.stat");
}

}  // namespace

TEST_SUITE_BEGIN("pull" * doctest::skip(std::getenv("CGPHASE_CGROUP_ROOT") == nullptr));

TEST_CASE("bpf: a walk reports the same values as the files, in each way the kernel accepts") {
  Worked worked;
  std::vector<char> buffer(kKernelTextBytes);
  int ways = 0;
  for (const std::string way : kWays) {
    CAPTURE(way);
    auto trial = start_kernel_pull(pull_root(), 64, way);
    MESSAGE(way << ": " << (trial ? "" : trial.error().text));
    if (!trial) continue;
    trial->reset();
    ++ways;
    auto sampler = sampler_of_worked(way);
    REQUIRE(sampler.has_value());
    ManualClock clock;
    NodeSample tick;
    int compared = 0, memory_compared = 0;
    std::uint64_t throttled = 0, written = 0, stalled = 0;
    std::string other, other_memory;
    for (int turn = 0; turn < kMostTurns && memory_compared < 8 * kPulledCount; ++turn) {
      worked.turn();
      clock.advance(std::chrono::seconds(2));
      std::vector<Sample> before;
      for (int i = 0; i < kPulledCount; ++i) before.push_back(files_tell(worked, i, buffer));
      sampler->sample(clock, tick);
      const bool walked = memory_was_walked(worked);
      REQUIRE(tick.containers.size() == kPulledCount);
      for (int i = 0; i < kPulledCount; ++i) {
        const Sample after = files_tell(worked, i, buffer);
        const auto at = std::ranges::find(tick.containers, worked.id(i), &Sample::id);
        REQUIRE(at != tick.containers.end());
        throttled += at->cpu.nr_throttled.value_or(0);
        written += at->io.write_bytes.value_or(0);
        stalled += at->cpu_pressure.some.total_usec.value_or(0);
        if (difference(before[static_cast<std::size_t>(i)], after, true).empty()) {
          ++compared;
          const std::string differs = difference(*at, after, turn <= 1);
          if (!differs.empty()) other += " turn " + std::to_string(turn) + ":" + differs;
        }
        if (memory_difference(before[static_cast<std::size_t>(i)].memory, after.memory).empty()) {
          memory_compared += walked;
          other_memory += memory_difference(at->memory, after.memory);
        }
      }
    }
    MESSAGE(way << ": " << compared << " and " << memory_compared << " compared");
    CHECK(other == "");
    CHECK(other_memory == "");
    CHECK(compared >= kPulledCount);
    CHECK(memory_compared >= 8 * kPulledCount);
    CHECK(read_from_files(worked) == "");
    CHECK(files_held(worked).contains("cpu.max"));  // proves that open files are found
    CHECK(throttled > 0);
    CHECK(written > 0);
    CHECK(stalled > 0);
  }
  // If the kernel is known to accept both ways, both must have run.
  const char* expected = std::getenv("CGPHASE_PULL_WAYS");
  CHECK(ways >= (expected ? std::atoi(expected) : 1));
}

// No file is read before it that would update the counts, so only the daemon's flush does. A walk
// right before the flush reports less, which proves that the kernel had not updated them itself.
TEST_CASE("bpf: the daemon's flush and walk report all work done until the processes stopped") {
  Worked worked;
  std::vector<char> buffer(kKernelTextBytes);
  int ways = 0;
  for (const std::string way : kWays) {
    CAPTURE(way);
    auto early = start_kernel_pull(pull_root(), 64, way);
    if (!early) continue;
    ++ways;
    const std::vector<std::uint32_t> places = add_all(**early, worked);
    auto sampler = sampler_of_worked(way);
    REQUIRE(sampler.has_value());
    ManualClock clock;
    NodeSample tick;
    int late_turns = 0, walked_turns = 0, compared = 0, same_writes = 0;
    std::string other;
    for (int turn = 0; turn < kCalibrationTurns + kFlushTurns; ++turn) {
      worked.turn();
      clock.advance(std::chrono::seconds(2));
      REQUIRE((*early)->walk(0));
      sampler->sample(clock, tick);
      bool late = false;
      for (int i = 0; i < kPulledCount; ++i) {
        const Sample after = files_tell(worked, i, buffer);
        const auto at = std::ranges::find(tick.containers, worked.id(i), &Sample::id);
        REQUIRE(at != tick.containers.end());
        const pull_record* before = (*early)->record(places[static_cast<std::size_t>(i)]);
        REQUIRE(before != nullptr);
        late = late || cpu_stat_of(*before).usage_usec < after.cpu.usage_usec;
        const std::string differs = count_difference(*at, after);
        if (!differs.empty()) other += " turn " + std::to_string(turn) + ":" + differs;
        ++compared;
        same_writes += at->io.write_bytes == after.io.write_bytes;
      }
      late_turns += turn >= kCalibrationTurns && late;
      walked_turns += memory_was_walked(worked);
    }
    CHECK(other == "");
    CHECK(2 * late_turns > kFlushTurns);
    CHECK(2 * walked_turns > kFlushTurns);
    CHECK(2 * same_writes > compared);  // the file system's own blocks may follow at any time
    CHECK(read_from_files(worked) == "");
  }
  CHECK(ways > 0);
}

// Since 6.16 each controller updates its own counts, and the daemon reads a file of each.
TEST_CASE("bpf: a walk detects whether one read of cpu.stat also updates I/O counts") {
  Worked worked;
  std::vector<char> buffer(kKernelTextBytes);
  int ways = 0;
  for (const std::string way : kWays) {
    CAPTURE(way);
    auto pull = start_kernel_pull(pull_root(), 64, way);
    if (!pull) continue;
    ++ways;
    const std::vector<std::uint32_t> places = add_all(**pull, worked);
    int compared = 0, late = 0;
    for (int turn = 0; turn < kFlushTurns; ++turn) {
      worked.turn();
      REQUIRE(read_file(worked.parent() + "/cpu.stat", kKernelTextBytes).has_value());
      REQUIRE((*pull)->walk(0));
      for (int i = 0; i < kPulledCount; ++i) {
        const pull_record* record = (*pull)->record(places[static_cast<std::size_t>(i)]);
        REQUIRE(record != nullptr);
        const Sample after = files_tell(worked, i, buffer);
        CHECK(cpu_stat_of(*record).usage_usec == after.cpu.usage_usec);
        ++compared;
        late += io_stat_of(*record).write_bytes != after.io.write_bytes;
      }
    }
    MESSAGE(way << ": of " << compared << " I/O was not up to date in " << late);
    CHECK((*pull)->one_flush() == (2 * late < compared));
  }
  CHECK(ways > 0);
}

// A rate over a shorter time would alternate between zero and twice the true value.
TEST_CASE("bpf: stall sums are updated every 2 s, however often a walk reads") {
  const std::string directory = pull_root() + "/cgphase-stalled";
  REQUIRE(::mkdir(directory.c_str(), 0755) == 0);
  Worked::put(directory + "/cpu.max", "2000 10000");
  const pid_t pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    const Result<Fd> procs = open_path(directory + "/cgroup.procs", O_WRONLY);
    if (!procs || !pwrite_text(procs->get(), "0")) ::_exit(1);
    for (;;) asm volatile("");
  }
  const Result<Fd> opened = open_path(directory, O_RDONLY | O_DIRECTORY);
  const CgroupId id = identify(opened.value().get()).value();
  for (const std::string way : kWays) {
    CAPTURE(way);
    auto pull = start_kernel_pull(pull_root(), 64, way);
    if (!pull) continue;
    const auto place = (*pull)->add(id.inode);
    REQUIRE(place);
    constexpr int kWalks = 40;
    int moves = 0;
    std::uint64_t before = 0;
    for (int i = 0; i < kWalks; ++i) {
      ::usleep(200'000);
      REQUIRE((*pull)->walk(0));
      const pull_record* record = (*pull)->record(*place);
      REQUIRE(record != nullptr);
      REQUIRE((record->parts & PULL_PRESSURE) != 0);
      moves += i > 0 && record->stall_ns[4] != before;
      before = record->stall_ns[4];
    }
    MESSAGE(way << ": " << moves << " moves in " << kWalks << " walks");
    CHECK(moves >= 2);
    CHECK(moves <= kWalks / 4);
  }
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  ::rmdir(directory.c_str());
}

TEST_CASE("bpf: a walk reports each limit that was written, and a cgroup that froze") {
  const Worked worked;
  const std::string directory = worked.directory(0) + "/";
  const CgroupId id = worked.id(0);
  std::uint64_t number = 0;  // a different value for each way
  for (const std::string way : kWays) {
    CAPTURE(way);
    auto pull = start_kernel_pull(pull_root(), 64, way);
    if (!pull) continue;
    ++number;
    const auto place = (*pull)->add(id.inode);
    REQUIRE(place);
    const auto walk = [&] {
      REQUIRE((*pull)->walk(0));
      const pull_record* record = (*pull)->record(*place);
      REQUIRE(record != nullptr);
      REQUIRE((record->parts & (PULL_LIMITS | PULL_STATE)) == (PULL_LIMITS | PULL_STATE));
      return *record;
    };
    const std::string bytes = std::to_string((8192 + number) * 4096);
    const std::string few = std::to_string(7000 + number);
    const std::pair<const char*, std::string> limits[] = {
        {"cpu.max", few + " 10000"}, {"cpu.max.burst", std::to_string(1000 + number)},
        {"cpu.weight", few},         {"memory.max", bytes},
        {"memory.high", bytes},      {"memory.low", bytes},
        {"memory.min", bytes},       {"memory.swap.max", bytes},
        {"pids.max", few}};
    for (const auto& [file, text] : limits) {
      CAPTURE(file);
      const pull_record before = walk();
      CHECK(walk().limits == before.limits);
      Worked::put(directory + file, text);
      CHECK(walk().limits != before.limits);
      CHECK(walk().state == before.state);
    }
    const pull_record thawed = walk();
    Worked::put(directory + "cgroup.freeze", "1");
    const auto frozen = [&] {
      const auto events = read_file(directory + "cgroup.events", 4096);
      return events && events->contains("frozen 1");
    };
    for (int tries = 0; tries < 1000 && !frozen(); ++tries) ::usleep(1000);
    REQUIRE(frozen());
    CHECK(walk().state != thawed.state);
    Worked::put(directory + "cgroup.freeze", "0");
    while (frozen()) ::usleep(1000);
    CHECK(walk().state == thawed.state);
  }
  CHECK(number > 0);
}

TEST_SUITE_END();

}  // namespace cgphase
