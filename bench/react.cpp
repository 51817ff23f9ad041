// Reaction time of the fast path on a real kernel. Its own thread runs. Cgroups of the benchmark
// get into trouble under a lowered limit, one after another. There is one JSON object per line, for
// each kind of trouble and each set of the fast path's sources. `told_by` (psi, inotify, poll) is
// the source from which the fast path learns of it, and `poll_ms` the polling interval without
// signals. The object also has the aim and whether it was met. The times are distributions in
// milliseconds until the raised limit was in force:
//   from_told      since the kernel's first signal
//   from_proof     since a signal with which the fast path's rule could read enough: for
//   ineffective
//                  reclaim ten `high` events, or one and a stall of 50 ms
//   from_readable  since that could be read; another thread tries every millisecond
//   from_first     since the first microsecond in which a task was stopped, or the last process had
//                  ended
//   from_woken     since the fast path's thread woke up
//   wakeup         for comparison: a plain wake-up through an eventfd in the same rounds. That
//                  is the machine's cost, not the fast path's.
// `n`: the rounds in which that moment came before the limit was raised. The aim is for p99: 10 ms
// from_proof. If the fast path has to poll, it is 10 ms and one interval from_readable. So it is
// for throttling, which cpu.stat shows only at the end of its period.
//
//   bench_react [--kind KIND]... [--sources SOURCES]... [--rounds N] [--root CGROUP2_DIRECTORY]
//               [--file FILE]
//
// FILE is created. It must be on a disk, not on tmpfs, because its cache is to reach memory.max.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "bench/react_causes.h"
#include "bench/react_listener.h"
#include "control/fast_path/fast_path.h"
#include "control/lease/lease_table.h"

using namespace cgphase;

namespace {

constexpr int kDefaultRounds = 100;
constexpr double kAimMs = 10;
constexpr int kPatienceMs = 20'000;
constexpr int kWakeups = 5;
constexpr int kWakeupPause = 5;
constexpr unsigned kSeed = 7;
const SystemClock kClock;

struct Sources {
  const char* name;
  bool pressure, inotify;
};
constexpr std::array<Sources, 3> kSources = {
    {{"psi+inotify", true, true}, {"inotify", false, true}, {"polling", false, false}}};

Teller teller_of(const Cause& cause, const Sources& sources) {
  if (cause.trigger_file != nullptr && sources.pressure) return Teller::psi;
  return cause.file_is_told && sources.inotify ? Teller::inotify : Teller::poll;
}

const char* name_of(Teller teller) {
  switch (teller) {
    case Teller::psi: return "psi";
    case Teller::inotify: return "inotify";
    case Teller::poll: break;
  }
  return "poll";
}

void write_file(const std::string& path, std::string_view text) {
  const Result<Fd> fd = open_path(path, O_WRONLY);
  if (!fd) fail(fd.error().text);
  if (const Status written = pwrite_text(fd->get(), text); !written)
    fail(path + ": " + written.error().text);
}

// Times of all rounds of one kind, in milliseconds.
struct Times {
  std::vector<double> from_told, from_proof, from_readable, from_first, from_woken, wakeup;
  std::map<std::string, int> reasons;
};

// The fast path of a daemon, and cgroups that it watches one after another.
class Bench {
 public:
  Bench(std::string root, std::string file, const Sources& sources)
      : root_(std::move(root)), file_(std::move(file)), sources_(sources) {
    // As for the daemon's leases: not on a disk, where writing pages may be slow.
    runtime_ = "/run/cgphase-react-" + std::to_string(::getpid());
    auto leases = LeaseTable::open({.runtime_dir = runtime_, .records = 8});
    if (!leases) fail(leases.error().text);
    leases_ = std::move(*leases);
    auto fast_path = FastPath::create({.leases = leases_.get(), .clock = &kClock, .containers = 4,
                                .cgroup_root = root_, .pressure = sources.pressure,
                                .inotify = sources.inotify});
    if (!fast_path) fail(fast_path.error().text);
    fast_path_ = std::move(*fast_path);
    if (sources.pressure) pressure_ = fast_path_->pressure().present;
    if (const Status started = fast_path_->start(); !started) fail(started.error().text);
    shared_ = static_cast<Shared*>(::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                                          MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    if (shared_ == MAP_FAILED) fail("cannot map shared memory");
  }
  ~Bench() {
    fast_path_->stop();
    ::munmap(shared_, 4096);
    std::filesystem::remove_all(runtime_);
  }
  bool has_pressure() const { return pressure_; }

  void round(const Cause& cause, Times& times) {
    const std::string path = "/cgphase-react-" + std::to_string(::getpid()) + "-" +
                             std::to_string(next_++);
    const std::string group = root_ + path;
    if (::mkdir(group.c_str(), 0755) != 0) fail(group + ": " + errno_word(errno));
    const Fd directory = open_path(group, O_RDONLY | O_DIRECTORY).value();
    struct stat status{};
    ::fstat(directory.get(), &status);
    const CgroupId id{status.st_dev, status.st_ino};
    shared_->first_ns.store(0);
    shared_->lowered.store(false);
    write_file(group + "/" + file_name(cause.knob), cause.original);
    {
      const Fd go(::eventfd(0, EFD_CLOEXEC));
      std::vector<std::unique_ptr<Child>> children;
      for (int i = 0; i < cause.children; ++i)
        children.push_back(std::make_unique<Child>(group, [&] {
          if (cause.work != nullptr) cause.work(*shared_, go.get(), group, file_);
        }));
      await_children(cause, group);
      provoke(cause, group, path, id, directory.get(), go.get(), children, times);
    }
    fast_path_->drop(id);
    if (const auto record = leases_->find(id, cause.knob))
      leases_->release(*record, id, cause.knob);
    for (int i = 0; ::rmdir(group.c_str()) != 0; ++i) {
      if (i > kPatienceMs) fail(group + " stays busy");
      pause_ms(1);
    }
  }

 private:
  static void await_children(const Cause& cause, const std::string& group) {
    const auto text = [&](const char* file) {
      return read_file(group + "/" + file, 4096).value_or("");
    };
    for (int i = 0; i < kPatienceMs; i += 5, pause_ms(5)) {
      const std::string processes = text("cgroup.procs");
      if (std::count(processes.begin(), processes.end(), '\n') == cause.children &&
          parse_u64(trim(text("memory.current"))).value_or(0) >= cause.used_before)
        return;
    }
    fail("the children did not start in time");
  }

  int any_up_to(int ms) { return std::uniform_int_distribution<int>(0, ms)(random_); }

  void provoke(const Cause& cause, const std::string& group, const std::string& path, CgroupId id,
               int directory, int go, std::vector<std::unique_ptr<Child>>& children,
               Times& times) {
    const auto record = leases_->record(id, path, cause.knob, *KnobText::from(cause.original),
                                      *KnobText::from(cause.lowered), "bench");
    if (!record) fail(record.error().text);
    if (const Status covered = fast_path_->cover(id, directory, cause.knob, *record); !covered)
      fail(covered.error().text);
    const Teller teller = teller_of(cause, sources_);
    // At a random moment between two checks of the fast path and two of the kernel.
    pause_ms(50 + cause.settle_ms + any_up_to(teller == Teller::psi ? 500 : 150));
    Listener listener(group, cause, teller);
    // The kernel may reclaim in this write, and the fast path may end it.
    shared_->lowered.store(true);
    write_file(group + "/" + file_name(cause.knob), cause.lowered);
    ::eventfd_write(go, 1);
    if (cause.work == nullptr) {
      pause_ms(20 + any_up_to(150));
      shared_->first_ns.store(now_ns());
      children.clear();
    }
    await(cause, id, listener, times);
  }

  void await(const Cause& cause, CgroupId id, Listener& listener, Times& times) {
    for (;;) {
      pollfd acted{fast_path_->action_fd(), POLLIN, 0};
      if (::poll(&acted, 1, kPatienceMs) != 1) fail(std::string(cause.name) + ": no reaction");
      for (const FastPathAction& action : fast_path_->take_actions())
        if (action.id == id && action.knob == cause.knob) return take(action, listener, times);
    }
  }

  void take(const FastPathAction& action, Listener& listener, Times& times) {
    const std::int64_t raised = action.time.time_since_epoch().count();
    // While the load continues, and before the listener is stopped: it may see only now what the
    // fast path has already acted on.
    for (const double ms : measure_wakeups(kWakeups, kWakeupPause)) times.wakeup.push_back(ms);
    const Seen seen = listener.stop();
    const auto add = [raised](std::vector<double>& values, std::int64_t since) {
      if (since == 0 || since > raised) return;
      values.push_back(static_cast<double>(raised - since) / 1e6);
    };
    add(times.from_told, seen.told);
    add(times.from_proof, seen.told_enough);
    add(times.from_readable, seen.evident);
    add(times.from_first, seen.first_throttled != 0 ? seen.first_throttled
                                                    : shared_->first_ns.load());
    add(times.from_woken, action.woken.time_since_epoch().count());
    ++times.reasons[to_string(action.reason)];
  }

  std::string root_, file_, runtime_;
  const Sources& sources_;
  std::unique_ptr<LeaseTable> leases_;
  std::unique_ptr<FastPath> fast_path_;
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

std::string spread(const char* name, std::vector<double> values) {
  std::array<char, 192> text;
  if (values.empty()) {
    std::snprintf(text.data(), text.size(), ",\"%s\":null", name);
    return text.data();
  }
  std::sort(values.begin(), values.end());
  std::snprintf(text.data(), text.size(),
                ",\"%s\":{\"n\":%zu,\"p50\":%.2f,\"p90\":%.2f,\"p99\":%.2f,\"max\":%.2f}", name,
                values.size(), quantile(values, 0.5), quantile(values, 0.9),
                quantile(values, 0.99), values.back());
  return text.data();
}

void print(const Cause& cause, const Sources& sources, int rounds, double seconds,
           const Times& times) {
  const Teller teller = teller_of(cause, sources);
  const auto polled = static_cast<double>(
      (teller == Teller::poll ? kFastPathRiskInterval : cause.looks).count());
  const double limit = kAimMs + polled;
  std::vector<double> judged = polled > 0 ? times.from_readable : times.from_proof;
  std::sort(judged.begin(), judged.end());
  const char* held = judged.empty() ? "null" : quantile(judged, 0.99) <= limit ? "true" : "false";
  std::string reasons;
  for (const auto& [name, count] : times.reasons)
    reasons += (reasons.empty() ? "\"" : ",\"") + name + "\":" + std::to_string(count);
  std::printf("{\"bench\":\"react\",\"kind\":\"%s\",\"sources\":\"%s\",\"told_by\":\"%s\","
              "\"poll_ms\":%.0f,\"rounds\":%d,\"seconds\":%.1f,\"limit_p99_ms\":%.0f,"
              "\"within_limit\":%s%s%s%s%s%s%s,\"reasons\":{%s}}\n",
              cause.name, sources.name, name_of(teller), polled, rounds, seconds, limit, held,
              spread("from_told", times.from_told).c_str(),
              spread("from_proof", times.from_proof).c_str(),
              spread("from_readable", times.from_readable).c_str(),
              spread("from_first", times.from_first).c_str(),
              spread("from_woken", times.from_woken).c_str(),
              spread("wakeup", times.wakeup).c_str(), reasons.c_str());
  std::fflush(stdout);
}

struct Options {
  std::string root = "/sys/fs/cgroup", file = "/tmp/cgphase-react.data";
  std::vector<std::string> kinds, sources;
  int rounds = kDefaultRounds;
};

bool wanted(const std::vector<std::string>& names, const char* name) {
  return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
}

template <typename Table>
void require_names(const std::vector<std::string>& names, const Table& table) {
  for (const std::string& name : names)
    if (std::none_of(table.begin(), table.end(), [&](const auto& one) { return name == one.name; }))
      fail("unknown kind or source: " + name);
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view option = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    const std::uint64_t number = parse_u64(value).value_or(0);
    if (option == "--root") options.root = value;
    else if (option == "--file") options.file = value;
    else if (option == "--kind") options.kinds.emplace_back(value);
    else if (option == "--sources") options.sources.emplace_back(value);
    else if (option == "--rounds" && number > 0 && number <= 10'000)
      options.rounds = static_cast<int>(number);
    else fail("usage: bench_react [--kind KIND]... [--sources SOURCES]... [--rounds N] "
              "[--root CGROUP2_DIRECTORY] [--file FILE]");
  }
  require_names(options.kinds, kCauses);
  require_names(options.sources, kSources);
  return options;
}

void run(const Options& options) {
  make_data_file(options.file);
  for (const Sources& sources : kSources) {
    if (!wanted(options.sources, sources.name)) continue;
    Bench bench(options.root, options.file, sources);
    if (sources.pressure && !bench.has_pressure()) continue;  // this kernel has no PSI
    for (const Cause& cause : kCauses) {
      if (!wanted(options.kinds, cause.name)) continue;
      Times times;
      const std::int64_t began = now_ns();
      for (int i = 0; i < options.rounds; ++i) bench.round(cause, times);
      print(cause, sources, options.rounds, static_cast<double>(now_ns() - began) / 1e9, times);
    }
  }
  std::filesystem::remove(options.file);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    run(options_of(argc, argv));
  } catch (const std::exception& error) {
    std::fprintf(stderr, "bench_react: %s\n", error.what());
    return 1;
  }
}
