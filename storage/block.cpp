#include "storage/block.h"

#include <bit>
#include <optional>

#include "base/check.h"

namespace cgphase {
namespace {

constexpr std::size_t kGroupColumns = 8;
constexpr std::size_t kGroups = (kColumnCount + kGroupColumns - 1) / kGroupColumns;
constexpr std::size_t kLargestVarint = 10;  // bytes
// Including the header of a block: number of columns, time.
constexpr std::size_t kLargestRow = kLargestVarint * (3 + kColumnCount) + kGroups;

// LEB128: seven bits per byte, lowest first. Returns the end of the written bytes.
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

// The columns in order. Those that change with most readings share groups, so that few groups of a
// row have changes. New columns are appended, because a reader finds columns by position.
template <class Point, class Visit>
void visit_point(Point& point, Visit& visit) {
  const auto each = [&visit](auto&... fields) { (visit(fields), ...); };
  auto& s = point.sample;
  auto& m = s.memory;
  each(s.cpu.usage_usec, s.cpu.user_usec, s.cpu.system_usec, s.memory_current, m.anon_bytes,
       m.kernel_bytes, m.pgfault, m.inactive_anon_bytes);
  each(m.file_bytes, m.inactive_file_bytes, m.active_file_bytes, m.slab_reclaimable_bytes,
       m.slab_unreclaimable_bytes, m.sock_bytes, s.io.read_bytes, s.io.read_ios);
  each(s.io.write_bytes, s.io.write_ios, s.cpu.nr_periods, s.cpu.nr_throttled,
       s.cpu.throttled_usec, s.pids_current, s.memory_peak, m.shmem_bytes);
  for (auto* pressure : {&s.cpu_pressure, &s.memory_pressure, &s.io_pressure})
    each(pressure->some.total_usec, pressure->full.total_usec);
  each(point.phase.distance, point.phase.margin, point.phase.index, point.phase.state);
  for (auto* pressure : {&s.cpu_pressure, &s.memory_pressure, &s.io_pressure})
    each(pressure->some.avg10_ratio, pressure->some.avg60_ratio, pressure->full.avg10_ratio,
         pressure->full.avg60_ratio);
  each(m.unevictable_bytes, m.pgmajfault, m.workingset_refault_file, m.workingset_refault_anon,
       m.pgscan, m.pgsteal, m.pgscan_direct, s.swap_current);
  each(s.memory_events.low, s.memory_events.high, s.memory_events.max, s.memory_events.oom,
       s.memory_events.oom_kill, s.populated, s.frozen);
  each(s.limits.cpu_max, s.limits.cpu_max_burst, s.limits.cpu_weight, s.limits.memory_max,
       s.limits.memory_high, s.limits.memory_low, s.limits.memory_min, s.swap_max, s.pids_max);
  each(point.original.cpu_max, point.original.memory_max, point.host.cpu_cores, point.host.memory);
  each(s.run_queue.wait_usec, s.run_queue.waits, s.run_queue.longest_wait_usec,
       s.run_queue.voluntary_switches, s.run_queue.involuntary_switches);
  each(s.network.receive_bytes, s.network.receive_packets, s.network.transmit_bytes,
       s.network.transmit_packets, s.network.tcp_retransmits);
  each(s.block.bytes, s.block.requests, s.block.latency_usec);
  each(s.gpu.utilisation_ratio, s.gpu.memory_utilisation_ratio, s.gpu.memory_bytes);
  each(point.peak_cpu_cores, m.hugetlb_bytes, point.clock_start_ms);
}

// A field is a number. An absent one is 0, so others are one higher. A limit also has "max". The
// two highest numbers, which no kernel file has, are not kept.
class Packer {
 public:
  explicit Packer(Columns& columns) : next_(columns.data()) {}
  const std::uint64_t* end() const { return next_; }

  template <class Value>
  void operator()(const std::optional<Value>& value) {
    *next_++ = value ? number(*value) + 1 : 0;
  }
  void operator()(const std::optional<MemoryLimit>& limit) {
    *next_++ = !limit ? 0 : limit->bytes ? limit->bytes->value + 2 : 1;
  }
  void operator()(const std::optional<CpuMax>& limit) {
    *next_++ = !limit ? 0 : limit->quota ? limit->quota->value + 2 : 1;
    *next_++ = limit ? limit->period.value : 0;
  }
  template <class Value>
  void operator()(Value value) {
    *next_++ = number(value);
  }

 private:
  template <class Value>
  static std::uint64_t number(Value value) {
    if constexpr (std::is_same_v<Value, double>) return std::bit_cast<std::uint64_t>(value);
    else if constexpr (requires { value.value; }) return value.value;
    else return static_cast<std::uint64_t>(value);
  }
  std::uint64_t* next_;
};

class Unpacker {
 public:
  explicit Unpacker(const Columns& columns) : next_(columns.data()) {}

  template <class Value>
  void operator()(std::optional<Value>& value) {
    if (const std::uint64_t number = *next_++; number > 0) set(number - 1, value.emplace());
  }
  void operator()(std::optional<MemoryLimit>& limit) {
    const std::uint64_t number = *next_++;
    if (number > 0) limit.emplace();
    if (number > 1) limit->bytes = Bytes{number - 2};
  }
  void operator()(std::optional<CpuMax>& limit) {
    const std::uint64_t number = *next_++, period = *next_++;
    if (number > 0) limit.emplace().period = Microseconds{period};
    if (number > 1) limit->quota = Microseconds{number - 2};
  }
  template <class Value>
  void operator()(Value& value) {
    set(*next_++, value);
  }

 private:
  template <class Value>
  static void set(std::uint64_t number, Value& value) {
    if constexpr (std::is_same_v<Value, double>) value = std::bit_cast<double>(number);
    else if constexpr (requires { value.value; }) value.value = number;
    else value = static_cast<Value>(number);
  }
  const std::uint64_t* next_;
};

bool from_columns(const Columns& columns, HistoryPoint& point) {
  Unpacker unpack(columns);
  visit_point(point, unpack);
  return point.phase.state <= PhaseState::known;
}

// Bit g of the mask: values in group g changed.
void read_row(Cursor& cursor, std::size_t columns, Columns& row) {
  const std::uint64_t mask = cursor.varint();
  std::array<unsigned, kGroups> changed{};
  for (std::size_t group = 0; group < kGroups; ++group)
    if ((mask >> group & 1) != 0) changed[group] = cursor.byte();
  for (std::size_t column = 0; column < columns; ++column)
    if ((changed[column / kGroupColumns] >> (column % kGroupColumns) & 1) != 0)
      row[column] += unzigzag(cursor.varint());
}

std::unexpected<Error> damaged(const char* what) {
  return failure(ErrorKind::io, std::string("a block of samples is damaged: ") + what);
}

}  // namespace

Columns to_columns(const HistoryPoint& point) {
  Columns columns;
  Packer pack(columns);
  visit_point(point, pack);
  CHECK_INVARIANT(pack.end() == columns.data() + columns.size());
  return columns;
}

bool BlockWriter::accepts(WallTime time) const {
  return count_ == 0 || (count_ < kBlockPoints && time.time_since_epoch().count() >= last_ns_);
}

void BlockWriter::add(const HistoryPoint& point) {
  CHECK_INVARIANT(accepts(point.time));
  const std::int64_t time_ns = point.time.time_since_epoch().count();
  std::array<char, kLargestRow> bytes;
  char* end = bytes.data();
  if (count_ == 0) {
    end = encode_varint(end, kColumnCount);
    end = encode_varint(end, zigzag(static_cast<std::uint64_t>(time_ns)));
    first_ns_ = time_ns;
  } else {
    // Ticks come at a steady pace, so the change of their distance is a small number.
    const auto step_ns = static_cast<std::uint64_t>(time_ns) - static_cast<std::uint64_t>(last_ns_);
    end = encode_varint(end, zigzag(step_ns - step_ns_));
    step_ns_ = step_ns;
  }
  end = put_row(end, to_columns(point));
  payload_.append(bytes.data(), end);
  last_ns_ = time_ns;
  ++count_;
}

char* BlockWriter::put_row(char* end, const Columns& columns) {
  std::array<unsigned, kGroups> changed{};
  for (std::size_t column = 0; column < kColumnCount; ++column)
    changed[column / kGroupColumns] |= unsigned{columns[column] != last_[column]}
                                       << (column % kGroupColumns);
  std::uint64_t mask = 0;
  for (std::size_t group = 0; group < kGroups; ++group)
    mask |= std::uint64_t{changed[group] != 0} << group;
  end = encode_varint(end, mask);
  for (const unsigned bits : changed)
    if (bits != 0) *end++ = static_cast<char>(bits);
  for (std::size_t group = 0; group < kGroups; ++group)
    for (unsigned left = changed[group]; left != 0; left &= left - 1) {
      const std::size_t column =
          group * kGroupColumns + static_cast<std::size_t>(std::countr_zero(left));
      end = encode_varint(end, zigzag(columns[column] - last_[column]));
    }
  last_ = columns;
  return end;
}

Result<std::vector<HistoryPoint>> read_block(std::string_view payload, CgroupId id) {
  Cursor cursor(payload);
  const std::uint64_t columns = cursor.varint();
  if (columns > kColumnCount) return damaged("more columns than this version knows");
  std::uint64_t time_ns = unzigzag(cursor.varint()), step_ns = 0;
  std::vector<HistoryPoint> points;
  points.reserve(kBlockPoints);
  Columns row{};
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
