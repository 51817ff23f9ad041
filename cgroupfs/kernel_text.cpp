#include "cgroupfs/kernel_text.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace cgphase {
namespace {

// One key of a flat keyed file, and the field for its number. Scanning stops once all keys that are
// not optional were found.
template <class Record>
struct Key {
  std::string_view name;
  Counter Record::*field;
  bool optional = false;
};

// memory.stat plus the fields that are only used to compute kernel_bytes.
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

constexpr std::array<Key<MemoryRecord>, 23> kMemoryKeys = {{
    {"anon", &MemoryRecord::anon_bytes},
    {"file", &MemoryRecord::file_bytes},
    {"kernel", &MemoryRecord::kernel},
    {"kernel_stack", &MemoryRecord::kernel_stack},
    {"pagetables", &MemoryRecord::pagetables},
    {"percpu", &MemoryRecord::percpu},
    {"sock", &MemoryRecord::sock_bytes},
    {"shmem", &MemoryRecord::shmem_bytes},
    {"hugetlb", &MemoryRecord::hugetlb_bytes, true},
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

// The kernel prints a counter that fell below zero as a number from here on.
constexpr std::uint64_t kNegative = std::uint64_t{1} << 63;

// Walks over the bytes once and never past the end. It is written by hand because the general
// functions of base/parse.h search each word twice. That cost more than the kernel's own work.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : at_(text.data()), end_(at_ + text.size()) {}

  bool at_end() const { return at_ == end_; }
  bool at_line_end() const { return at_ == end_ || *at_ == '\n'; }
  // At a newline the kernel ended the line, so the text before it is complete.
  bool at_newline() const { return at_ != end_ && *at_ == '\n'; }
  bool at_blank() const { return at_ != end_ && (*at_ == ' ' || *at_ == '\n'); }
  bool at_word_end() const { return at_ == end_ || *at_ == '\n' || *at_ == ' '; }

  // The text up to the next blank, '=' or end of line. That character is not consumed.
  std::string_view word() {
    const char* begin = at_;
    while (!at_word_end() && *at_ != '=') ++at_;
    return {begin, static_cast<std::size_t>(at_ - begin)};
  }
  bool take(char wanted) {
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  // Reads digits. Absent without digits, or if the number does not fit. `digits` is their count.
  Counter number(int& digits) {
    std::uint64_t value = 0;
    bool fits = true;
    digits = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_, ++digits) {
      fits = fits && !__builtin_mul_overflow(value, 10U, &value) &&
             !__builtin_add_overflow(value, static_cast<unsigned>(*at_ - '0'), &value);
    }
    return fits && digits > 0 ? Counter(value) : std::nullopt;
  }
  void skip_word() {
    while (!at_word_end()) ++at_;
  }
  void skip_line() {
    while (!at_line_end()) ++at_;
    take('\n');
  }

 private:
  const char* at_;
  const char* end_;
};

template <class Record, std::size_t N>
constexpr std::size_t needed_keys(const std::array<Key<Record>, N>& keys) {
  return static_cast<std::size_t>(
      std::ranges::count(keys, false, [](const Key<Record>& key) { return key.optional; }));
}

// Finds a key by its length, first and last character, usually at the first slot. The table is
// built at compile time.
template <class Record, std::size_t N>
class KeyTable {
 public:
  consteval explicit KeyTable(const std::array<Key<Record>, N>& keys)
      : keys_(keys), needed_(needed_keys(keys)) {
    for (std::size_t i = 0; i < N; ++i) {
      std::size_t slot = slot_of(keys[i].name);
      while (slots_[slot] != 0) slot = (slot + 1) % kSlots;
      slots_[slot] = static_cast<std::uint8_t>(i + 1);
    }
  }
  std::size_t needed() const { return needed_; }
  const Key<Record>* find(std::string_view name) const {
    if (name.empty()) return nullptr;
    for (std::size_t slot = slot_of(name); slots_[slot] != 0; slot = (slot + 1) % kSlots) {
      const Key<Record>& key = keys_[slots_[slot] - 1U];
      if (key.name == name) return &key;
    }
    return nullptr;
  }

 private:
  static constexpr std::size_t kSlots = 128;
  static_assert(N < kSlots / 2, "a search ends at an empty slot");

  static constexpr std::size_t slot_of(std::string_view name) {
    return (name.size() * 5 + static_cast<unsigned char>(name.front()) * 3U +
            static_cast<unsigned char>(name.back()) * 11U) % kSlots;
  }

  std::array<Key<Record>, N> keys_;
  std::size_t needed_;
  std::array<std::uint8_t, kSlots> slots_{};  // index into keys_ plus 1; 0 is empty
};

constexpr KeyTable kCpuTable(kCpuKeys);
constexpr KeyTable kMemoryTable(kMemoryKeys);
constexpr KeyTable kMemoryEventTable(kMemoryEventKeys);
constexpr KeyTable kCgroupEventTable(kCgroupEventKeys);
constexpr KeyTable kIoTable(kIoKeys);

// The number, if the kernel wrote its end and it is not below zero.
Counter whole(const Counter& number, bool ended) {
  return ended && number && *number < kNegative ? number : std::nullopt;
}

// Reads lines of "KEY NUMBER" that the kernel ended. If a key appears twice, the first number
// counts.
template <class Record, std::size_t N>
void scan_keys(std::string_view text, const KeyTable<Record, N>& keys, Record& record) {
  Cursor cursor(text);
  int digits = 0;
  std::size_t missing = keys.needed();  // scanning ends after the last one
  while (!cursor.at_end() && missing > 0) {
    const Key<Record>* key = keys.find(cursor.word());
    if (key && !(record.*(key->field)) && cursor.take(' ')) {
      const Counter number = cursor.number(digits);
      record.*(key->field) = whole(number, cursor.at_newline());
      if (record.*(key->field) && !key->optional) --missing;
    }
    cursor.skip_line();
  }
}

Counter kernel_bytes(const MemoryRecord& record) {
  const std::uint64_t sock = record.sock_bytes.value_or(0);
  if (record.kernel) return saturating_add(*record.kernel, sock);
  if (!record.kernel_stack && !record.slab) return std::nullopt;
  std::uint64_t sum = sock;
  for (const Counter& part : {record.kernel_stack, record.pagetables, record.percpu, record.slab})
    sum = saturating_add(sum, part.value_or(0));
  return sum;
}

// A percentage as the kernel prints it ("12.34"), converted to a ratio.
std::optional<double> scan_percent(Cursor& cursor) {
  int digits = 0;
  const Counter whole = cursor.number(digits);
  if (!whole || *whole > 100 || !cursor.take('.')) return std::nullopt;
  const Counter hundredths = cursor.number(digits);
  if (!hundredths || digits != 2 || !cursor.at_blank()) return std::nullopt;
  const std::uint64_t sum = *whole * 100 + *hundredths;
  return sum <= 10'000 ? std::optional(static_cast<double>(sum) / 10'000) : std::nullopt;
}

// "max", or a number.
Counter scan_quota(Cursor& cursor, bool unlimited) {
  int digits = 0;
  if (!unlimited) return cursor.number(digits);
  cursor.word();
  return std::nullopt;
}

std::optional<bool> as_flag(const Counter& number) {
  if (!number || *number > 1) return std::nullopt;
  return *number == 1;
}

PressureLine scan_pressure_line(Cursor& cursor) {
  PressureLine result;
  int digits = 0;
  while (cursor.take(' ')) {
    const std::string_view key = cursor.word();
    if (!cursor.take('=')) continue;
    if (key == "avg10") {
      result.avg10_ratio = scan_percent(cursor);
    } else if (key == "avg60") {
      result.avg60_ratio = scan_percent(cursor);
    } else if (key == "total") {
      const Counter number = cursor.number(digits);
      result.total_usec = whole(number, cursor.at_blank());
    }
    cursor.skip_word();
  }
  return result;
}

}  // namespace

CpuStat scan_cpu_stat(std::string_view text) {
  CpuStat result;
  scan_keys(text, kCpuTable, result);
  return result;
}

MemoryStat scan_memory_stat(std::string_view text) {
  MemoryRecord record;
  scan_keys(text, kMemoryTable, record);
  record.kernel_bytes = kernel_bytes(record);
  return record;
}

MemoryEvents scan_memory_events(std::string_view text) {
  MemoryEvents result;
  scan_keys(text, kMemoryEventTable, result);
  return result;
}

IoStat scan_io_stat(std::string_view text) {
  IoStat result{0, 0, 0, 0};
  Cursor cursor(text);
  int digits = 0;
  while (!cursor.at_end()) {
    const Key<IoStat>* key = kIoTable.find(cursor.word());
    if (key && cursor.take('=')) {
      const Counter number = cursor.number(digits);
      Counter& sum = result.*(key->field);
      if (cursor.at_end()) break;  // the number may be cut
      // One malformed number makes the whole sum unknown.
      const bool sound = sum && number && cursor.at_blank();
      sum = whole(sound ? Counter(saturating_add(*sum, *number)) : std::nullopt, true);
    }
    cursor.skip_word();
    if (!cursor.take(' ')) cursor.take('\n');
  }
  return result;
}

Pressure scan_pressure(std::string_view text) {
  Pressure result;
  Cursor cursor(text);
  while (!cursor.at_end()) {
    const std::string_view name = cursor.word();
    if (name == "some") result.some = scan_pressure_line(cursor);
    else if (name == "full") result.full = scan_pressure_line(cursor);
    cursor.skip_line();
  }
  return result;
}

std::optional<CpuMax> parse_cpu_max(std::string_view line) {
  Cursor cursor(line);
  int digits = 0;
  const bool unlimited = line.starts_with("max ");
  const Counter quota = scan_quota(cursor, unlimited);
  if (!cursor.take(' ') || (!quota && !unlimited)) return std::nullopt;
  const Counter period = cursor.number(digits);
  if (!cursor.at_end() || !period || *period == 0) return std::nullopt;
  return CpuMax{unlimited ? std::nullopt : std::optional(Microseconds{*quota}),
                Microseconds{*period}};
}

std::optional<CpuMax> scan_cpu_max(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  return parse_cpu_max(text.substr(0, text.size() - 1));
}

std::optional<MemoryLimit> parse_limit(std::string_view line) {
  if (line == "max") return MemoryLimit{};
  Cursor cursor(line);
  int digits = 0;
  const Counter number = cursor.number(digits);
  if (!number || !cursor.at_end()) return std::nullopt;
  return MemoryLimit{Bytes{*number}};
}

std::optional<MemoryLimit> scan_limit(std::string_view text) {
  if (!text.ends_with('\n')) return std::nullopt;
  return parse_limit(text.substr(0, text.size() - 1));
}

void scan_flat_keyed(std::string_view text, std::span<const std::string_view> names,
                     std::span<Counter> values) {
  Cursor cursor(text);
  int digits = 0;
  while (!cursor.at_end()) {
    const auto known = std::ranges::find(names, cursor.word());
    if (known != names.end() && cursor.take(' ')) {
      const Counter number = cursor.number(digits);
      if (const Counter value = whole(number, cursor.at_newline()))
        values[static_cast<std::size_t>(known - names.begin())] = value;
    }
    cursor.skip_line();
  }
}

Counter scan_number(std::string_view text) {
  Cursor cursor(text);
  int digits = 0;
  const Counter number = cursor.number(digits);
  return cursor.take('\n') && cursor.at_end() ? number : std::nullopt;
}

Counter scan_amount(std::string_view text) { return whole(scan_number(text), true); }

CgroupEvents scan_cgroup_events(std::string_view text) {
  EventsRecord record;
  scan_keys(text, kCgroupEventTable, record);
  return {as_flag(record.populated), as_flag(record.frozen)};
}

}  // namespace cgphase
