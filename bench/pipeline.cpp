// Cost of one container in the core: time of a tick, and memory after the container has been
// there for some time. Containers alternate between a busy and a quiet time, each in its own rhythm
// and never at its limits. One JSON line per age.
//
//   bench_pipeline MODEL [CONTAINERS]     (200)
#include <malloc.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>

#include "base/parse.h"
#include "bench/busy_host.h"
#include "core/core.h"
#include "model/model.h"

namespace {

using namespace cgphase;
using SteadyClock = std::chrono::steady_clock;

constexpr std::uint64_t kDefaultContainers = 200;
constexpr int kAges[] = {60, 600, 3600};  // seconds

// Bytes in use, in the heap and in separate mappings.
std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return std::fputs("usage: bench_pipeline MODEL [CONTAINERS]\n", stderr), 2;
  const std::uint64_t containers =
      argc > 2 ? parse_u64(argv[2]).value_or(kDefaultContainers) : kDefaultContainers;
  auto model = load_model(argv[1]);
  if (!model) return std::fprintf(stderr, "bench_pipeline: %s\n", model.error().text.c_str()), 1;
  const auto engine = PhaseEngine::create(std::move(*model)).value();
  BusyHost host(containers);
  const std::size_t before = heap_bytes();
  auto core = Core::create({}, engine).value();
  int age = 0;
  for (const int until : kAges) {
    const int ticks = until - age;
    const auto begun = SteadyClock::now();
    for (; age < until; ++age) (void)core.step(host.next());
    const std::chrono::duration<double, std::nano> took = SteadyClock::now() - begun;
    const double steps = static_cast<double>(ticks) * static_cast<double>(containers);
    std::printf("{\"bench\":\"pipeline\",\"containers\":%llu,\"age_seconds\":%d,"
                "\"ns_per_container_tick\":%.0f,\"heap_bytes_per_container\":%.0f}\n",
                static_cast<unsigned long long>(containers), age, took.count() / steps,
                static_cast<double>(heap_bytes() - before) / static_cast<double>(containers));
    std::fflush(stdout);
  }
}
