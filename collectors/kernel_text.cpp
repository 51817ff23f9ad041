#include "collectors/kernel_text.h"

#include <array>
#include <cstdint>
#include <limits>

#include "base/parse.h"

namespace cgphase {
namespace {

// One key of a flat keyed file and where its number goes.
template <class Record>
struct Key {
  std::string_view name;
  Counter Record::*field;
};

// memory.stat with the fields that only kernel_bytes is made of.
struct MemoryRecord : MemoryStat {
  Counter kernel, kernel_stack, pagetables, percpu, slab;
};
struct EventsRecord {
  Counter populated, frozen;
};

constexpr std::array<Key<CpuStat>, 6> kCpuKeys = {{
    {"usage_usec", &CpuStat::usage_usec},
    {"user_usec", &CpuStat::user_usec},
    {"system_usec", &CpuStat::system_usec},
    {"nr_periods", &CpuStat::nr_periods},
    {"nr_throttled", &CpuStat::nr_throttled},
    {"throttled_usec", &CpuStat::throttled_usec},
}};

// In the kernel's order, which makes most lines match at once.
constexpr std::array<Key<MemoryRecord>, 22> kMemoryKeys = {{
    {"anon", &MemoryRecord::anon_bytes},
    {"file", &MemoryRecord::file_bytes},
    {"kernel", &MemoryRecord::kernel},
    {"kernel_stack", &MemoryRecord::kernel_stack},
    {"pagetables", &MemoryRecord::pagetables},
    {"percpu", &MemoryRecord::percpu},
    {"sock", &MemoryRecord::sock_bytes},
    {"shmem", &MemoryRecord::shmem_bytes},
    {"inactive_anon", &MemoryRecord::inactive_anon_bytes},
    {"inactive_file", &MemoryRecord::inactive_file_bytes},
    {"active_file", &MemoryRecord::active_file_bytes},
    {"unevictable", &MemoryRecord::unevictable_bytes},
    {"slab_reclaimable", &MemoryRecord::slab_reclaimable_bytes},
    {"slab_unreclaimable", &MemoryRecord::slab_unreclaimable_bytes},
    {"slab", &MemoryRecord::slab},
    {"workingset_refault_anon", &MemoryRecord::workingset_refault_anon},
    {"workingset_refault_file", &MemoryRecord::workingset_refault_file},
    {"pgscan", &MemoryRecord::pgscan},
    {"pgsteal", &MemoryRecord::pgsteal},
    {"pgscan_direct", &MemoryRecord::pgscan_direct},
    {"pgfault", &MemoryRecord::pgfault},
    {"pgmajfault", &MemoryRecord::pgmajfault},
}};

constexpr std::array<Key<MemoryEvents>, 5> kMemoryEventKeys = {{
    {"low", &MemoryEvents::low},
    {"high", &MemoryEvents::high},
    {"max", &MemoryEvents::max},
    {"oom", &MemoryEvents::oom},
    {"oom_kill", &MemoryEvents::oom_kill},
}};

constexpr std::array<Key<EventsRecord>, 2> kCgroupEventKeys = {{
    {"populated", &EventsRecord::populated},
    {"frozen", &EventsRecord::frozen},
}};

constexpr std::array<Key<IoStat>, 4> kIoKeys = {{
    {"rbytes", &IoStat::read_bytes},
    {"wbytes", &IoStat::write_bytes},
    {"rios", &IoStat::read_ios},
    {"wios", &IoStat::write_ios},
}};

// The key of that name; `cursor` is where the search begins and then one past the hit, since files
// keep their order.
template <class Record, std::size_t N>
const Key<Record>* find_key(const std::array<Key<Record>, N>& keys, std::string_view name,
                            std::size_t& cursor) {
  for (std::size_t step = 0; step < N; ++step) {
    const std::size_t at = cursor + step < N ? cursor + step : cursor + step - N;
    if (keys[at].name != name) continue;
    cursor = at + 1 < N ? at + 1 : 0;
    return &keys[at];
  }
  return nullptr;
}

// Lines of "KEY NUMBER".
template <class Record, std::size_t N>
void scan_keys(std::string_view text, const std::array<Key<Record>, N>& keys, Record& record) {
  std::string_view line;
  std::size_t cursor = 0;
  while (next_line(text, line)) {
    const std::size_t blank = line.find(' ');
    if (blank == std::string_view::npos) continue;
    if (const Key<Record>* key = find_key(keys, line.substr(0, blank), cursor))
      record.*(key->field) = parse_u64(line.substr(blank + 1));
  }
}

// Cuts the next "KEY=VALUE" off `rest`; words without '=' are passed over.
bool next_pair(std::string_view& rest, std::string_view& key, std::string_view& value) {
  std::string_view word;
  while (next_word(rest, word)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string_view::npos) continue;
    key = word.substr(0, equals);
    value = word.substr(equals + 1);
    return true;
  }
  return false;
}

// The sum, or the largest number where it would overflow.
std::uint64_t saturating_sum(std::uint64_t a, std::uint64_t b) {
  return a > std::numeric_limits<std::uint64_t>::max() - b
             ? std::numeric_limits<std::uint64_t>::max()
             : a + b;
}

Counter kernel_bytes(const MemoryRecord& record) {
  const std::uint64_t sock = record.sock_bytes.value_or(0);
  if (record.kernel) return saturating_sum(*record.kernel, sock);
  if (!record.kernel_stack && !record.slab) return std::nullopt;
  std::uint64_t sum = sock;
  for (const Counter& part : {record.kernel_stack, record.pagetables, record.percpu, record.slab})
    sum = saturating_sum(sum, part.value_or(0));
  return sum;
}

// A percentage as the kernel prints it, as a ratio.
std::optional<double> scan_percent(std::string_view text) {
  const std::optional<double> percent = parse_double(text);
  if (!percent || *percent < 0 || *percent > 100) return std::nullopt;
  return *percent / 100;
}

std::optional<bool> as_flag(const Counter& number) {
  if (!number || *number > 1) return std::nullopt;
  return *number == 1;
}

PressureLine scan_pressure_line(std::string_view line) {
  PressureLine result;
  std::string_view key, value;
  while (next_pair(line, key, value)) {
    if (key == "avg10") result.avg10_ratio = scan_percent(value);
    else if (key == "avg60") result.avg60_ratio = scan_percent(value);
    else if (key == "total") result.total_usec = parse_u64(value);
  }
  return result;
}

}  // namespace

CpuStat scan_cpu_stat(std::string_view text) {
  CpuStat result;
  scan_keys(text, kCpuKeys, result);
  return result;
}

MemoryStat scan_memory_stat(std::string_view text) {
  MemoryRecord record;
  scan_keys(text, kMemoryKeys, record);
  record.kernel_bytes = kernel_bytes(record);
  return record;
}

MemoryEvents scan_memory_events(std::string_view text) {
  MemoryEvents result;
  scan_keys(text, kMemoryEventKeys, result);
  return result;
}

IoStat scan_io_stat(std::string_view text) {
  IoStat result{0, 0, 0, 0};
  std::string_view name, value;
  std::size_t cursor = 0;
  while (next_pair(text, name, value)) {
    const Key<IoStat>* key = find_key(kIoKeys, name, cursor);
    const Counter number = key ? parse_u64(value) : std::nullopt;
    if (!key) continue;
    Counter& sum = result.*(key->field);
    // One malformed number makes the whole sum unknown.
    if (!sum || !number) sum.reset();
    else sum = saturating_sum(*sum, *number);
  }
  return result;
}

Pressure scan_pressure(std::string_view text) {
  Pressure result;
  std::string_view line;
  while (next_line(text, line)) {
    if (line.starts_with("some ")) result.some = scan_pressure_line(line);
    else if (line.starts_with("full ")) result.full = scan_pressure_line(line);
  }
  return result;
}

std::optional<CpuMax> scan_cpu_max(std::string_view text) {
  std::string_view quota, period;
  if (!next_word(text, quota) || !next_word(text, period) || !trim(text).empty())
    return std::nullopt;
  const Counter period_usec = parse_u64(period);
  if (!period_usec || *period_usec == 0) return std::nullopt;
  if (quota == "max") return CpuMax{std::nullopt, Microseconds{*period_usec}};
  const Counter quota_usec = parse_u64(quota);
  if (!quota_usec) return std::nullopt;
  return CpuMax{Microseconds{*quota_usec}, Microseconds{*period_usec}};
}

std::optional<MemoryLimit> scan_limit(std::string_view text) {
  text = trim(text);
  if (text == "max") return MemoryLimit{};
  const Counter number = parse_u64(text);
  if (!number) return std::nullopt;
  return MemoryLimit{Bytes{*number}};
}

Counter scan_number(std::string_view text) { return parse_u64(trim(text)); }

CgroupEvents scan_cgroup_events(std::string_view text) {
  EventsRecord record;
  scan_keys(text, kCgroupEventKeys, record);
  return {as_flag(record.populated), as_flag(record.frozen)};
}

}  // namespace cgphase
