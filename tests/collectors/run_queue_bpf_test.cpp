// Compares /proc values of stopped processes with the counters: file, counters, file again.
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <array>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>

#include "collectors/ebpf/run_queue_counter.h"
#include "tests/collectors/bpf_fixture.h"

namespace cgphase {
namespace {

constexpr std::uint32_t kRunQueueRoom = 4096;
constexpr std::uint64_t kBurnNs = 100'000'000;
constexpr int kSwitches = 500;
constexpr int kNaps = 200;
constexpr long kNapNs = 2'000'000;
constexpr std::uint64_t kMomentUsec = 20;

struct TaskTimes {
  std::uint64_t wait_ns = 0, waits = 0, voluntary = 0, involuntary = 0;
  bool operator==(const TaskTimes&) const = default;
};

std::uint64_t field_of(const std::string& text, std::string_view field) {
  std::string_view rest = text, line, word;
  while (next_line(rest, line))
    if (next_word(line, word) && word == field && next_word(line, word))
      return parse_u64(word).value();
  FAIL("no such field");
  return 0;
}

TaskTimes times_of(pid_t pid) {
  const std::string process = "/proc/" + std::to_string(pid);
  const std::string sched = read_file(process + "/schedstat", 4096).value();
  const std::string status = read_file(process + "/status", 65536).value();
  std::string_view rest = sched, word;
  std::array<std::uint64_t, 3> numbers{};  // ns on a processor, ns of waiting, runs
  for (std::uint64_t& number : numbers) {
    REQUIRE(next_word(rest, word));
    number = parse_u64(word).value();
  }
  return {numbers[1], numbers[2], field_of(status, "voluntary_ctxt_switches:"),
          field_of(status, "nonvoluntary_ctxt_switches:")};
}

TaskTimes sum_of(const std::vector<BornIn>& processes) {
  TaskTimes sum;
  for (const BornIn& process : processes) {
    const TaskTimes one = times_of(process.pid());
    sum = {sum.wait_ns + one.wait_ns, sum.waits + one.waits, sum.voluntary + one.voluntary,
           sum.involuntary + one.involuntary};
  }
  return sum;
}

std::uint64_t processor_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

void burn() {
  for (const std::uint64_t start = processor_ns(); processor_ns() - start < kBurnNs;) continue;
}

// Causes switches: each write wakes the reader of the other pipe.
void ping_pong() {
  int there[2], back[2];
  if (::pipe(there) != 0 || ::pipe(back) != 0) ::_exit(3);
  const pid_t other = ::fork();
  char byte = 'p';
  for (int i = 0; i < kSwitches; ++i) {
    if (other == 0) {
      if (::read(there[0], &byte, 1) != 1 || ::write(back[1], &byte, 1) != 1) ::_exit(4);
    } else if (::write(there[1], &byte, 1) != 1 || ::read(back[0], &byte, 1) != 1) {
      ::_exit(5);
    }
  }
  if (other == 0) ::_exit(0);
  ::waitpid(other, nullptr, 0);
}

// Goes to sleep while another thread wakes it constantly, mostly before it sleeps, then sleeps.
void woken_and_asleep() {
  std::atomic<int> bed = 0;
  std::atomic<bool> done = false;
  const auto futex = [&](int what) {
    const timespec patience{.tv_sec = 0, .tv_nsec = kNapNs};
    ::syscall(SYS_futex, &bed, what, what == FUTEX_WAKE ? 1 : 0, &patience, nullptr, 0);
  };
  std::thread waker([&] {
    while (!done) futex(FUTEX_WAKE);
  });
  for (int i = 0; i < kNaps; ++i) {
    for (int j = 0; j < 20; ++j) futex(FUTEX_WAIT);
    const timespec nap{.tv_sec = 0, .tv_nsec = kNapNs};
    ::nanosleep(&nap, nullptr);
  }
  done = true;
  waker.join();
}

// More processes than processors. Each does its work and stops itself, each time that it is
// continued.
std::vector<BornIn> workers(const HostCgroup& cgroup, const std::function<void()>& work) {
  std::vector<BornIn> processes;
  const long count = 3 * ::sysconf(_SC_NPROCESSORS_ONLN);
  for (long i = 0; i < count; ++i)
    processes.emplace_back(cgroup, [&] {
      for (;;) {
        work();
        ::kill(::getpid(), SIGSTOP);
      }
      return 0;
    });
  return processes;
}

void wait_until_stopped(const std::vector<BornIn>& processes) {
  for (const BornIn& process : processes) {
    int status = 0;
    REQUIRE(::waitpid(process.pid(), &status, WUNTRACED) == process.pid());
    REQUIRE(WIFSTOPPED(status));
  }
}

void go_on(const std::vector<BornIn>& processes) {
  for (const BornIn& process : processes) REQUIRE(::kill(process.pid(), SIGCONT) == 0);
}

// A separate counter of one tier, and one container.
class RunQueueOf {
 public:
  RunQueueOf(const HostCgroup& cgroup, const std::string& tier)
      : owners_(cgroup2_mount()), counter_(started(tier)) {
    NodeSample tick;
    tick.appeared.push_back(container_in(cgroup));
    owners_.follow(tick);
    sample_.id = cgroup.id();
  }
  const RunQueueStat& read() {
    REQUIRE(counter_->read(owners_, false));
    counter_->fill(sample_);
    return sample_.run_queue;
  }
  CgroupCounter& counter() { return *counter_; }
  CgroupId id() const { return sample_.id; }

 private:
  static std::unique_ptr<CgroupCounter> started(const std::string& tier) {
    auto counter = start_run_queue_counter(kRunQueueRoom, tier);
    REQUIRE_MESSAGE(counter.has_value(), (counter ? "" : counter.error().text));
    CHECK((*counter)->tier() == tier);
    return std::move(*counter);
  }

  CgroupOwners owners_;
  std::unique_ptr<CgroupCounter> counter_;
  Sample sample_;
};

// Read between two equal readings of the files, because a stopped process may still be leaving the
// processor.
RunQueueStat settled(RunQueueOf& counted, const std::vector<BornIn>& processes, TaskTimes& files) {
  constexpr int kMostReadings = 100'000;
  for (int i = 0; i < kMostReadings; ++i) {
    files = sum_of(processes);
    const RunQueueStat stat = counted.read();
    if (sum_of(processes) == files && stat.waits >= files.waits) return stat;
    ::sched_yield();
  }
  return counted.read();
}

}  // namespace

TEST_CASE("waits and switches of new processes equal those of their files, in each tier") {
  for (const std::string tier : {"tp_btf", "raw_tp"}) {
    CAPTURE(tier);
    const HostCgroup cgroup;
    RunQueueOf counted(cgroup, tier);
    const std::vector<BornIn> processes = workers(cgroup, burn);
    wait_until_stopped(processes);
    TaskTimes files;
    const RunQueueStat stat = settled(counted, processes, files);
    CHECK(files.wait_ns > kBurnNs);  // processes had to wait
    CHECK(stat.wait_usec == files.wait_ns / 1000);
    CHECK(stat.waits == files.waits);
    CHECK(stat.voluntary_switches == files.voluntary);
    CHECK(stat.involuntary_switches == files.involuntary);
    const RunQueueHistogram histogram = counted.counter().histogram(counted.id()).value();
    CHECK(std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0}) == files.waits);
  }
}

// Its clock differs from the kernel's, and tracepoints fire slightly before or after.
TEST_CASE("without type information waits and switches nearly equal those of the files") {
  const HostCgroup cgroup;
  RunQueueOf counted(cgroup, "tracepoint");
  const std::vector<BornIn> processes = workers(cgroup, burn);
  wait_until_stopped(processes);
  const TaskTimes files = sum_of(processes);
  const RunQueueStat stat = counted.read();
  const auto near = [](std::optional<std::uint64_t> reported, std::uint64_t truth) {
    REQUIRE(reported);
    CHECK(static_cast<double>(*reported) > 0.95 * static_cast<double>(truth));
    CHECK(static_cast<double>(*reported) < 1.05 * static_cast<double>(truth));
  };
  CHECK(files.wait_ns > kBurnNs);
  near(stat.wait_usec, files.wait_ns / 1000);
  near(*stat.voluntary_switches + *stat.involuntary_switches, files.voluntary + files.involuntary);
  CHECK(*stat.waits <= files.waits);
  CHECK(*stat.waits > files.waits / 2);
  const RunQueueHistogram histogram = counted.counter().histogram(counted.id()).value();
  CHECK(std::accumulate(histogram.begin(), histogram.end(), std::uint64_t{0}) == *stat.waits);
}

TEST_CASE("without type information a task that was woken before it slept has waited little") {
  const HostCgroup cgroup;
  RunQueueOf tracepoints(cgroup, "tracepoint"), typed(cgroup, "tp_btf");
  BornIn process(cgroup, [] {
    woken_and_asleep();
    return 0;
  });
  REQUIRE(process.wait() == 0);
  const RunQueueStat reported = tracepoints.read(), truth = typed.read();
  const std::uint64_t switches = *truth.voluntary_switches + *truth.involuntary_switches;
  CHECK(switches >= kNaps);
  // Each wait is measured slightly before or after the kernel's own.
  CHECK(*reported.wait_usec <= *truth.wait_usec + kMomentUsec * switches);
}

TEST_CASE("waits from before the counter are not counted, in each tier") {
  for (const std::string tier : {"tp_btf", "raw_tp"}) {
    CAPTURE(tier);
    const HostCgroup cgroup;
    const std::vector<BornIn> processes = workers(cgroup, burn);
    wait_until_stopped(processes);
    RunQueueOf counted(cgroup, tier);
    const TaskTimes before = sum_of(processes);
    go_on(processes);
    wait_until_stopped(processes);
    const RunQueueStat stat = counted.read();
    const TaskTimes files = sum_of(processes);
    CHECK(*stat.waits > 0);
    CHECK(*stat.wait_usec <= (files.wait_ns - before.wait_ns) / 1000);
    CHECK(*stat.waits <= files.waits - before.waits);
    CHECK(*stat.voluntary_switches <= files.voluntary - before.voluntary);
    CHECK(*stat.involuntary_switches <= files.involuntary - before.involuntary);
  }
}

TEST_CASE("ended processes stay counted, with their last run") {
  for (const std::string tier : {"tp_btf", "raw_tp"}) {
    CAPTURE(tier);
    const HostCgroup cgroup;
    RunQueueOf counted(cgroup, tier);
    BornIn process(cgroup, [] {
      ping_pong();
      return 0;
    });
    REQUIRE(process.wait() == 0);
    const RunQueueStat stat = counted.read();
    CHECK(*stat.voluntary_switches >= kSwitches);
    CHECK(*stat.waits >= kSwitches);
    CHECK(counted.read().waits >= stat.waits);
  }
}

TEST_CASE("the longest wait is that since the previous reading") {
  const HostCgroup cgroup;
  RunQueueOf counted(cgroup, "tp_btf");
  const std::vector<BornIn> processes = workers(cgroup, burn);
  wait_until_stopped(processes);
  TaskTimes files;
  const RunQueueStat busy = counted.read();
  CHECK(*busy.longest_wait_usec > 0);
  CHECK(*busy.longest_wait_usec <= *busy.wait_usec);
  settled(counted, processes, files);
  CHECK(counted.read().longest_wait_usec == 0);
}

TEST_CASE("counting one switch of many misses no wait of ended processes") {
  const HostCgroup cgroup;
  RunQueueOf all(cgroup, "tp_btf"), few(cgroup, "tp_btf");
  few.counter().count_one_of(64);
  BornIn process(cgroup, [] {
    ping_pong();
    return 0;
  });
  REQUIRE(process.wait() == 0);
  // An ended process may still be leaving the processor.
  RunQueueStat exact, sampled;
  for (int i = 0; i < 100'000; ++i) {
    exact = all.read();
    sampled = few.read();
    if (exact.waits == sampled.waits) break;
    ::sched_yield();
  }
  CHECK(sampled.waits == exact.waits);
  CHECK(sampled.wait_usec == exact.wait_usec);
  CHECK(sampled.voluntary_switches == exact.voluntary_switches);
  CHECK(sampled.involuntary_switches == exact.involuntary_switches);
}

TEST_CASE("a counter above its budget samples less, then is unloaded for a while") {
  constexpr double kNoBudget = 1e-9;
  constexpr int kMostTicks = 200;
  const HostCgroup cgroup;
  KernelCounters counters(cgroup2_mount(), kNoBudget);
  NodeSample tick;
  const auto source = [&] {
    for (const Source& one : counters.sources())
      if (one.name == "eBPF: run queue") return one;
    return Source{};
  };
  std::vector<std::string> reported;
  for (int i = 0; i < kMostTicks && (i == 0 || source().present); ++i) {
    BornIn process(cgroup, [] {
      ping_pong();
      return 0;
    });
    REQUIRE(process.wait() == 0);
    tick.time += std::chrono::seconds(1);
    counters.fill(tick);
    if (reported.empty() || reported.back() != source().detail) reported.push_back(source().detail);
  }
  REQUIRE(reported.size() == 12);  // all, one of 2, 4, ... 1024, none
  CHECK(reported[0] == "tp_btf");
  CHECK(reported[1] == "tp_btf, one event of 2 to stay within the CPU budget");
  CHECK(reported[10] == "tp_btf, one event of 1024 to stay within the CPU budget");
  CHECK(reported[11].contains("out of the kernel"));
  tick.time += std::chrono::minutes(10);
  counters.fill(tick);
  CHECK(source().detail == "tp_btf");
}

TEST_CASE("the agent's counters use the first tier and report it") {
  const HostCgroup cgroup;
  Counted counted({&cgroup});
  CHECK(counted.source("run queue").present);
  CHECK(counted.source("run queue").detail == "tp_btf");
  CHECK(counted.of(cgroup).run_queue.waits == 0);
  CHECK(counted.counters().memory_bytes() > 0);
}

}  // namespace cgphase
