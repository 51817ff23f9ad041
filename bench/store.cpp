// Cost of the history: CPU time, bytes in the file and bytes written per sample, and bytes written
// in a day with one sample per second of each container. One JSON line per number of containers and
// kind. Simulated ticks of one second run as fast as possible. Kinds: busy_point() of the tests, in
// which some thirty values change with every sample, and the same with only eight changing values.
//   bench_store [DIRECTORY]     default: a directory below the temporary one
//   bench_store --cap MIB [CONTAINERS [DAYS]]
//     one line for each simulated day of busy containers at that cap, with 12 decisions a minute:
//     bytes written, and how far back the history reaches; 100 containers, 14 days. Once old
//     samples of all tiers are thinned or deleted, all days are alike
//   bench_store --fill FILE MIB [CONTAINERS]
//     makes a history that nearly fills a cap of MIB, for bench/export; 100 containers
#include "storage/store.h"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ratio>
#include <string>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "tests/storage/busy_point.h"

namespace {

using namespace cgphase;

constexpr std::uint64_t kSamples = 600'000;
constexpr std::uint64_t kSecondsPerDay = 86'400;
constexpr std::uint64_t kSecondsPerDecision = 5;
constexpr std::uint64_t kMostMib = 1U << 20, kMostContainers = 4096, kMostDays = 400;

double cpu_seconds() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Bytes that this process passed to write(2), page cache or not.
std::uint64_t bytes_written() {
  std::ifstream io("/proc/self/io");
  std::string key;
  for (std::uint64_t value = 0; io >> key >> value;)
    if (key == "wchar:") return value;
  return 0;
}

// Only CPU time, memory in use, faults and stalls change.
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
  // All are read in the same tick.
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
      {"written_mib_per_day", written / samples * static_cast<double>(containers * kSecondsPerDay) /
                                  static_cast<double>(kMiB)},
  };
  std::puts(line.dump().c_str());
  return true;
}

// A store whose containers have names.
Result<Store> open_named(const std::string& path, Bytes cap, std::uint64_t containers) {
  Result<Store> store = Store::open({path, "bench", cap});
  for (std::uint64_t inode = 0; store && inode < containers; ++inode) {
    ContainerInfo info;
    info.id = {1, inode};
    info.name = "container-" + std::to_string(inode);
    info.path = "/bench/" + info.name;
    if (Status named = store->add_container(info, {}); !named)
      store = std::unexpected(named.error());
  }
  if (!store) std::fprintf(stderr, "bench_store: %s\n", store.error().text.c_str());
  return store;
}

struct Tick {
  std::vector<HistoryPoint> points;
  std::vector<JournalDecision> decisions;
  std::vector<JournalOutcome> outcomes;
};

// A decision and its outcome after every `samples_of_one` samples.
Tick busy_tick(std::uint64_t containers, std::uint64_t second, std::uint64_t samples_of_one) {
  Tick tick{.points = tick_of(containers, second, test::busy_point), .decisions = {},
            .outcomes = {}};
  for (const HistoryPoint& point : tick.points) {
    if ((second + point.sample.id.inode) % samples_of_one != 0) continue;
    JournalDecision& decision = tick.decisions.emplace_back();
    decision.time = point.time;
    decision.decision.decision_id = second * containers + point.sample.id.inode + 1;
    decision.decision.container = point.sample.id;
    JournalOutcome& outcome = tick.outcomes.emplace_back();
    outcome.time = point.time;
    outcome.outcome.decision_id = decision.decision.decision_id;
    outcome.outcome.container = point.sample.id;
  }
  return tick;
}

// Fills the store until just before the oldest samples are thinned, which is at 90 % of the file's
// part of the cap. There is a decision and its outcome for each sixtieth sample.
bool fill(const std::string& path, Bytes cap, std::uint64_t containers) {
  Result<Store> store = open_named(path, cap, containers);
  if (!store) return false;
  // The file's part of the cap; see docs/internals/storage.md, "Size".
  const std::uint64_t most = cap.value - std::min<std::uint64_t>(8 * kMiB, cap.value / 4);
  std::uint64_t second = 0;
  for (; second % 60 != 0 || std::filesystem::file_size(path) < most / 100 * 85; ++second) {
    const Tick tick = busy_tick(containers, second, 60);
    if (!store->append(tick.points, tick.decisions, tick.outcomes)) return false;
  }
  if (!store->flush()) return false;
  const nlohmann::json line = {{"bench", "fill"},
                               {"containers", containers},
                               {"samples", second * containers},
                               {"bytes", store->size_bytes()}};
  std::puts(line.dump().c_str());
  return true;
}

// One simulated day. Prints the seconds that append() needed.
bool live_through(Store& store, std::uint64_t day, std::uint64_t containers) {
  const std::uint64_t written_before = bytes_written();
  double append_seconds = 0;
  WallTime now{};
  const std::uint64_t end = (day + 1) * kSecondsPerDay;
  for (std::uint64_t second = day * kSecondsPerDay; second < end; ++second) {
    const Tick tick = busy_tick(containers, second, containers * kSecondsPerDecision);
    now = tick.points.front().time;
    const double begun = cpu_seconds();
    if (!store.append(tick.points, tick.decisions, tick.outcomes)) return false;
    append_seconds += cpu_seconds() - begun;
  }
  const auto oldest = store.history({1, 0}, {}, now, 1);
  if (!oldest || oldest->empty()) return false;
  const auto samples = static_cast<double>(containers * kSecondsPerDay);
  const std::chrono::duration<double, std::ratio<kSecondsPerDay>> reach =
      now - oldest->front().time;
  const nlohmann::json line = {
      {"bench", "days"},
      {"containers", containers},
      {"day", day + 1},
      {"cpu_ns_per_sample", append_seconds * 1e9 / samples},
      {"written_mib",
       static_cast<double>(bytes_written() - written_before) / static_cast<double>(kMiB)},
      {"bytes", store.size_bytes()},
      {"reaches_back_days", reach.count()},
  };
  std::puts(line.dump().c_str());
  std::fflush(stdout);
  return true;
}

bool days(const std::string& path, Bytes cap, std::uint64_t containers, std::uint64_t count) {
  Result<Store> store = open_named(path, cap, containers);
  if (!store) return false;
  for (std::uint64_t day = 0; day < count; ++day)
    if (!live_through(*store, day, containers)) return false;
  return true;
}

// Uses its own folder and removes it.
bool measure_all(const std::string& directory) {
  bool good = true;
  for (const auto& [name, kind] : {std::pair<const char*, Kind>{"busy", test::busy_point},
                                   std::pair<const char*, Kind>{"eight_values", point_of_eight}})
    for (const std::uint64_t containers : {10, 100, 1000})
      good = measure(directory + "/" + name + std::to_string(containers) + ".db", containers, name,
                     kind) &&
             good;
  return good;
}

int usage() {
  std::fputs("usage: bench_store [DIRECTORY]\n"
             "       bench_store --cap MIB [CONTAINERS [DAYS]]\n"
             "       bench_store --fill FILE MIB [CONTAINERS]\n",
             stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const std::string first = words.empty() ? "" : words[0];
  // 0 if there is no number, or if it is too large.
  const auto number = [&](std::size_t at, std::uint64_t otherwise, std::uint64_t most) {
    if (at >= words.size()) return otherwise;
    const std::uint64_t told = parse_u64(words[at]).value_or(0);
    return told <= most ? told : 0;
  };
  if (first == "--fill") {
    const std::uint64_t mib = number(2, 0, kMostMib), containers = number(3, 100, kMostContainers);
    if (mib == 0 || containers == 0 || words.size() > 4) return usage();
    return fill(words[1], Bytes{mib * kMiB}, containers) ? 0 : 1;
  }
  const bool at_cap = first == "--cap";
  const std::uint64_t mib = number(1, 0, kMostMib), containers = number(2, 100, kMostContainers),
                      day_count = number(3, 14, kMostDays);
  if (at_cap ? mib == 0 || containers == 0 || day_count == 0 || words.size() > 4
             : words.size() > 1 || first.starts_with("-"))
    return usage();
  const std::filesystem::path base = at_cap || first.empty()
                                         ? std::filesystem::temp_directory_path()
                                         : std::filesystem::path(first);
  std::string directory = base / "cgphase-bench-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    std::perror(directory.c_str());
    return 1;
  }
  const bool good = at_cap
                        ? days(directory + "/days.db", Bytes{mib * kMiB}, containers, day_count)
                        : measure_all(directory);
  std::filesystem::remove_all(directory);
  return good ? 0 : 1;
}
