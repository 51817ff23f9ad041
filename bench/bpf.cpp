// Cost of each counting program per event, by the kernel's own account of run times. It is compared
// with an empty program at the same place and events. The memory of each map is printed too. One
// JSON object per line.
//
//   bench_bpf [--events N]
//
// It needs root. It makes cgroups below the machine's cgroup v2, a network namespace, and a folder
// in the working directory, which must be on a block device. It removes them again, also after
// SIGHUP, SIGINT, SIGTERM or SIGPIPE. All output goes to standard output. Exit status: 2 for wrong
// arguments, 128 plus the number of such a signal.
#include <bpf/libbpf.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <skeletons/empty.skel.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "bench/clean_run.h"
#include "collectors/ebpf/network_counter.h"
#include "collectors/ebpf/probe.h"
#include "collectors/ebpf/program_cost.h"
#include "collectors/ebpf/rare_event_counters.h"
#include "collectors/ebpf/run_queue_counter.h"
#include "tests/collectors/host_cgroup.h"
#include "tests/collectors/udp_exchange.h"

using namespace cgphase;

namespace {

constexpr std::uint64_t kDefaultEvents = 50'000;
constexpr int kRounds = 7;
constexpr std::uint32_t kRoom = 1024;
constexpr int kHotTasks = 2, kColdTasks = 200;
constexpr double kNetworkAimNs = 35, kSwitchAimNs = 120, kNoAim = 0;
constexpr std::size_t kBlockBytes = 4096;
constexpr std::uint64_t kMostConnections = 800, kMostReads = 20'000;

struct Pair {
  const char* what;
  int counting, empty;  // descriptors of programs
  double aim_ns;        // network: above the empty one; kNoAim: no aim
};

// Nanoseconds per run between two readings.
double mean_ns(const ProgramRuns& from, const ProgramRuns& to) {
  const std::uint64_t count = to.count - from.count;
  return count > 0 ? static_cast<double>(to.ns - from.ns) / static_cast<double>(count) : 0;
}

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + values.size() / 2);
  return values[values.size() / 2];
}

// Pins this process to the first processor; its children inherit that.
void stay_on_one() {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  ::sched_setaffinity(0, sizeof(one), &one);
}

// Runs the programs in `pairs` on the events that `work` makes. Prints medians over rounds.
void measure(const std::vector<Pair>& pairs, CgroupCounter& counter,
             const std::function<void()>& work, const char* load) {
  // As the daemon does each second: it registers the cgroups that it finds.
  CgroupOwners owners(cgroup2_mount());
  work();
  (void)counter.read(owners, false);
  const auto accounting = RunTimeAccounting::start();
  if (!accounting) {
    std::puts("{\"error\":\"run times are not available: CAP_SYS_ADMIN is missing\"}");
    return;
  }
  std::vector<std::vector<double>> counting(pairs.size()), empty(pairs.size());
  std::uint64_t events = 0;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<ProgramRuns> before, empty_before;
    for (const Pair& pair : pairs) {
      before.push_back(program_runs(pair.counting));
      empty_before.push_back(program_runs(pair.empty));
    }
    work();
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      const ProgramRuns now = program_runs(pairs[i].counting);
      events = now.count - before[i].count;
      counting[i].push_back(mean_ns(before[i], now));
      empty[i].push_back(mean_ns(empty_before[i], program_runs(pairs[i].empty)));
    }
  }
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const double ns = median(counting[i]), empty_ns = median(empty[i]);
    const std::string aim =
        pairs[i].aim_ns == kNoAim ? "null" : std::to_string(std::lround(pairs[i].aim_ns));
    std::printf("{\"program\":\"%s\",\"load\":\"%s\",\"events\":%llu,\"ns\":%.1f,\"empty_ns\":%.1f,"
                "\"above_empty_ns\":%.1f,\"aim_ns\":%s,\"map_bytes\":%llu,\"map_room\":%u}\n",
                pairs[i].what, load, static_cast<unsigned long long>(events), ns, empty_ns,
                ns - empty_ns, aim.c_str(),
                static_cast<unsigned long long>(counter.memory_bytes()), kRoom);
    std::fflush(stdout);
  }
}

// A token goes round `cgroups.size()` processes, each in its own cgroup, so that every pass is a
// switch.
void pass_token(const std::vector<std::unique_ptr<HostCgroup>>& cgroups, std::uint64_t switches) {
  const std::size_t count = cgroups.size();
  std::vector<std::pair<Fd, Fd>> pipes;
  for (std::size_t i = 0; i < count; ++i) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    pipes.emplace_back(Fd(ends[0]), Fd(ends[1]));
  }
  const std::uint64_t rounds = switches / count;
  std::vector<pid_t> members;
  for (std::size_t i = 0; i < count; ++i) {
    const pid_t member = born_in(*cgroups[i]);
    if (member < 0) break;
    if (member > 0) {
      members.push_back(member);
      continue;
    }
    char token = 't';
    for (std::uint64_t round = 0; round < rounds; ++round) {
      if (i == 0 && ::write(pipes[1 % count].second.get(), &token, 1) != 1) ::_exit(1);
      if (::read(pipes[i].first.get(), &token, 1) != 1) ::_exit(1);
      if (i != 0 && ::write(pipes[(i + 1) % count].second.get(), &token, 1) != 1) ::_exit(1);
    }
    ::_exit(0);
  }
  for (const pid_t member : members) ::waitpid(member, nullptr, 0);
}

std::vector<std::unique_ptr<HostCgroup>> make_cgroups(int count) {
  std::vector<std::unique_ptr<HostCgroup>> cgroups;
  for (int i = 0; i < count; ++i) cgroups.push_back(std::make_unique<HostCgroup>());
  return cgroups;
}

void bench_network(const CgroupPaths& paths, const Probe<empty>& none, std::uint64_t events) {
  const auto counter = start_network_counter(paths, kRoom);
  if (!counter) return (void)std::printf("{\"error\":\"%s\"}\n", counter.error().text.c_str());
  const InnerNetwork network;
  int ready[2];
  if (!network.ready() || ::pipe2(ready, O_CLOEXEC) != 0) return;
  const Fd told(ready[0]), tell(ready[1]);
  const pid_t answerer = ::fork();
  if (answerer == 0) ::_exit(network.enter() ? answer(kInnerEnd, tell.get()) : 9);
  char byte;
  if (answerer < 0 || ::read(told.get(), &byte, 1) != 1) return;
  const std::vector<int> programs = (*counter)->programs();
  measure({{"network, sent", programs[0], bpf_program__fd(none->progs.empty_transmit),
            kNetworkAimNs},
           {"network, received", programs[1], bpf_program__fd(none->progs.empty_receive),
            kNetworkAimNs}},
          **counter, [&] { (void)ask(kInnerEnd, events); }, "veth");
  ::kill(answerer, SIGKILL);
  ::waitpid(answerer, nullptr, 0);
}

void bench_run_queue(std::uint64_t events, const char* tier, bpf_program* empty_program) {
  const auto counter = start_run_queue_counter(kRoom, tier);
  if (!counter) return (void)std::printf("{\"error\":\"%s\"}\n", counter.error().text.c_str());
  for (const int tasks : {kHotTasks, kColdTasks}) {
    const auto cgroups = make_cgroups(tasks);
    measure({{tier, (*counter)->programs()[0], bpf_program__fd(empty_program), kSwitchAimNs}},
            **counter, [&] { pass_token(cgroups, events); },
            tasks == kHotTasks ? "switches of 2 tasks" : "switches of 200 tasks in 200 cgroups");
  }
}

// Requests past the cache, one after the other.
void read_blocks(const std::string& path, std::uint64_t count) {
  const Fd file(::open(path.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  void* block = nullptr;
  if (::posix_memalign(&block, kBlockBytes, kBlockBytes) != 0) return;
  for (std::uint64_t i = 0; i < count; ++i)
    if (::pread(file.get(), block, kBlockBytes, 0) < 0) break;
  std::free(block);
}

void bench_block(const std::string& directory, std::uint64_t events, const char* tier,
                 bpf_program* empty_program) {
  // Requests cost the same if they belong to cgroups of v1. The daemon does not start the counter
  // there, so it gets a hierarchy that has the io controller.
  const std::string controllers = directory + "/cgroup.controllers",
                    blocks = directory + "/blocks";
  const auto made = [](const std::string& path, std::string_view text) {
    const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    return write_all(file.get(), text) && ::fsync(file.get()) == 0;
  };
  if (made(controllers, "io\n") && made(blocks, std::string(kBlockBytes, 'b'))) {
    const auto counter = start_block_counter(CgroupPaths(directory), kRoom, tier);
    if (counter)
      measure({{"block devices", (*counter)->programs()[0], bpf_program__fd(empty_program),
                kNoAim}},
              **counter, [&] { read_blocks(blocks, std::min(events, kMostReads)); },
              tier == std::string("tp_btf") ? "direct reads, tp_btf" : "direct reads, raw_tp");
    else
      std::printf("{\"error\":\"%s\"}\n", counter.error().text.c_str());
  }
}

// Connections without an answer, each until its first segment was retransmitted.
void knock(std::uint64_t connections) {
  const sockaddr_in peer = address_of(kInnerEnd);
  std::vector<Fd> sockets;
  for (std::uint64_t i = 0; i < connections; ++i) {
    sockets.emplace_back(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    (void)::connect(sockets.back().get(), plain(peer), sizeof(peer));
  }
  for (const Fd& socket : sockets)
    for (;;) {
      tcp_info told{};
      socklen_t size = sizeof(told);
      if (::getsockopt(socket.get(), IPPROTO_TCP, TCP_INFO, &told, &size) != 0) return;
      if (told.tcpi_total_retrans > 0) break;
      ::poll(nullptr, 0, 10);
    }
}

void bench_retransmits(std::uint64_t events, const char* tier, bpf_program* empty_program) {
  const auto counter = start_tcp_counter(kRoom, tier);
  if (!counter) return (void)std::printf("{\"error\":\"%s\"}\n", counter.error().text.c_str());
  const InnerNetwork network;
  if (!network.ready() || !network.mislead()) return;
  measure({{"TCP retransmits", (*counter)->programs()[0], bpf_program__fd(empty_program), kNoAim}},
          **counter, [&] { knock(std::min(events, kMostConnections)); },
          tier == std::string("tp_btf") ? "unanswered, tp_btf" : "unanswered, raw_tp");
}

// `directory`: an empty folder for its files.
int bench(const std::string& directory, std::uint64_t events) {
  listen_to_libbpf();
  stay_on_one();
  const CgroupPaths paths(cgroup2_mount());
  const Probe<empty> none(empty::open());
  if (!none || empty::load(none.get()) != 0) {
    std::fputs("bench_bpf: the kernel accepts no BPF program; run it as root\n", stderr);
    return 1;
  }
  auto& links = none->links;
  links.empty_transmit = bpf_program__attach_cgroup(none->progs.empty_transmit, paths.root_fd());
  links.empty_receive = bpf_program__attach_cgroup(none->progs.empty_receive, paths.root_fd());
  links.empty_typed = bpf_program__attach(none->progs.empty_typed);
  links.empty_copied = bpf_program__attach(none->progs.empty_copied);
  links.empty_completion = bpf_program__attach(none->progs.empty_completion);
  links.empty_retransmit = bpf_program__attach(none->progs.empty_retransmit);
  bench_network(paths, none, events);
  bench_run_queue(events, "tp_btf", none->progs.empty_typed);
  bench_run_queue(events, "raw_tp", none->progs.empty_copied);
  // Compared with the same empty program. It needs tracefs, and avoids two more programs at each
  // wakeup.
  bench_run_queue(events, "tracepoint", none->progs.empty_copied);
  for (const char* tier : {"tp_btf", "raw_tp"}) {
    bench_block(directory, events, tier, none->progs.empty_completion);
    bench_retransmits(events, tier, none->progs.empty_retransmit);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::optional<std::uint64_t> events;
  if (argc == 1) events = kDefaultEvents;
  if (argc == 3 && std::strcmp(argv[1], "--events") == 0) events = parse_u64(argv[2]);
  if (!events || *events == 0) {
    std::fputs("usage: bench_bpf [--events N]\n", stderr);
    return 2;
  }
  char directory[] = "bench-bpf-XXXXXX";
  if (::mkdtemp(directory) == nullptr) {
    std::perror("bench_bpf: mkdtemp");
    return 1;
  }
  const int status = run_and_clean_up([&] { return bench(directory, *events); });
  std::error_code gone;
  std::filesystem::remove_all(directory, gone);
  return status;
}
