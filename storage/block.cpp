#include "storage/block.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/check.h"

namespace cgphase {
namespace {

constexpr char kFormat = 1;
constexpr std::size_t kLargestVarint = 10;  // bytes

// LEB128: seven bits per byte, lowest first. The end of what was written.
char* encode_varint(char* to, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = static_cast<char>(value | 0x80);
  *to++ = static_cast<char>(value);
  return to;
}

// Signed numbers near zero become small ones: 0, -1, 1, -2, ... are 0, 1, 2, 3.
constexpr std::uint64_t zigzag(std::uint64_t difference) {
  const auto signed_difference = static_cast<std::int64_t>(difference);
  return (difference << 1) ^ static_cast<std::uint64_t>(signed_difference >> 63);
}
constexpr std::uint64_t unzigzag(std::uint64_t value) { return (value >> 1) ^ (~(value & 1) + 1); }

// Reads numbers from the front of foreign bytes. sound() turns false at the first missing one.
class Cursor {
 public:
  explicit Cursor(std::string_view bytes) : rest_(bytes) {}
  bool at_end() const { return rest_.empty(); }
  bool sound() const { return sound_; }

  std::uint8_t byte() {
    if (rest_.empty()) {
      sound_ = false;
      return 0;
    }
    const auto value = static_cast<std::uint8_t>(rest_.front());
    rest_.remove_prefix(1);
    return value;
  }

  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t part = byte();
      value |= std::uint64_t{part & 0x7fU} << shift;
      if ((part & 0x80U) == 0) {
        if (shift == 63 && part > 1) sound_ = false;
        return value;
      }
    }
    sound_ = false;
    return 0;
  }

 private:
  std::string_view rest_;
  bool sound_ = true;
};
constexpr std::size_t kGroupColumns = 8;
constexpr std::size_t kGroups = (kColumnCount + kGroupColumns - 1) / kGroupColumns;

// The columns in order. Those that change with every reading come first, so that later bytes of the
// change bitmap stay zero and are not stored.
template <class S, class Visit>
[[gnu::always_inline]] inline void visit_busy(S& s, Visit& visit) {
  visit(s.cpu.usage_usec), visit(s.cpu.user_usec), visit(s.cpu.system_usec);
  visit(s.memory_current), visit(s.memory.anon_bytes), visit(s.memory.kernel_bytes);
  visit(s.memory.pgfault), visit(s.memory.inactive_anon_bytes);

  visit(s.memory.file_bytes), visit(s.memory.inactive_file_bytes);
  visit(s.memory.active_file_bytes), visit(s.memory.slab_reclaimable_bytes);
  visit(s.memory.slab_unreclaimable_bytes), visit(s.memory.sock_bytes);
  visit(s.io.read_bytes), visit(s.io.read_ios);

  visit(s.io.write_bytes), visit(s.io.write_ios), visit(s.cpu.nr_periods);
  visit(s.cpu.nr_throttled), visit(s.cpu.throttled_usec), visit(s.pids_current);
  visit(s.memory_peak), visit(s.memory.shmem_bytes);

  visit(s.cpu_pressure.some.total_usec), visit(s.cpu_pressure.full.total_usec);
  visit(s.memory_pressure.some.total_usec), visit(s.memory_pressure.full.total_usec);
  visit(s.io_pressure.some.total_usec), visit(s.io_pressure.full.total_usec);
}

template <class P, class Visit>
[[gnu::always_inline]] inline void visit_phase(P& phase, Visit& visit) {
  visit(phase.distance), visit(phase.margin), visit(phase.index), visit(phase.state);
}

template <class S, class Visit>
[[gnu::always_inline]] inline void visit_rare(S& s, Visit& visit) {
  const auto visit_averages = [&visit](auto& pressure) __attribute__((always_inline)) {
    visit(pressure.some.avg10_ratio), visit(pressure.some.avg60_ratio);
    visit(pressure.full.avg10_ratio), visit(pressure.full.avg60_ratio);
  };
  visit_averages(s.cpu_pressure), visit_averages(s.memory_pressure);
  visit_averages(s.io_pressure);

  visit(s.memory.unevictable_bytes), visit(s.memory.pgmajfault);
  visit(s.memory.workingset_refault_file), visit(s.memory.workingset_refault_anon);
  visit(s.memory.pgscan), visit(s.memory.pgsteal), visit(s.memory.pgscan_direct);
  visit(s.swap_current);

  visit(s.memory_events.low), visit(s.memory_events.high), visit(s.memory_events.max);
  visit(s.memory_events.oom), visit(s.memory_events.oom_kill);
  visit(s.populated), visit(s.frozen);

  visit(s.limits.cpu_max), visit(s.limits.cpu_max_burst), visit(s.limits.cpu_weight);
  visit(s.limits.memory_max), visit(s.limits.memory_high);
  visit(s.limits.memory_low), visit(s.limits.memory_min);
  visit(s.swap_max), visit(s.pids_max);
}

template <class P, class Visit>
[[gnu::always_inline]] inline void visit_surroundings(P& point, Visit& visit) {
  visit(point.original.cpu_max), visit(point.original.memory_max);
  visit(point.host.cpu_cores), visit(point.host.memory);
}

// New columns are appended, because a reader finds columns by position.
template <class S, class Visit>
[[gnu::always_inline]] inline void visit_senses(S& s, Visit& visit) {
  visit(s.run_queue.wait_usec), visit(s.run_queue.waits), visit(s.run_queue.longest_wait_usec);
  visit(s.run_queue.voluntary_switches), visit(s.run_queue.involuntary_switches);
  visit(s.network.receive_bytes), visit(s.network.receive_packets);
  visit(s.network.transmit_bytes), visit(s.network.transmit_packets);
  visit(s.network.tcp_retransmits);
  visit(s.block.bytes), visit(s.block.requests), visit(s.block.latency_usec);
  visit(s.gpu.utilisation_ratio), visit(s.gpu.memory_utilisation_ratio);
  visit(s.gpu.memory_bytes);
}

template <class P, class Visit>
[[gnu::always_inline]] inline void visit_point(P& point, Visit& visit) {
  visit_busy(point.sample, visit);
  visit_phase(point.phase, visit);
  visit_rare(point.sample, visit);
  visit_surroundings(point, visit);
  visit_senses(point.sample, visit);
  visit(point.peak_cpu_cores);
  visit(point.sample.memory.hugetlb_bytes), visit(point.clock_start_ms);
}

constexpr std::size_t kWordBits = 64;
static_assert(kColumnCount > kWordBits && kColumnCount <= 2 * kWordBits);

// All functions are inlined, so that each column's number is a constant for the compiler.
class Packer {
 public:
  // Writes to `values` and compares with `last`; both have kColumnCount entries.
  Packer(std::uint64_t* values, const std::uint64_t* last) : values_(values), last_(last) {}
  std::size_t columns() const { return next_; }
  const ColumnWords& present() const { return present_; }
  // Only present columns.
  const ColumnWords& changed() const { return changed_; }

  template <class Unit>
  [[gnu::always_inline]] void operator()(const std::optional<Unit>& unit) {
    if constexpr (requires { unit->value; })
      put(unit ? Number(unit->value) : std::nullopt);
    else
      put(unit ? Number(*unit) : std::nullopt);
  }
  [[gnu::always_inline]] void operator()(const std::optional<double>& ratio) {
    put(ratio ? Number(std::bit_cast<std::uint64_t>(*ratio)) : std::nullopt);
  }
  [[gnu::always_inline]] void operator()(const std::optional<MemoryLimit>& limit) {
    put_limit(limit.has_value(),
              limit && limit->bytes ? Number(limit->bytes->value) : std::nullopt);
  }
  [[gnu::always_inline]] void operator()(const std::optional<CpuMax>& limit) {
    put_limit(limit.has_value(),
              limit && limit->quota ? Number(limit->quota->value) : std::nullopt);
    put(limit ? Number(limit->period.value) : std::nullopt);
  }
  [[gnu::always_inline]] void operator()(double value) { put(std::bit_cast<std::uint64_t>(value)); }
  [[gnu::always_inline]] void operator()(Bytes value) { put(value.value); }
  [[gnu::always_inline]] void operator()(int value) {
    put(static_cast<std::uint64_t>(std::int64_t{value}));
  }
  [[gnu::always_inline]] void operator()(PhaseState state) {
    put(static_cast<std::uint64_t>(state));
  }

 private:
  using Number = std::optional<std::uint64_t>;
  [[gnu::always_inline]] void put(Number value) {
    CHECK_INVARIANT(next_ < kColumnCount);
    const std::uint64_t number = value.value_or(0);
    const bool differs = value.has_value() & (number != last_[next_]);
    present_[next_ / kWordBits] |= std::uint64_t{value.has_value()} << (next_ % kWordBits);
    changed_[next_ / kWordBits] |= std::uint64_t{differs} << (next_ % kWordBits);
    values_[next_++] = number;
  }
  [[gnu::always_inline]] void put_limit(bool exists, Number number) {
    put(exists ? Number(number ? 0 : 1) : std::nullopt);
    put(number);
  }
  std::uint64_t* values_;
  const std::uint64_t* last_;
  ColumnWords present_{}, changed_{};
  std::size_t next_ = 0;
};

class Unpacker {
 public:
  explicit Unpacker(const ColumnRow& row) : row_(row) {}
  bool sound() const { return sound_; }

  template <class Unit>
  void operator()(std::optional<Unit>& unit) {
    const Number number = take();
    if (!number) return;
    if constexpr (requires { unit->value; })
      unit = Unit{*number};
    else
      unit = static_cast<Unit>(*number);
  }
  void operator()(std::optional<double>& ratio) {
    if (const Number number = take()) ratio = std::bit_cast<double>(*number);
  }
  void operator()(std::optional<MemoryLimit>& limit) {
    bool exists = false;
    const Number number = take_limit(exists);
    if (!exists) return;
    limit.emplace();
    if (number) limit->bytes = Bytes{*number};
  }
  void operator()(std::optional<CpuMax>& limit) {
    bool exists = false;
    const Number number = take_limit(exists);
    const Number period = take();
    sound_ = sound_ && exists == period.has_value();
    if (!exists || !period) return;
    limit.emplace();
    if (number) limit->quota = Microseconds{*number};
    limit->period = Microseconds{*period};
  }
  void operator()(double& value) { value = std::bit_cast<double>(take().value_or(0)); }
  void operator()(Bytes& value) { value.value = take().value_or(0); }
  void operator()(int& value) { value = static_cast<int>(take().value_or(0)); }
  void operator()(PhaseState& state) {
    const std::uint64_t number = take().value_or(0);
    sound_ = sound_ && number <= static_cast<std::uint64_t>(PhaseState::known);
    if (sound_) state = static_cast<PhaseState>(number);
  }

 private:
  using Number = std::optional<std::uint64_t>;
  Number take() {
    const std::size_t column = next_++;
    if (!row_.present[column]) return std::nullopt;
    return row_.values[column];
  }
  // A limit is either "max" or a number; an absent limit is neither.
  Number take_limit(bool& exists) {
    const Number is_max = take();
    const Number number = take();
    exists = is_max.has_value();
    sound_ = sound_ && number.has_value() == (exists && *is_max == 0);
    return number;
  }
  const ColumnRow& row_;
  std::size_t next_ = 0;
  bool sound_ = true;
};

// Including the header of a block: format, number of columns, time.
constexpr std::size_t kLargestRow = 1 + kLargestVarint * (3 + kColumnCount) + 2 * kGroups;

std::bitset<kColumnCount> bits_of(const ColumnWords& words) {
  const std::bitset<kColumnCount> low(words[0]), high(words[1]);
  return high << kWordBits | low;
}

// The bits of a group's columns.
std::uint8_t bits_of(const ColumnWords& words, std::size_t group) {
  constexpr std::size_t kWordGroups = kWordBits / kGroupColumns;
  return static_cast<std::uint8_t>(words[group / kWordGroups] >>
                                   (group % kWordGroups * kGroupColumns));
}

// Bit 0 of the mask: the set of present columns changed. Bit g + 1: values in group g changed.
void read_row(Cursor& cursor, std::size_t columns, ColumnRow& row) {
  const std::size_t groups = (columns + kGroupColumns - 1) / kGroupColumns;
  const std::uint64_t mask = cursor.varint();
  for (std::size_t group = 0; (mask & 1) != 0 && group < groups; ++group) {
    const unsigned bits = cursor.byte();
    for (std::size_t bit = 0; bit < kGroupColumns && group * 8 + bit < columns; ++bit)
      row.present[group * kGroupColumns + bit] = (bits >> bit & 1U) != 0;
  }
  std::array<unsigned, kGroups> changed{};
  for (std::size_t group = 0; group < groups; ++group)
    if ((mask >> (group + 1) & 1) != 0) changed[group] = cursor.byte();
  for (std::size_t column = 0; column < columns; ++column)
    if ((changed[column / kGroupColumns] >> (column % kGroupColumns) & 1U) != 0)
      row.values[column] += unzigzag(cursor.varint());
}

std::unexpected<Error> damaged(const char* why) {
  return failure(ErrorKind::io, std::string("stored block: ") + why);
}

}  // namespace

ColumnRow to_columns(const HistoryPoint& point) {
  ColumnRow row;
  const ColumnRow none;
  Packer pack(row.values.data(), none.values.data());
  visit_point(point, pack);
  CHECK_INVARIANT(pack.columns() == kColumnCount);
  row.present = bits_of(pack.present());
  return row;
}

bool from_columns(const ColumnRow& row, HistoryPoint& point) {
  Unpacker unpack(row);
  visit_point(point, unpack);
  return unpack.sound();
}

bool BlockWriter::accepts(WallTime time) const {
  if (count_ == 0) return true;
  return count_ < kBlockPoints && time.time_since_epoch().count() >= last_ns_;
}

void BlockWriter::add(const HistoryPoint& point) {
  CHECK_INVARIANT(accepts(point.time));
  const std::int64_t time_ns = point.time.time_since_epoch().count();
  std::array<char, kLargestRow> bytes;
  char* end = bytes.data();
  if (count_ == 0) {
    *end++ = kFormat;
    end = encode_varint(end, kColumnCount);
    end = encode_varint(end, zigzag(static_cast<std::uint64_t>(time_ns)));
    first_ns_ = time_ns;
  } else {
    // Ticks come at a steady pace, so the change of their distance is a small number.
    const auto step_ns = static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(last_ns_);
    end = encode_varint(end, zigzag(step_ns - step_ns_));
    step_ns_ = step_ns;
  }
  end = put_row(end, point);
  payload_.append(bytes.data(), end);
  last_ns_ = time_ns;
  ++count_;
}

// It has no branch per column, because most columns do not change. An absent column keeps its last
// value, because it may return.
char* BlockWriter::put_row(char* end, const HistoryPoint& point) {
  std::array<std::uint64_t, kColumnCount> values;
  Packer pack(values.data(), last_.data());
  visit_point(point, pack);
  CHECK_INVARIANT(pack.columns() == kColumnCount);
  const ColumnWords present = pack.present(), changed = pack.changed();
  std::uint64_t mask = present != present_ ? 1 : 0;
  for (std::size_t group = 0; group < kGroups; ++group)
    mask |= std::uint64_t{bits_of(changed, group) != 0} << (group + 1);
  end = encode_varint(end, mask);
  if ((mask & 1) != 0)
    for (std::size_t group = 0; group < kGroups; ++group)
      *end++ = static_cast<char>(bits_of(present, group));
  for (std::uint64_t left = mask >> 1; left != 0; left &= left - 1)
    *end++ = static_cast<char>(bits_of(changed, static_cast<std::size_t>(std::countr_zero(left))));
  for (std::size_t word = 0; word < changed.size(); ++word)
    for (std::uint64_t left = changed[word]; left != 0; left &= left - 1) {
      const std::size_t column = word * kWordBits +
                                 static_cast<std::size_t>(std::countr_zero(left));
      end = encode_varint(end, zigzag(values[column] - last_[column]));
      last_[column] = values[column];
    }
  present_ = present;
  return end;
}

Result<std::vector<HistoryPoint>> read_block(std::string_view payload, CgroupId id) {
  Cursor cursor(payload);
  if (cursor.byte() != kFormat) return damaged("unknown format");
  const std::uint64_t columns = cursor.varint();
  if (columns > kColumnCount) return damaged("more columns than this version knows");
  std::uint64_t time_ns = unzigzag(cursor.varint()), step_ns = 0;
  std::vector<HistoryPoint> points;
  points.reserve(kBlockPoints);
  ColumnRow row;
  for (;;) {
    read_row(cursor, columns, row);
    HistoryPoint& point = points.emplace_back();
    point.time = WallTime(std::chrono::nanoseconds(static_cast<std::int64_t>(time_ns)));
    if (!cursor.sound()) return damaged("cut off");
    if (!from_columns(row, point)) return damaged("contradicts itself");
    point.sample.id = id;
    if (cursor.at_end()) return points;
    if (points.size() == kBlockPoints) return damaged("too many points");
    step_ns += unzigzag(cursor.varint());
    time_ns += step_ns;
  }
}

}  // namespace cgphase
