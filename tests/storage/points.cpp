#include "tests/storage/points.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <bit>
#include <filesystem>
#include <tuple>

namespace cgphase::test {
namespace {

auto fields(const PressureLine& line) {
  return std::tie(line.avg10_ratio, line.avg60_ratio, line.total_usec);
}

auto fields(const CpuStat& cpu) {
  return std::tie(cpu.usage_usec, cpu.user_usec, cpu.system_usec, cpu.nr_periods, cpu.nr_throttled,
                  cpu.throttled_usec);
}

auto fields(const MemoryStat& m) {
  return std::tie(m.anon_bytes, m.file_bytes, m.shmem_bytes, m.unevictable_bytes,
                  m.hugetlb_bytes, m.kernel_bytes,
                  m.slab_reclaimable_bytes, m.slab_unreclaimable_bytes, m.sock_bytes,
                  m.inactive_file_bytes, m.active_file_bytes, m.inactive_anon_bytes, m.pgfault,
                  m.pgmajfault, m.workingset_refault_file, m.workingset_refault_anon, m.pgscan,
                  m.pgsteal, m.pgscan_direct);
}

auto fields(const MemoryEvents& events) {
  return std::tie(events.low, events.high, events.max, events.oom, events.oom_kill);
}

auto fields(const IoStat& io) {
  return std::tie(io.read_bytes, io.write_bytes, io.read_ios, io.write_ios);
}

bool same_pressure(const Pressure& a, const Pressure& b) {
  return fields(a.some) == fields(b.some) && fields(a.full) == fields(b.full);
}

// Calls `set` with a reference to every number of a sample.
template <class Set>
void set_lines(Pressure& pressure, Set set) {
  for (PressureLine* line : {&pressure.some, &pressure.full}) {
    set(line->avg10_ratio);
    set(line->avg60_ratio);
    set(line->total_usec);
  }
}

template <class Set>
void set_all(Sample& s, Set set) {
  std::apply([&](auto&... counter) { (set(const_cast<Counter&>(counter)), ...); }, fields(s.cpu));
  std::apply([&](auto&... counter) { (set(const_cast<Counter&>(counter)), ...); },
             fields(s.memory));
  std::apply([&](auto&... counter) { (set(const_cast<Counter&>(counter)), ...); },
             fields(s.memory_events));
  std::apply([&](auto&... counter) { (set(const_cast<Counter&>(counter)), ...); }, fields(s.io));
  set(s.limits.cpu_max), set(s.limits.cpu_max_burst), set(s.limits.cpu_weight);
  set(s.limits.memory_max), set(s.limits.memory_high);
  set(s.limits.memory_low), set(s.limits.memory_min);
  set(s.memory_current), set(s.memory_peak), set(s.swap_current), set(s.swap_max);
  set(s.pids_current), set(s.pids_max);
  set_lines(s.cpu_pressure, set);
  set_lines(s.memory_pressure, set);
  set_lines(s.io_pressure, set);
  set(s.populated), set(s.frozen);
  set(s.run_queue.wait_usec), set(s.run_queue.waits), set(s.run_queue.longest_wait_usec);
  set(s.run_queue.voluntary_switches), set(s.run_queue.involuntary_switches);
  set(s.network.receive_bytes), set(s.network.receive_packets);
  set(s.network.transmit_bytes), set(s.network.transmit_packets);
  set(s.network.tcp_retransmits);
  set(s.block.bytes), set(s.block.requests), set(s.block.latency_usec);
  set(s.gpu.utilisation_ratio), set(s.gpu.memory_utilisation_ratio), set(s.gpu.memory_bytes);
}

// Sets a field of any type from the next number.
template <class Next>
struct Setter {
  Next next;
  void operator()(Counter& field) { field = next(); }
  void operator()(std::optional<double>& field) {
    field = static_cast<double>(next() % 10000) / 1e4;
  }
  void operator()(std::optional<bool>& field) { field = next() % 2 == 1; }
  void operator()(std::optional<std::uint32_t>& field) {
    field = static_cast<std::uint32_t>(next());
  }
  void operator()(std::optional<Bytes>& field) { field = Bytes{next()}; }
  void operator()(std::optional<Microseconds>& field) { field = Microseconds{next()}; }
  void operator()(std::optional<MemoryLimit>& field) { field = MemoryLimit{Bytes{next()}}; }
  void operator()(std::optional<CpuMax>& field) {
    field = CpuMax{Microseconds{next()}, Microseconds{next()}};
  }
};

}  // namespace

ScratchDirectory::ScratchDirectory() {
  std::string pattern = std::filesystem::temp_directory_path() / "cgphase-storage-XXXXXX";
  REQUIRE(::mkdtemp(pattern.data()) != nullptr);
  directory_ = pattern;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Sample full_sample(CgroupId id, std::uint64_t seed) {
  Sample sample;
  sample.id = id;
  std::uint64_t number = seed * 1000;
  auto next = [&number] { return ++number; };
  set_all(sample, [setter = Setter<decltype(next)>{next}](auto& field) mutable { setter(field); });
  return sample;
}

Sample random_sample(CgroupId id, std::mt19937_64& random) {
  Sample sample;
  sample.id = id;
  // Numbers of all lengths, the largest that a block can keep and zero among them.
  constexpr std::uint64_t kHighest = UINT64_MAX - 2;
  auto next = [&random]() -> std::uint64_t {
    const auto shift = random() % 65;
    return shift == 64 ? 0 : kHighest >> shift;
  };
  Setter<decltype(next)> setter{next};
  set_all(sample, [&](auto& field) {
    if (random() % 4 == 0) return;
    setter(field);
    using Field = std::remove_reference_t<decltype(*field)>;
    if constexpr (std::is_same_v<Field, MemoryLimit>) {
      if (random() % 2 == 0) field->bytes.reset();
    } else if constexpr (std::is_same_v<Field, CpuMax>) {
      if (random() % 2 == 0) field->quota.reset();
    }
  });
  return sample;
}

Phase random_phase(std::mt19937_64& random) {
  Phase phase;
  phase.state = static_cast<PhaseState>(random() % 3);
  phase.index = static_cast<int>(random() % 40) - 1;
  phase.distance = std::ldexp(static_cast<double>(random()), -40);
  phase.margin = std::ldexp(static_cast<double>(random()), -60);
  return phase;
}

bool same(const Sample& a, const Sample& b) {
  return a.id == b.id && fields(a.cpu) == fields(b.cpu) && a.limits == b.limits &&
         a.memory_current == b.memory_current && a.memory_peak == b.memory_peak &&
         fields(a.memory) == fields(b.memory) &&
         fields(a.memory_events) == fields(b.memory_events) && a.swap_current == b.swap_current &&
         a.swap_max == b.swap_max && fields(a.io) == fields(b.io) &&
         a.pids_current == b.pids_current && a.pids_max == b.pids_max &&
         same_pressure(a.cpu_pressure, b.cpu_pressure) &&
         same_pressure(a.memory_pressure, b.memory_pressure) &&
         same_pressure(a.io_pressure, b.io_pressure) && a.populated == b.populated &&
         a.frozen == b.frozen && a.run_queue == b.run_queue && a.network == b.network &&
         a.block == b.block && a.gpu == b.gpu;
}

bool same(const Phase& a, const Phase& b) {
  return a.state == b.state && a.index == b.index &&
         std::bit_cast<std::uint64_t>(a.distance) == std::bit_cast<std::uint64_t>(b.distance) &&
         std::bit_cast<std::uint64_t>(a.margin) == std::bit_cast<std::uint64_t>(b.margin);
}

bool same(const HistoryPoint& a, const HistoryPoint& b) {
  return a.time == b.time && same(a.sample, b.sample) && same(a.phase, b.phase) &&
         a.peak_cpu_cores == b.peak_cpu_cores && a.clock_start_ms == b.clock_start_ms;
}

JournalDecision decision_of(CgroupId id, std::uint64_t decision_id, WallTime time) {
  JournalDecision entry;
  entry.time = time;
  entry.decision.container = id;
  entry.decision.decision_id = decision_id;
  entry.decision.time = MonotonicTime(std::chrono::nanoseconds(decision_id * 1000));
  return entry;
}

JournalOutcome outcome_of(CgroupId id, std::uint64_t decision_id, WallTime time) {
  JournalOutcome entry;
  entry.time = time;
  entry.outcome.container = id;
  entry.outcome.decision_id = decision_id;
  entry.outcome.time = MonotonicTime(std::chrono::nanoseconds(decision_id * 1000));
  entry.outcome.detail = "throttled 0.1 % before, 0.2 % after";
  return entry;
}

namespace {

template <class Entry>
Result<std::vector<Entry>> read_entries(Store& store, std::optional<CgroupId> container,
                                        WallTime until, int limit) {
  std::optional<Store::Subject> subject;
  if (container) subject.emplace().id = *container;
  const auto events = store.events(subject, {.until = until, .limit = 1 << 24});
  if (!events) return std::unexpected(events.error());
  std::vector<Entry> entries;
  for (const JournalEvent& event : *events)
    if (const auto* const entry = std::get_if<Entry>(&event.what);
        entry != nullptr && static_cast<int>(entries.size()) < limit)
      entries.push_back(*entry);
  return entries;
}

}  // namespace

Result<std::vector<JournalDecision>> read_decisions(Store& store, std::optional<CgroupId> container,
                                                    WallTime until, int limit) {
  return read_entries<JournalDecision>(store, container, until, limit);
}

Result<std::vector<JournalOutcome>> read_outcomes(Store& store, std::optional<CgroupId> container,
                                                  WallTime until, int limit) {
  return read_entries<JournalOutcome>(store, container, until, limit);
}

void fill_over_step_back(Store& store) {
  const auto add = [&store](std::uint64_t second, double part) {
    HistoryPoint point = busy_point(kOne, second);
    point.time = at_second(static_cast<double>(second) + part);
    REQUIRE(store.append({point}, {}, {}).has_value());
  };
  for (std::uint64_t second = 940; second < 1060; ++second) add(second, 0);
  for (std::uint64_t second = 1030; second < 1120; ++second) add(second, 0.5);
  REQUIRE(store.flush().has_value());
}

std::vector<WallTime> times_of_pages(const PageFrom& page) {
  std::vector<WallTime> times;
  for (WallTime from = WallTime::min();;) {
    const Result<std::vector<HistoryPoint>> points = page(from);
    REQUIRE(points.has_value());
    REQUIRE(points->size() <= 120);
    const std::size_t before = times.size();
    for (const HistoryPoint& point : *points)
      if (times.empty() || point.time > times.back()) times.push_back(point.time);
    if (times.size() == before) return times;
    from = times.back();
  }
}

Store open_store(const std::string& path, Bytes cap) {
  Result<Store> store = Store::open({path, "boot-1", cap});
  REQUIRE_MESSAGE(store.has_value(), (store ? "" : store.error().text));
  return std::move(*store);
}

}  // namespace cgphase::test
