// Cost of one tick of the sampler per container, compared with plain preads of the same files in
// the same run. One JSON object per line and number of containers. Times are CPU time, medians over
// rounds of one cadence cycle.
//
//   bench_sample [--root DIR] [--rounds N]
//
// DIR is a writable cgroup2 directory in which cgroups are made and removed again. Without it they
// are a plain directory tree in /tmp.
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/parse.h"
#include "collectors/cgroup_files.h"
#include "collectors/node_sampler.h"

using namespace cgphase;

namespace {

constexpr std::array<std::size_t, 3> kContainerCounts = {10, 100, 1000};
constexpr int kTicksPerRound = 10;  // one second each: every cadence occurs at least once
constexpr int kDefaultRounds = 15;
constexpr double kAimRatio = 1.3;

struct Text {
  KernelFile file;
  const char* text;
};
// As Linux 6.1 prints them for a small busy container.
constexpr Text kTexts[] = {
    {KernelFile::memory_current, "73400320\n"}, {KernelFile::memory_peak, "93400320\n"},
    {KernelFile::memory_swap_current, "0\n"}, {KernelFile::memory_swap_max, "max\n"},
    {KernelFile::memory_events, "low 0\nhigh 12\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n"},
    {KernelFile::memory_events_local, "low 0\nhigh 12\nmax 0\noom 0\noom_kill 0\n"},
    {KernelFile::io_stat, "8:0 rbytes=1052672 wbytes=524288 rios=31 wios=12 dbytes=0 dios=0\n"},
    {KernelFile::pids_current, "7\n"}, {KernelFile::pids_max, "4915\n"},
    {KernelFile::cgroup_events, "populated 1\nfrozen 0\n"},
    {KernelFile::cgroup_freeze, "0\n"},
    {KernelFile::cpu_max, "200000 100000\n"}, {KernelFile::cpu_max_burst, "0\n"},
    {KernelFile::cpu_weight, "100\n"}, {KernelFile::memory_max, "536870912\n"},
    {KernelFile::memory_high, "max\n"}, {KernelFile::memory_low, "0\n"},
    {KernelFile::memory_min, "0\n"},
    {KernelFile::cpu_pressure, "some avg10=0.12 avg60=0.33 avg300=0.21 total=5321456\n"
                               "full avg10=0.00 avg60=0.00 avg300=0.00 total=432145\n"},
    {KernelFile::memory_pressure, "some avg10=0.00 avg60=0.00 avg300=0.00 total=21456\n"
                                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=2145\n"},
    {KernelFile::io_pressure, "some avg10=0.00 avg60=0.01 avg300=0.05 total=821456\n"
                              "full avg10=0.00 avg60=0.01 avg300=0.04 total=732145\n"},
    {KernelFile::memory_stat,
     "anon 52428800\nfile 16777216\nkernel 4194304\nkernel_stack 262144\npagetables 524288\n"
     "sec_pagetables 0\npercpu 18240\nsock 8192\nvmalloc 12288\nshmem 1048576\nzswap 0\n"
     "zswapped 0\nfile_mapped 8388608\nfile_dirty 4096\nfile_writeback 0\nswapcached 0\n"
     "anon_thp 0\nfile_thp 0\nshmem_thp 0\ninactive_anon 53477376\nactive_anon 16384\n"
     "inactive_file 10485760\nactive_file 5242880\nunevictable 0\nslab_reclaimable 2097152\n"
     "slab_unreclaimable 1048576\nslab 3145728\nworkingset_refault_anon 0\n"
     "workingset_refault_file 312\nworkingset_activate_anon 0\nworkingset_activate_file 44\n"
     "workingset_restore_anon 0\nworkingset_restore_file 12\nworkingset_nodereclaim 0\n"
     "pgscan 5120\npgsteal 4096\npgscan_kswapd 0\npgscan_direct 5120\npgsteal_kswapd 0\n"
     "pgsteal_direct 4096\npgfault 181234\npgmajfault 121\npgrefill 312\npgactivate 5123\n"
     "pgdeactivate 211\npglazyfree 0\npglazyfreed 0\nzswpin 0\nzswpout 0\n"
     "thp_fault_alloc 0\nthp_collapse_alloc 0\n"}};

// Thrown, so that the trees are removed on the way out.
[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

// N child directories of a directory of this benchmark.
class Tree {
 public:
  Tree(const std::string& cgroup_root, std::size_t count) : real_(!cgroup_root.empty()) {
    directory_ = (real_ ? cgroup_root : "/tmp") + "/cgphase-bench-" + std::to_string(::getpid());
    make(directory_);
    for (std::size_t i = 0; i < count; ++i) {
      children_.push_back(directory_ + "/c" + std::to_string(i));
      make(children_.back());
      if (!real_) fill(children_.back());
    }
  }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;
  ~Tree() {
    for (const std::string& child : children_) {
      if (!real_) clear(child);
      ::rmdir(child.c_str());
    }
    ::rmdir(directory_.c_str());
  }

  const std::string& directory() const { return directory_; }
  const std::vector<std::string>& children() const { return children_; }
  bool real() const { return real_; }

  // In a plain tree every container has worked since the last tick.
  void work() {
    if (real_) return;
    usage_usec_ += 500'000;
    for (const std::string& child : children_) write_usage(child);
  }

 private:
  static void make(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) != 0) fail(path + ": " + errno_word(errno));
  }
  void write_usage(const std::string& child) const {
    const std::string path = child + "/" + kernel_file_name(KernelFile::cpu_stat);
    const Result<Fd> fd = open_path(path, O_WRONLY | O_CREAT, 0644);
    if (!fd || !pwrite_text(fd->get(), "usage_usec " + std::to_string(usage_usec_) +
                                           "\nuser_usec 400000\nsystem_usec 100000\n"
                                           "nr_periods 31234\nnr_throttled 12\n"
                                           "throttled_usec 32145\nnr_bursts 0\nburst_usec 0\n"))
      fail(path);
  }
  void fill(const std::string& child) const {
    for (const Text& entry : kTexts)
      std::ofstream(child + "/" + kernel_file_name(entry.file)) << entry.text;
    write_usage(child);
  }
  static void clear(const std::string& child) {
    for (std::size_t i = 0; i < kKernelFileCount; ++i)
      ::unlink((child + "/" + kernel_file_name(static_cast<KernelFile>(i))).c_str());
  }

  bool real_;
  std::string directory_;
  std::vector<std::string> children_;
  std::uint64_t usage_usec_ = 100'000'000;
};

enum class Cadence { tick, pressure, memory_stat, slow };

Cadence cadence_of(KernelFile file) {
  switch (file) {
    case KernelFile::memory_stat: return Cadence::memory_stat;
    case KernelFile::cpu_pressure:
    case KernelFile::memory_pressure:
    case KernelFile::io_pressure: return Cadence::pressure;
    case KernelFile::memory_low:
    case KernelFile::memory_min:
    case KernelFile::memory_swap_max:
    case KernelFile::pids_max: return Cadence::slow;
    default: return Cadence::tick;
  }
}

// Reads the same files at the same cadence without anything around it: no parsing, no containers.
// Open files are read through the sampler's own descriptors. A second set would not fit below a
// usual limit and would have its own buffers in the kernel.
class BareReader {
 public:
  // Create it after the sampler's first tick.
  explicit BareReader(const Tree& tree) : tree_(tree) {
    for (const std::string& child : tree.children()) add_child(child);
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code error;
      const std::filesystem::path target = std::filesystem::read_symlink(entry.path(), error);
      const int fd = std::atoi(entry.path().filename().c_str());
      if (const auto itself = by_path_.find(target.string()); itself != by_path_.end())
        children_[itself->second].directory = fd;
      else if (const auto child = by_path_.find(target.parent_path().string());
               child != by_path_.end())
        add_held(children_[child->second], target.filename().string(), fd);
    }
    for (const Child& child : children_)
      if (child.held.empty()) fail("no open descriptors found in " + tree.directory());
  }

  // Returns the number of preads.
  std::size_t tick(int number) {
    const bool memory_stat = !tree_.real() || number % kTicksPerRound == 0;  // else all are idle
    std::size_t count = 0;
    for (const Child& child : children_) {
      for (const auto& [cadence, fd] : child.held) {
        if (cadence == Cadence::pressure && number % 2 != 0) continue;
        if (cadence == Cadence::memory_stat && !memory_stat) continue;
        count += read(fd);
      }
      if (number % kTicksPerRound != 0) continue;
      for (const KernelFile file : child.opened) {
        const Fd fd(::openat(child.directory, kernel_file_name(file), O_RDONLY | O_CLOEXEC));
        count += read(fd.get());
      }
    }
    return count;
  }

 private:
  struct Child {
    int directory = -1;
    std::vector<std::pair<Cadence, int>> held;
    std::vector<KernelFile> opened;
  };

  void add_child(const std::string& path) {
    by_path_.emplace(path, children_.size());
    Child child;
    for (std::size_t i = 0; i < kKernelFileCount; ++i) {
      const auto file = static_cast<KernelFile>(i);
      const std::string name = path + "/" + kernel_file_name(file);
      if (cadence_of(file) == Cadence::slow && ::access(name.c_str(), F_OK) == 0)
        child.opened.push_back(file);
    }
    children_.push_back(std::move(child));
  }
  static void add_held(Child& child, const std::string& name, int fd) {
    for (std::size_t i = 0; i < kKernelFileCount; ++i)
      if (name == kernel_file_name(static_cast<KernelFile>(i)))
        child.held.emplace_back(cadence_of(static_cast<KernelFile>(i)), fd);
  }
  std::size_t read(int fd) {
    return ::pread(fd, buffer_.data(), buffer_.size(), 0) >= 0 ? 1 : 0;
  }

  const Tree& tree_;
  std::vector<Child> children_;
  std::map<std::string, std::size_t> by_path_;
  std::vector<char> buffer_ = std::vector<char>(kKernelTextBytes);
};

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// CPU time of this thread: nothing here waits, and other programs do not count.
double cpu_us() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

template <class Work>
double microseconds(const Work& work) {
  const double start = cpu_us();
  work();
  return cpu_us() - start;
}

struct Round {
  double sampler_us = 0, bare_us = 0;
  std::size_t reads = 0;
};

// Alternates, so that neither side always finds warm caches.
Round run_round(Tree& tree, NodeSampler& sampler, BareReader& bare, ManualClock& clock) {
  Round round;
  NodeSample tick;
  for (int number = 0; number < kTicksPerRound; ++number) {
    tree.work();
    clock.advance(std::chrono::seconds(1));
    const auto sample = [&] {
      round.sampler_us += microseconds([&] { sampler.sample(clock, tick); });
    };
    if (number % 4 < 2) sample();
    round.bare_us += microseconds([&] { round.reads += bare.tick(number); });
    if (number % 4 >= 2) sample();
    if (tick.containers.size() != tree.children().size()) fail("the sampler lost containers");
  }
  return round;
}

void measure(const std::string& cgroup_root, std::size_t count, int rounds) {
  Tree tree(cgroup_root, count);
  // The sweep has its own cost, once a minute, and is not part of a tick.
  Result<NodeSampler> sampler = NodeSampler::open({.cgroup_root = tree.directory(),
                                                   .include = {"/c*"},
                                                   .sweep = std::chrono::hours(24)});
  if (!sampler) fail(sampler.error().text);
  ManualClock clock;
  NodeSample first;
  sampler->sample(clock, first);
  BareReader bare(tree);
  std::vector<double> sampler_us, bare_us, ratio;
  std::size_t reads = 0;
  run_round(tree, *sampler, bare, clock);
  for (int i = 0; i < rounds; ++i) {
    const Round round = run_round(tree, *sampler, bare, clock);
    const double ticks = static_cast<double>(count) * kTicksPerRound;
    sampler_us.push_back(round.sampler_us / ticks);
    bare_us.push_back(round.bare_us / ticks);
    ratio.push_back(round.sampler_us / round.bare_us);
    reads = round.reads;
  }
  std::printf("{\"bench\":\"sample\",\"tree\":\"%s\",\"containers\":%zu,\"rounds\":%d,"
              "\"preads_per_container_tick\":%.2f,\"sampler_us\":%.3f,\"bare_pread_us\":%.3f,"
              "\"ratio\":%.3f,\"aim_ratio\":%.1f}\n",
              tree.real() ? "cgroup2" : "plain", count, rounds,
              static_cast<double>(reads) / static_cast<double>(count * kTicksPerRound),
              median(sampler_us), median(bare_us), median(ratio), kAimRatio);
}

bool is_cgroup2(const std::string& path) {
  struct statfs status{};
  return ::statfs(path.c_str(), &status) == 0 && status.f_type == CGROUP2_SUPER_MAGIC;
}

void run(int argc, char** argv) {
  std::string root;
  int rounds = kDefaultRounds;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::uint64_t number = i + 1 < argc ? parse_u64(argv[i + 1]).value_or(0) : 0;
    if (option == "--root" && i + 1 < argc) root = argv[i + 1];
    else if (option == "--rounds" && number > 0 && number <= 10'000)
      rounds = static_cast<int>(number);
    else fail("usage: bench_sample [--root CGROUP2_DIRECTORY] [--rounds N]");
  }
  if (!root.empty() && !is_cgroup2(root)) fail(root + ": not a cgroup2 directory");
  for (const std::size_t count : kContainerCounts) measure(root, count, rounds);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_sample: %s\n", error.what());
    return 1;
  }
}
