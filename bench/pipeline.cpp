// What one container costs in the pipeline: time of a tick, and memory that is held when it has
// been there for so long. Containers alternate between a busy and a quiet time, each in its own
// rhythm, below limits that are never touched. One JSON line per age.
//
//   bench_pipeline MODEL [CONTAINERS]     (200)
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "agent/pipeline.h"
#include "base/parse.h"
#include "model/model.h"

namespace {

using namespace cgphase;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kDefaultContainers = 200;
constexpr int kAges[] = {60, 600, 3600};  // seconds

// Bytes in use, of the heap and of what is mapped by itself.
std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

class Host {
 public:
  explicit Host(std::uint64_t containers) {
    tick_.host = {.cpu_cores = 64, .memory = Bytes{512 * kGiB}};
    tick_.time = MonotonicTime(std::chrono::seconds(100));
    tick_.wall_time = WallTime(std::chrono::seconds(1'700'000'000));
    for (std::uint64_t i = 0; i < containers; ++i) {
      ContainerInfo info;
      info.id = {1, 100 + i};
      info.path = "/c" + std::to_string(i);
      info.name = "c" + std::to_string(i);
      tick_.appeared.push_back(info);
      Sample sample;
      sample.id = info.id;
      sample.limits.cpu_max = CpuMax{Microseconds{400'000}, Microseconds{100'000}};
      sample.limits.memory_max = MemoryLimit{Bytes{4 * kGiB}};
      sample.cpu = {.usage_usec = 0, .nr_periods = 0, .nr_throttled = 0, .throttled_usec = 0};
      sample.memory.file_bytes = 0;
      sample.memory_events = {.low = 0, .high = 0, .max = 0, .oom = 0, .oom_kill = 0};
      sample.populated = true;
      tick_.containers.push_back(sample);
    }
  }

  const NodeSample& next() {
    tick_.time += std::chrono::seconds(1);
    tick_.wall_time += std::chrono::seconds(1);
    if (second_++ == 1) tick_.appeared.clear();
    std::uint64_t number = 0;
    for (Sample& sample : tick_.containers) {
      const std::uint64_t rhythm = 60 + 7 * (number++ % 40);
      const bool busy = second_ % rhythm < rhythm / 3;
      random_ = random_ * 6364136223846793005 + 1442695040888963407;
      const double noise = 1 + 0.2 * static_cast<double>(random_ >> 11) * 0x1p-53;
      *sample.cpu.usage_usec += static_cast<std::uint64_t>(noise * (busy ? 2.5e6 : 0.2e6));
      *sample.cpu.nr_periods += 10;
      const auto bytes = static_cast<std::uint64_t>(noise * (busy ? 2e9 : 0.5e9));
      sample.memory.anon_bytes = bytes;
      sample.memory_current = Bytes{bytes};
    }
    return tick_;
  }

 private:
  NodeSample tick_;
  std::uint64_t second_ = 0, random_ = 1;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: bench_pipeline MODEL [CONTAINERS]\n", stderr), 2;
  const std::uint64_t containers =
      argc > 2 ? parse_u64(argv[2]).value_or(kDefaultContainers) : kDefaultContainers;
  auto model = load_model(argv[1]);
  if (!model) return std::fprintf(stderr, "bench_pipeline: %s\n", model.error().text.c_str()), 1;
  const auto engine = PhaseEngine::create(std::move(*model)).value();
  Host host(containers);
  const std::size_t before = heap_bytes();
  auto pipeline = Pipeline::create({}, engine).value();
  int age = 0;
  for (const int until : kAges) {
    const int ticks = until - age;
    const auto begun = SteadyClock::now();
    for (; age < until; ++age) (void)pipeline.step(host.next());
    const std::chrono::duration<double, std::nano> took = SteadyClock::now() - begun;
    const double steps = static_cast<double>(ticks) * static_cast<double>(containers);
    std::printf("{\"bench\":\"pipeline\",\"containers\":%llu,\"age_seconds\":%d,"
                "\"ns_per_container_tick\":%.0f,\"heap_bytes_per_container\":%.0f}\n",
                static_cast<unsigned long long>(containers), age, took.count() / steps,
                static_cast<double>(heap_bytes() - before) / static_cast<double>(containers));
    std::fflush(stdout);
  }
}
