// Virtual hours of a host with the core and a store on a real disk, as fast as the machine runs
// them. It measures memory and the size of the file. Every virtual minute a container ends and
// another one starts. One JSON line per hour, and one with the regression line through them. Exit
// status 1 if by that line memory grew by more than 5 % from the second hour to the last, or if the
// file exceeds its cap.
//
//   bench_soak MODEL DIRECTORY [CONTAINERS HOURS]     (20, 24)
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "bench/busy_host.h"
#include "core/core.h"
#include "model/model.h"
#include "policy/learned_json.h"
#include "storage/store.h"

namespace {

using namespace cgphase;

constexpr std::uint64_t kDefaultContainers = 20, kDefaultHours = 24;
constexpr Bytes kCap{64 * kMiB};
constexpr int kHourSeconds = 3600, kReplaceSeconds = 60;
constexpr double kMostGrowth = 0.05;

std::size_t heap_bytes() {
  const auto info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

int fail(const std::string& why) {
  std::fprintf(stderr, "bench_soak: %s\n", why.c_str());
  return 1;
}

// The slope of `values` by least squares. At least two.
double slope_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double x_sum = 0, y_sum = 0, xy_sum = 0, xx_sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto x = static_cast<double>(i);
    x_sum += x, y_sum += values[i], xy_sum += x * values[i], xx_sum += x * x;
  }
  return (count * xy_sum - x_sum * y_sum) / (count * xx_sum - x_sum * x_sum);
}

Status store_tick(Store& store, const NodeSample& tick, const Core& core) {
  for (const ContainerInfo& info : tick.appeared)
    if (Status named = store.add_container(info, tick.wall_time); !named) return named;
  std::vector<HistoryPoint> points;
  for (const Sample& sample : tick.containers)
    points.push_back({tick.wall_time, sample, core.find(sample.id)->phase});
  return store.append(points, {}, {});
}

// The statistics of a finished run are saved under its image, where the next run looks them up.
Status end_oldest(BusyHost& host, Store& store, const Core& core) {
  const CgroupId id = host.replace_oldest();
  return store.save_learned(core.find(id)->info.name, learned_to_json(core.learned(id)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3)
    return std::fputs("usage: bench_soak MODEL DIRECTORY [CONTAINERS HOURS]\n", stderr), 2;
  const auto number = [&](int at, std::uint64_t otherwise) {
    return argc > at ? parse_u64(argv[at]).value_or(otherwise) : otherwise;
  };
  const std::uint64_t containers = number(3, kDefaultContainers), hours = number(4, kDefaultHours);
  auto model = load_model(argv[1]);
  if (!model) return fail(model.error().text);
  const std::string path = std::string(argv[2]) + "/soak.db";
  Result<Store> store = Store::open({.path = path, .boot_id = "soak", .cap = kCap});
  if (!store) return fail(store.error().text);
  auto core = Core::create({}, PhaseEngine::create(std::move(*model)).value()).value();
  BusyHost host(containers);
  std::vector<double> heap;  // from the second hour on
  for (std::uint64_t hour = 1; hour <= hours; ++hour) {
    for (int second = 1; second <= kHourSeconds; ++second) {
      const NodeSample& tick = host.next();
      (void)core.step(tick);
      Status done = store_tick(*store, tick, core);
      if (done && second % kReplaceSeconds == 0) done = end_oldest(host, *store, core);
      if (!done) return fail(done.error().text);
    }
    std::printf("{\"bench\":\"soak\",\"containers\":%llu,\"hour\":%llu,\"heap_bytes\":%zu,"
                "\"file_bytes\":%llu,\"cap_bytes\":%llu}\n",
                static_cast<unsigned long long>(containers), static_cast<unsigned long long>(hour),
                heap_bytes(), static_cast<unsigned long long>(store->size_bytes()),
                static_cast<unsigned long long>(kCap.value));
    std::fflush(stdout);
    if (hour > 1) heap.push_back(static_cast<double>(heap_bytes()));
  }
  if (heap.size() < 2) return 0;
  const double slope = slope_of(heap);
  std::printf("{\"bench\":\"soak\",\"heap_bytes_per_hour\":%.0f}\n", slope);
  const bool grows = slope * static_cast<double>(heap.size() - 1) > kMostGrowth * heap.front();
  return grows || store->size_bytes() > kCap.value ? 1 : 0;
}
