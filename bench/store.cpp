// What history costs: CPU time, bytes in the file and bytes written per sample, and what is written
// in a day of a sample a second of each container; one JSON line per number of containers and kind.
// Simulated ticks of one second as fast as they go. Kinds: busy_point() of the tests, of which some
// thirty values change with every sample, and the same with all values standing still but eight.
//   bench_store [DIRECTORY]     default: a directory below the temporary one
//   bench_store --fill FILE MIB [CONTAINERS]
//     makes a history that takes up nearly a cap of so many MiB, for bench/export; 100 containers
#include "storage/store.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/storage/busy_point.h"

namespace {

using namespace cgphase;

constexpr std::uint64_t kSamples = 600'000;
constexpr double kSecondsPerDay = 86'400;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Bytes this process gave to write(2), page cache or not.
std::uint64_t bytes_written() {
  std::ifstream io("/proc/self/io");
  std::string key;
  for (std::uint64_t value = 0; io >> key >> value;)
    if (key == "wchar:") return value;
  return 0;
}

// Time on the CPU, memory in use, faults and stalls move, and nothing else.
HistoryPoint point_of_eight(CgroupId id, std::uint64_t second) {
  const HistoryPoint busy = test::busy_point(id, second);
  HistoryPoint point = test::busy_point(id, 1);
  point.time = busy.time;
  Sample& sample = point.sample;
  sample.cpu.usage_usec = busy.sample.cpu.usage_usec;
  sample.cpu.user_usec = busy.sample.cpu.user_usec;
  sample.cpu.system_usec = busy.sample.cpu.system_usec;
  sample.memory_current = busy.sample.memory_current;
  sample.memory.anon_bytes = busy.sample.memory.anon_bytes;
  sample.memory.inactive_anon_bytes = busy.sample.memory.inactive_anon_bytes;
  sample.memory.pgfault = busy.sample.memory.pgfault;
  sample.cpu_pressure.some.total_usec = busy.sample.cpu_pressure.some.total_usec;
  return point;
}

using Kind = HistoryPoint (*)(CgroupId, std::uint64_t);

std::vector<HistoryPoint> tick_of(std::uint64_t containers, std::uint64_t second, Kind kind) {
  std::vector<HistoryPoint> points;
  for (std::uint64_t inode = 0; inode < containers; ++inode)
    points.push_back(kind({1, inode}, second + inode * 17));
  // All read in the same tick.
  for (HistoryPoint& point : points) point.time = points.front().time;
  return points;
}

bool measure(const std::string& path, std::uint64_t containers, const char* name, Kind kind) {
  Result<Store> store = Store::open({path, "boot", Bytes{4 * kGiB}});
  if (!store) {
    std::fprintf(stderr, "bench_store: %s\n", store.error().text.c_str());
    return false;
  }
  const std::uint64_t ticks = kSamples / containers, written_before = bytes_written();
  double append_seconds = 0;
  for (std::uint64_t second = 0; second < ticks; ++second) {
    const std::vector<HistoryPoint> points = tick_of(containers, second, kind);
    const double begun = cpu_seconds();
    if (!store->append(points, {}, {})) return false;
    append_seconds += cpu_seconds() - begun;
  }
  if (!store->flush()) return false;
  const double samples = static_cast<double>(ticks * containers);
  const auto written = static_cast<double>(bytes_written() - written_before);
  const nlohmann::json line = {
      {"bench", "store"},
      {"kind", name},
      {"containers", containers},
      {"samples", ticks * containers},
      {"cpu_ns_per_sample", append_seconds * 1e9 / samples},
      {"bytes_per_sample", static_cast<double>(store->size_bytes()) / samples},
      {"written_bytes_per_sample", written / samples},
      {"written_mib_per_day", written / samples * static_cast<double>(containers) * kSecondsPerDay /
                                  static_cast<double>(kMiB)},
  };
  std::puts(line.dump().c_str());
  return true;
}

// As full as it gets before the oldest samples are thinned, which is at 90 % of what the cap leaves
// the file; a decision and its outcome for each sixtieth sample.
bool fill(const std::string& path, Bytes cap, std::uint64_t containers) {
  Result<Store> store = Store::open({path, "bench", cap});
  if (!store) {
    std::fprintf(stderr, "bench_store: %s\n", store.error().text.c_str());
    return false;
  }
  for (std::uint64_t inode = 0; inode < containers; ++inode) {
    ContainerInfo info;
    info.id = {1, inode};
    info.name = "container-" + std::to_string(inode);
    info.path = "/bench/" + info.name;
    if (!store->add_container(info, {})) return false;
  }
  // What the cap leaves the file; docs/storage.md, "Size".
  const std::uint64_t most = cap.value - std::min<std::uint64_t>(8 * kMiB, cap.value / 4);
  std::uint64_t second = 0;
  for (; second % 60 != 0 || std::filesystem::file_size(path) < most / 100 * 85; ++second) {
    std::vector<JournalDecision> decisions;
    std::vector<JournalOutcome> outcomes;
    const std::vector<HistoryPoint> points = tick_of(containers, second, test::busy_point);
    for (const HistoryPoint& point : points) {
      if ((second + point.sample.id.inode) % 60 != 0) continue;
      JournalDecision& decision = decisions.emplace_back();
      decision.time = point.time;
      decision.decision.decision_id = second * containers + point.sample.id.inode + 1;
      decision.decision.container = point.sample.id;
      JournalOutcome& outcome = outcomes.emplace_back();
      outcome.time = point.time;
      outcome.outcome.decision_id = decision.decision.decision_id;
      outcome.outcome.container = point.sample.id;
    }
    if (!store->append(points, decisions, outcomes)) return false;
  }
  if (!store->flush()) return false;
  const nlohmann::json line = {{"bench", "fill"},
                               {"containers", containers},
                               {"samples", second * containers},
                               {"bytes", store->size_bytes()}};
  std::puts(line.dump().c_str());
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 4 && std::string(argv[1]) == "--fill")
    return fill(argv[2], Bytes{std::stoull(argv[3]) * kMiB}, argc > 4 ? std::stoull(argv[4]) : 100)
               ? 0
               : 1;
  const std::filesystem::path base =
      argc > 1 ? std::filesystem::path(argv[1]) : std::filesystem::temp_directory_path();
  std::string directory = base / "cgphase-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 1;
  }
  bool good = true;
  for (const auto& [name, kind] : {std::pair<const char*, Kind>{"busy", test::busy_point},
                                   std::pair<const char*, Kind>{"eight_values", point_of_eight}})
    for (const std::uint64_t containers : {10, 100, 1000})
      good = measure(directory + "/" + name + std::to_string(containers) + ".db", containers, name,
                     kind) &&
             good;
  std::filesystem::remove_all(directory);
  return good ? 0 : 1;
}
