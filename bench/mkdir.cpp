// The time to make a cgroup while the daemon's walks run, in each way, and without walks.
// Microseconds, one JSON object per line.
//
//   bench_mkdir N     with N empty cgroups of its own on this machine
//
// The kernel's iterator holds the mutex of all cgroups while it walks, and making a cgroup needs
// that mutex. Here the walks follow each other without a pause; the daemon's run once a second. It
// needs root, two processors and a quiet machine.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/parse.h"
#include "bench/clean_run.h"
#include "collectors/ebpf/kernel_pull.h"
#include "collectors/ebpf/probe.h"
#include "tests/collectors/host_cgroup.h"

using namespace cgphase;

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kMaxCount = 4096;
constexpr std::size_t kMade = 2000;

// The time of each, ascending; fewer than kMade if one failed.
std::vector<double> make_cgroups(const std::string& path) {
  std::vector<double> microseconds;
  while (microseconds.size() < kMade) {
    const auto begin = SteadyClock::now();
    if (::mkdir(path.c_str(), 0755) != 0) break;
    const std::chrono::duration<double, std::micro> took = SteadyClock::now() - begin;
    microseconds.push_back(took.count());
    ::rmdir(path.c_str());
  }
  std::ranges::sort(microseconds);
  return microseconds;
}

// `pull` walks meanwhile; no walk if it is null.
bool measure(const HostCgroup& parent, std::uint64_t count, CgroupPull* pull) {
  std::atomic<bool> ended{false};
  std::vector<double> took;
  std::thread maker([&] {
    took = make_cgroups(parent.directory() + parent.path() + "-made");
    ended = true;
  });
  std::uint64_t walks = 0;
  while (pull != nullptr && !ended) walks += pull->walk(0);
  maker.join();
  if (took.size() < kMade) {
    std::fputs("bench_mkdir: cannot create a cgroup; run it as root\n", stderr);
    return false;
  }
  std::printf("{\"bench\":\"mkdir\",\"containers\":%llu,\"walks_by\":\"%s\",\"walks\":%llu,"
              "\"p50_us\":%.1f,\"p99_us\":%.1f,\"max_us\":%.1f}\n",
              static_cast<unsigned long long>(count), pull != nullptr ? pull->name() : "nobody",
              static_cast<unsigned long long>(walks), took[kMade / 2], took[kMade * 99 / 100],
              took.back());
  std::fflush(stdout);
  return true;
}

int bench(std::uint64_t count) {
  listen_to_libbpf();
  const HostCgroup parent;
  std::vector<std::unique_ptr<HostCgroup>> cgroups;
  for (std::uint64_t i = 0; i < count; ++i)
    cgroups.push_back(std::make_unique<HostCgroup>(parent.path()));
  if (!measure(parent, count, nullptr)) return 1;
  for (const char* way : {"BPF css iterator", "BPF iterator"}) {
    auto pull = start_kernel_pull(parent.directory(), count, way);
    if (!pull) {
      std::fprintf(stderr, "bench_mkdir: %s\n", pull.error().text.c_str());
      continue;
    }
    for (const auto& cgroup : cgroups) (void)(*pull)->add(cgroup->id().inode);
    if (!measure(parent, count, pull->get())) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = argc == 2 ? parse_u64(argv[1]) : std::nullopt;
  if (!count || *count == 0 || *count > kMaxCount) {
    std::fputs("usage: bench_mkdir N\n", stderr);
    return 2;
  }
  return run_and_clean_up([&] { return bench(*count); });
}
