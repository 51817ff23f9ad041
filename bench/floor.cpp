// The least cost of reading all containers, compared with the cost of the daemon's walk at the same
// time. It prints nanoseconds per container, medians over rounds, as one JSON object.
//
//   bench_floor N                    N empty cgroups of its own on this machine; between rounds the
//                                    caches are filled with other data
//   bench_floor N FOLDER SECONDS     the N working cgroups below FOLDER, one round per second
//
// floor: a program that reads the cache lines of a few numbers and keeps sums (floor.bpf.c). walk:
// the daemon's walk into its records (collectors/ebpf/pull.bpf.c). cold: the first of a round,
// alternating; warm: the same once more. flush: one read of the parent's cpu.stat, by which the
// kernel updates the numbers of all; only with working cgroups. It needs root.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <skeletons/floor.skel.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/parse.h"
#include "bench/clean_run.h"
#include "collectors/ebpf/kernel_pull.h"
#include "collectors/ebpf/probe.h"
#include "tests/collectors/host_cgroup.h"

using namespace cgphase;

namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr int kRoundsHere = 31;
constexpr std::uint64_t kMaxCount = 4096, kMaxSeconds = 3600;
constexpr std::size_t kEvictedBytes = std::size_t{256} << 20, kLineBytes = 64;

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

double nanoseconds_of(const std::function<void()>& work) {
  const auto begin = SteadyClock::now();
  work();
  return std::chrono::duration<double, std::nano>(SteadyClock::now() - begin).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

class FloorWalk {
 public:
  explicit FloorWalk(const Fd& folder) : probe_(floor::open()) {
    if (!probe_) fail("opening the BPF program floor");
    (void)bpf_program__set_autoattach(probe_->progs.touch_each, false);
    if (floor::load(probe_.get()) != 0) fail("the kernel accepts no walking program");
    bpf_iter_link_info where{};
    where.cgroup.cgroup_fd = static_cast<__u32>(folder.get());
    where.cgroup.order = BPF_CGROUP_ITER_DESCENDANTS_PRE;
    LIBBPF_OPTS(bpf_iter_attach_opts, options);
    options.link_info = &where;
    options.link_info_len = sizeof where;
    probe_->links.touch_each = bpf_program__attach_iter(probe_->progs.touch_each, &options);
    if (probe_->links.touch_each == nullptr) fail("this kernel has no iterator over cgroups");
  }
  void walk() {
    const Fd walk(bpf_iter_create(bpf_link__fd(probe_->links.touch_each)));
    char nothing[64];
    if (!walk.valid() || ::read(walk.get(), nothing, sizeof nothing) != 0) fail("no walk");
  }
  // Number of cgroups seen in all walks.
  std::uint64_t seen() const { return probe_->bss->count; }

 private:
  Probe<struct floor> probe_;  // avoids the function of <cmath>
};

struct Times {
  std::vector<double> cold, warm;
};

void measure(Times& times, const std::function<void()>& walk) {
  times.cold.push_back(nanoseconds_of(walk));
  times.warm.push_back(nanoseconds_of(walk));
}

// Fills every cache with its own memory.
void evict(std::vector<char>& memory) {
  for (std::size_t i = 0; i < memory.size(); i += kLineBytes) ++memory[i];
}

struct Measured {
  Times floor, walk;
  std::vector<double> flush;
  std::uint64_t seen_each_time = 0;
};

void flush(const std::string& folder) {
  if (!read_file(folder + "/cpu.stat", 1U << 16)) fail(folder + "/cpu.stat cannot be read");
}

Measured measure_all(const std::string& folder, std::optional<std::uint64_t> seconds) {
  const Result<Fd> directory = open_path(folder, O_RDONLY | O_DIRECTORY);
  if (!directory) fail(directory.error().text);
  FloorWalk floor_walk(*directory);
  auto pull = start_kernel_pull(folder, kMaxCount, "BPF iterator");
  if (!pull) fail(pull.error().text);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    struct stat status{};
    if (entry.is_directory() && ::stat(entry.path().c_str(), &status) == 0)
      (void)(*pull)->add(status.st_ino);
  }
  (*pull)->choose({});
  Measured measured;
  std::vector<char> other(seconds ? 0 : kEvictedBytes);
  const std::uint64_t rounds = seconds.value_or(kRoundsHere) * 2;
  auto next = SteadyClock::now();
  for (std::uint64_t round = 0; round < rounds; ++round) {
    if (seconds) {
      std::this_thread::sleep_until(next += std::chrono::milliseconds(1000));
      measured.flush.push_back(nanoseconds_of([&] { flush(folder); }));
    } else {
      evict(other);
    }
    if (round % 2 == 0) measure(measured.floor, [&] { floor_walk.walk(); });
    else
      measure(measured.walk, [&] {
        if (!(*pull)->walk(0)) fail("no walk");
      });
  }
  measured.seen_each_time = floor_walk.seen() / (rounds / 2 * 2);
  return measured;
}

void print(const Measured& measured, std::uint64_t count) {
  const auto each = [&](const std::vector<double>& values) {
    return median(values) / static_cast<double>(count);
  };
  std::printf("{\"subject\":\"floor\",\"containers\":%llu,\"rounds\":%zu,\"floor_cold_ns\":%.0f,"
              "\"floor_warm_ns\":%.0f,\"walk_cold_ns\":%.0f,\"walk_warm_ns\":%.0f,"
              "\"flush_ns\":%.0f}\n",
              static_cast<unsigned long long>(count), measured.floor.cold.size(),
              each(measured.floor.cold), each(measured.floor.warm), each(measured.walk.cold),
              each(measured.walk.warm), each(measured.flush));
}

void run(std::uint64_t count, const char* folder, std::optional<std::uint64_t> seconds) {
  listen_to_libbpf();
  std::optional<HostCgroup> parent;
  std::vector<std::unique_ptr<HostCgroup>> cgroups;
  if (folder == nullptr) {
    parent.emplace();
    for (std::uint64_t i = 0; i < count; ++i)
      cgroups.push_back(std::make_unique<HostCgroup>(parent->path()));
  }
  const std::string where = folder != nullptr ? folder : parent->directory();
  const Measured measured = measure_all(where, seconds);
  // The folder itself counts too.
  if (measured.seen_each_time != count + 1)
    fail(std::to_string(measured.seen_each_time) + " cgroups were seen below " + where);
  print(measured, count);
}

}  // namespace

int main(int argc, char** argv) {
  const auto count = argc == 2 || argc == 4 ? parse_u64(argv[1]) : std::nullopt;
  const auto seconds = argc == 4 ? parse_u64(argv[3]) : std::nullopt;
  if (!count || *count == 0 || *count > kMaxCount ||
      (argc == 4 && (!seconds || *seconds < 2 || *seconds > kMaxSeconds))) {
    std::fputs("usage: bench_floor N [FOLDER SECONDS]\n", stderr);
    return 2;
  }
  return run_and_clean_up([&] {
    try {
      // A round is one walk, so two rounds make SECONDS.
      run(*count, argc == 4 ? argv[2] : nullptr,
          seconds ? std::optional(*seconds / 2) : std::nullopt);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "bench_floor: %s\n", error.what());
      return 1;
    }
    return 0;
  });
}
