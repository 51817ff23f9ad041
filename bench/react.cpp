// How fast the guard reacts on a real kernel: from the kernel's notification to the raised limit in
// force, and from the first stalled or throttled microsecond. The guard's own thread runs, in
// cgroups of the benchmark, with all sources, without PSI, and polling alone. The notification is
// what a second listener in this process sees, at real-time priority. One JSON object per line,
// cause and kind of sources; times in milliseconds, limits side by side with what was measured.
//
//   bench_react [--root CGROUP2_DIRECTORY] [--rounds N] [--file FILE]
//
// FILE is made, and must lie on a disk, not on tmpfs: its cache is what meets memory.max.
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "control/guard.h"
#include "control/lease_table.h"

using namespace cgphase;

namespace {

constexpr int kDefaultRounds = 40;
constexpr double kAimMs = 10;
// cpu.stat counts a throttled period at its end, so it is not known before.
constexpr double kPeriodMs = 100;
constexpr double kPeriodLookMs = 20;
constexpr int kPatienceMs = 20'000;
constexpr std::size_t kFileBytes = 96 * kMiB;
constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr unsigned kSeed = 7;
const SystemClock kClock;

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

std::int64_t now_ns() { return kClock.monotonic_now().time_since_epoch().count(); }

void pause_ms(int ms) { ::poll(nullptr, 0, ms); }

void write_file(const std::string& path, std::string_view text) {
  const Result<Fd> fd = open_path(path, O_WRONLY);
  if (!fd) fail(fd.error().text);
  if (const Status written = pwrite_text(fd->get(), text); !written)
    fail(path + ": " + written.error().text);
}

// What a child tells: when the step began in which it was first held back, 0 before that.
struct Shared {
  std::atomic<std::int64_t> first_ns;
  std::atomic<bool> go;
};

// A child of the cgroup. It and all its kind end with the benchmark.
class Child {
 public:
  Child(const std::string& directory, const std::function<void()>& work) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    const Fd procs(::open((directory + "/cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
    if (::write(procs.get(), "0", 1) != 1) ::_exit(1);
    work();
    for (;;) ::pause();
  }
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

void wait_for_go(const Shared& shared) {
  while (!shared.go.load()) ::usleep(1000);
}

void spin(Shared& shared, const std::string&, const std::string&) {
  wait_for_go(shared);
  for (std::int64_t last = now_ns();;) {
    const std::int64_t now = now_ns();
    if (now - last > 30'000'000 && shared.first_ns.load() == 0) shared.first_ns.store(last);
    last = now;
  }
}

// Reads until its cache meets memory.max.
void read_through(Shared& shared, const std::string& group, const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);  // charged to whoever reads it anew
  std::vector<char> block(kBlockBytes);
  const std::string events = group + "/memory.events";
  const std::string_view none = "\nmax 0\n";
  wait_for_go(shared);
  for (std::size_t at = 0; at < kFileBytes; at += kBlockBytes) {
    const std::int64_t began = now_ns();
    if (::pread(fd.get(), block.data(), block.size(), static_cast<off_t>(at)) <= 0) ::_exit(2);
    if (read_file(events, 4096).value_or("").find(none) != std::string::npos) continue;
    shared.first_ns.store(began);
    return;
  }
}

// Anonymous memory that is given back and taken anew; without swap none of it can be reclaimed.
void turn_over(Shared& shared, const std::string&, const std::string&) {
  // A step is more than the kernel keeps charged ahead for each processor.
  constexpr std::size_t kBytes = 24 * kMiB, kStep = 512 * 1024;
  auto* memory = static_cast<char*>(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  for (std::size_t at = 0; at < kBytes; at += 4096) memory[at] = 1;
  for (std::size_t at = 0;; at = (at + kStep) % kBytes) {
    const bool lowered = shared.go.load();
    const std::int64_t began = now_ns();
    ::madvise(memory + at, kStep, MADV_DONTNEED);
    for (std::size_t page = 0; page < kStep; page += 4096) memory[at + page] = 1;
    const bool held_back = lowered && now_ns() - began > 200'000'000;
    if (held_back && shared.first_ns.load() == 0) shared.first_ns.store(began);
  }
}

// One way to get into trouble under a lowered limit.
struct Cause {
  const char* name;
  const char* trigger_file;  // null: told by inotify
  const char* trigger;
  const char* told_file;     // by inotify
  Knob knob;
  const char *original, *lowered;
  // In the child, from before the limit is lowered; null: it rests, and its end is the cause.
  void (*work)(Shared& shared, const std::string& group, const std::string& file);
};
constexpr std::array<Cause, 4> kCauses = {{
    {"processes_ended", nullptr, nullptr, "cgroup.events", Knob::memory_max, "1073741824",
     "536870912", nullptr},
    {"memory_max_event", nullptr, nullptr, "memory.events.local", Knob::memory_max, "1073741824",
     "33554432", read_through},
    {"memory_high_stall", nullptr, nullptr, "memory.events.local", Knob::memory_high, "max",
     "16777216", turn_over},
    {"cpu_throttled", "cpu.pressure", "some 10000 500000", nullptr, Knob::cpu_max, "80000 100000",
     "20000 100000", spin},
}};

struct Sources {
  const char* name;
  bool pressure, inotify;
};
constexpr std::array<Sources, 3> kSources = {
    {{"psi+inotify", true, true}, {"inotify", false, true}, {"polling", false, false}}};

// Notes when the kernel tells, in a thread that comes before all others.
class Listener {
 public:
  Listener(const std::string& group, const Cause& cause) {
    if (cause.trigger_file != nullptr) {
      told_ = Fd(::open((group + "/" + cause.trigger_file).c_str(), O_RDWR | O_CLOEXEC));
      const std::size_t bytes = std::string_view(cause.trigger).size() + 1;
      if (told_.valid() && ::write(told_.get(), cause.trigger, bytes) < 0) told_.reset();
    } else {
      held_ = Fd(::open((group + "/" + cause.told_file).c_str(), O_RDONLY | O_CLOEXEC));
      told_ = Fd(::inotify_init1(IN_CLOEXEC));
      ::inotify_add_watch(told_.get(), (group + "/" + cause.told_file).c_str(), IN_MODIFY);
    }
    end_ = Fd(::eventfd(0, EFD_CLOEXEC));
    const short wanted = cause.trigger_file != nullptr ? POLLPRI : POLLIN;
    thread_ = std::thread([this, wanted] { listen(wanted); });
    const sched_param first{.sched_priority = 10};
    ::pthread_setschedparam(thread_.native_handle(), SCHED_FIFO, &first);
  }
  ~Listener() {
    ::eventfd_write(end_.get(), 1);
    thread_.join();
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  // 0 where the kernel has told nothing.
  std::int64_t told_ns() const { return told_ns_.load(); }

 private:
  void listen(short wanted) {
    std::array<pollfd, 2> fds = {pollfd{end_.get(), POLLIN, 0}, pollfd{told_.get(), wanted, 0}};
    for (;;) {
      ::poll(fds.data(), fds.size(), -1);
      if (fds[0].revents != 0) return;
      told_ns_.store(now_ns());
      fds[1].fd = -1;
    }
  }

  Fd told_, held_, end_;
  std::atomic<std::int64_t> told_ns_{0};
  std::thread thread_;
};

// Absent where the guard came first.
struct Reaction {
  std::optional<double> from_notification_ms, from_first_ms;
};

// The guard of a daemon, and cgroups that it watches one after another.
class Bench {
 public:
  Bench(std::string root, std::string file, const Sources& sources)
      : root_(std::move(root)), file_(std::move(file)) {
    runtime_ = "/tmp/cgphase-react-" + std::to_string(::getpid());
    auto leases = LeaseTable::open({.runtime_dir = runtime_, .records = 8});
    if (!leases) fail(leases.error().text);
    leases_ = std::move(*leases);
    auto guard = Guard::create({.leases = leases_.get(), .clock = &kClock, .containers = 4,
                                .cgroup_root = root_, .pressure = sources.pressure,
                                .inotify = sources.inotify});
    if (!guard) fail(guard.error().text);
    guard_ = std::move(*guard);
    if (sources.pressure) pressure_ = guard_->pressure().present;
    if (const Status started = guard_->start(); !started) fail(started.error().text);
    shared_ = static_cast<Shared*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (shared_ == MAP_FAILED) fail("no shared memory");
  }
  ~Bench() {
    guard_->stop();
    ::munmap(shared_, 4096);
    std::filesystem::remove_all(runtime_);
  }
  bool has_pressure() const { return pressure_; }

  Reaction react(const Cause& cause) {
    const std::string path = "/cgphase-react-" + std::to_string(::getpid()) + "-" +
                             std::to_string(next_++);
    const std::string group = root_ + path;
    if (::mkdir(group.c_str(), 0755) != 0) fail(group + ": " + errno_word(errno));
    const Fd directory = open_path(group, O_RDONLY | O_DIRECTORY).value();
    struct stat status{};
    ::fstat(directory.get(), &status);
    const CgroupId id{status.st_dev, status.st_ino};
    shared_->first_ns.store(0);
    shared_->go.store(false);
    Reaction reaction;
    {
      auto child = std::make_unique<Child>(group, [&] {
        if (cause.work != nullptr) cause.work(*shared_, group, file_);
      });
      while (read_file(group + "/cgroup.procs", 4096).value_or("").empty()) pause_ms(1);
      write_file(group + "/" + file_name(cause.knob), cause.original);
      if (cause.work == turn_over) wait_until_used(group, 24 * kMiB);
      reaction = provoke(cause, group, path, id, directory.get(), child);
    }
    guard_->drop(id);
    if (const auto record = leases_->find(id, cause.knob)) leases_->release(*record);
    for (int i = 0; ::rmdir(group.c_str()) != 0; ++i) {
      if (i > kPatienceMs) fail(group + " stays busy");
      pause_ms(1);
    }
    return reaction;
  }

 private:
  static void wait_until_used(const std::string& group, std::uint64_t bytes) {
    for (int i = 0; i < kPatienceMs; i += 5, pause_ms(5))
      if (parse_u64(trim(read_file(group + "/memory.current", 64).value_or(""))) >= bytes) return;
    fail("the child does not get its memory");
  }

  Reaction provoke(const Cause& cause, const std::string& group, const std::string& path,
                   CgroupId id, int directory, std::unique_ptr<Child>& child) {
    const auto record = leases_->hold(id, path, cause.knob, *KnobText::from(cause.original),
                                      *KnobText::from(cause.lowered), "bench");
    if (!record) fail(record.error().text);
    if (const Status covered = guard_->cover(id, directory, cause.knob, *record); !covered)
      fail(covered.error().text);
    // At any moment between two looks of the guard.
    pause_ms(std::uniform_int_distribution<int>(600, 1100)(random_));
    const Listener listener(group, cause);
    shared_->go.store(true);
    if (cause.work == nullptr) {
      write_file(group + "/" + file_name(cause.knob), cause.lowered);
      pause_ms(std::uniform_int_distribution<int>(50, 550)(random_));
      shared_->first_ns.store(now_ns());
      child.reset();
    } else {
      write_file(group + "/" + file_name(cause.knob), cause.lowered);
    }
    return await(cause, id, listener);
  }

  Reaction await(const Cause& cause, CgroupId id, const Listener& listener) {
    for (;;) {
      pollfd acted{guard_->action_fd(), POLLIN, 0};
      if (::poll(&acted, 1, kPatienceMs) != 1) fail(std::string(cause.name) + ": no reaction");
      for (const GuardAction& action : guard_->take_actions()) {
        if (action.id != id || action.knob != cause.knob) continue;
        const std::int64_t raised = action.time.time_since_epoch().count();
        pause_ms(50);  // the first step of the child may end only now
        Reaction reaction;
        const std::int64_t told = listener.told_ns(), first = shared_->first_ns.load();
        if (told != 0 && told <= raised)
          reaction.from_notification_ms = static_cast<double>(raised - told) / 1e6;
        if (first != 0) reaction.from_first_ms = static_cast<double>(raised - first) / 1e6;
        return reaction;
      }
    }
  }

  std::string root_, file_, runtime_;
  std::unique_ptr<LeaseTable> leases_;
  std::unique_ptr<Guard> guard_;
  Shared* shared_ = nullptr;
  bool pressure_ = false;
  int next_ = 0;
  std::mt19937 random_{kSeed};
};

// Nearest rank.
double quantile(const std::vector<double>& sorted, double q) {
  const auto rank = static_cast<std::size_t>(q * static_cast<double>(sorted.size()) + 0.999999);
  return sorted[std::clamp<std::size_t>(rank, 1, sorted.size()) - 1];
}

std::string spread(std::vector<double> values) {
  if (values.empty()) return "null";
  std::sort(values.begin(), values.end());
  std::array<char, 128> text;
  std::snprintf(text.data(), text.size(),
                "{\"p50\":%.2f,\"p90\":%.2f,\"p99\":%.2f,\"max\":%.2f}", quantile(values, 0.5),
                quantile(values, 0.9), quantile(values, 0.99), values.back());
  return text.data();
}

void measure(Bench& bench, const Cause& cause, const Sources& sources, int rounds) {
  std::vector<double> notified, first;
  for (int i = 0; i < rounds; ++i) {
    const Reaction reaction = bench.react(cause);
    if (reaction.from_notification_ms) notified.push_back(*reaction.from_notification_ms);
    if (reaction.from_first_ms) first.push_back(*reaction.from_first_ms);
  }
  const bool cpu = cause.knob == Knob::cpu_max;
  const bool polled = !sources.inotify || (cpu && !sources.pressure);
  const auto interval_ms = static_cast<double>(kGuardRiskInterval.count());
  const double prompt_ms = cpu ? kPeriodLookMs : kAimMs;
  const double limit = (polled ? interval_ms : prompt_ms) + (cpu ? kPeriodMs : 0);
  std::vector<double> sorted = notified;
  std::sort(sorted.begin(), sorted.end());
  const char* held = sorted.empty() ? "null" : quantile(sorted, 0.99) <= limit ? "true" : "false";
  std::printf("{\"bench\":\"react\",\"cause\":\"%s\",\"sources\":\"%s\",\"rounds\":%d,"
              "\"notified\":%zu,\"from_notification_ms\":%s,\"limit_p99_ms\":%.0f,"
              "\"within_limit\":%s,\"held_back\":%zu,\"from_first_ms\":%s}\n",
              cause.name, sources.name, rounds, notified.size(), spread(notified).c_str(), limit,
              held, first.size(), spread(first).c_str());
  std::fflush(stdout);
}

void make_file(const std::string& file) {
  const Fd fd = open_path(file, O_WRONLY | O_CREAT | O_TRUNC, 0600).value();
  const std::string block(kBlockBytes, 'x');
  for (std::size_t at = 0; at < kFileBytes; at += block.size())
    if (const Status written = write_all(fd.get(), block); !written) fail(written.error().text);
  ::fsync(fd.get());
}

void run(int argc, char** argv) {
  std::string root = "/sys/fs/cgroup", file = "/tmp/cgphase-react.data";
  int rounds = kDefaultRounds;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const std::uint64_t number = i + 1 < argc ? parse_u64(argv[i + 1]).value_or(0) : 0;
    if (option == "--root" && i + 1 < argc) root = argv[i + 1];
    else if (option == "--file" && i + 1 < argc) file = argv[i + 1];
    else if (option == "--rounds" && number > 0 && number <= 10'000)
      rounds = static_cast<int>(number);
    else fail("usage: bench_react [--root CGROUP2_DIRECTORY] [--rounds N] [--file FILE]");
  }
  make_file(file);
  for (const Sources& sources : kSources) {
    Bench bench(root, file, sources);
    if (sources.pressure && !bench.has_pressure()) continue;  // this kernel has no PSI
    for (const Cause& cause : kCauses) measure(bench, cause, sources, rounds);
  }
  std::filesystem::remove(file);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_react: %s\n", error.what());
    return 1;
  }
}
