#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>

#include "base/text.h"
#include "traces/text_lines.h"
#include "traces/trace.h"
#include "traces/trace_columns.h"

namespace cgphase {
namespace {

constexpr std::string_view kLeadingColumns =
    "timestamp,service,pod.id,cpu.num.cores,cpu.usage,cpu.usage.cores,cpu.usage.pct,"
    "cpu.usage.pct.container.requested,mem.current,mem.limit,mem.usage.pct,mem.working.set,"
    "interval,cpu.limit.cores,host.memory";
constexpr std::string_view kTrailingColumns =
    "cpu.limit.now.cores,mem.limit.now,cpu.max.burst.usec,cpu.weight,memory.high,memory.low,"
    "memory.min,memory.swap.max,pids.max,phase,label,label.detail";

// Appends fields, separated by commas.
class Row {
 public:
  explicit Row(std::string& out) : out_(out) {}

  void add(std::string_view text) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += csv_field(text);
  }
  // Writes the shortest decimal that reads back as the same number.
  template <class Number>
  void add(const std::optional<Number>& value) {
    if (!value) return add(std::string_view());
    char text[40];
    const auto end = std::to_chars(text, text + sizeof text, *value).ptr;
    add(std::string_view(text, static_cast<std::size_t>(end - text)));
  }
  // Writes a limit as the kernel's file does: a number, or that there is no limit.
  void add_limit(const std::optional<MemoryLimit>& limit) {
    if (limit && !limit->bytes) return add(std::string_view(kMaxWord));
    add(limit ? std::optional(limit->bytes->value) : std::nullopt);
  }

 private:
  std::string& out_;
  bool first_ = true;
};

// Absent if the reader would ignore it. The kernel shows some negative numbers as 2^64 minus their
// amount.
Counter possible(const Counter& value, Quantity quantity) {
  return value && *value <= largest(quantity) ? value : std::nullopt;
}

std::optional<std::uint64_t> bytes_of(const std::optional<Bytes>& bytes) {
  return bytes ? std::optional(bytes->value) : std::nullopt;
}

// Absent if `whole` is unknown, which is 0.
std::optional<double> ratio(std::optional<double> part, double whole, double scale) {
  if (!part || !(whole > 0)) return std::nullopt;
  return *part / whole * scale;
}

// Nanoseconds of CPU since the previous sample; absent if there is none or the counter fell.
std::optional<std::uint64_t> cpu_nanoseconds(const TraceRecord& record) {
  if (record.previous == nullptr || record.previous->id != record.sample->id) return std::nullopt;
  const Counter now = record.sample->cpu.usage_usec, then = record.previous->cpu.usage_usec;
  if (!now || !then || *now < *then) return std::nullopt;
  constexpr std::uint64_t kMostUsec = std::numeric_limits<std::uint64_t>::max() / 1000;
  return *now - *then <= kMostUsec ? std::optional((*now - *then) * 1000) : std::nullopt;
}

// AI4DL's working set: memory in use without the inactive file pages.
std::optional<std::uint64_t> working_set(const Sample& sample) {
  const Counter current = possible(bytes_of(sample.memory_current), Quantity::memory);
  if (!current) return std::nullopt;
  const Counter idle = possible(sample.memory.inactive_file_bytes, Quantity::memory);
  return *current - std::min(*current, idle.value_or(0));
}

template <class Integer>
std::optional<double> real(const std::optional<Integer>& value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}

std::string identity(const ContainerInfo& container) {
  const std::string& id = container.engine_id.empty() ? container.path : container.engine_id;
  return escape_name(id.empty() ? container.name : id);
}

// Seconds since the epoch, with microsecond resolution.
double timestamp(WallTime time) {
  const auto usec = std::chrono::duration_cast<std::chrono::microseconds>(time.time_since_epoch());
  return static_cast<double>(usec.count()) / 1e6;
}

void add_cpu(Row& row, const TraceRecord& record) {
  const double host_cores = record.host.cpu_cores;
  const std::optional<std::uint64_t> nanoseconds = cpu_nanoseconds(record);
  const std::optional<double> cores =
      ratio(real(nanoseconds), record.interval_seconds, 1e-9);
  const double limit_cores = record.original.cpu_cores().value_or(Cores{0}).value;
  row.add(host_cores > 0 ? std::optional(host_cores) : std::nullopt);
  row.add(nanoseconds);
  row.add(cores);
  row.add(ratio(cores, host_cores, 100));
  row.add(ratio(cores, limit_cores, 100));
}

void add_memory(Row& row, const TraceRecord& record) {
  const std::optional<std::uint64_t> limit = bytes_of(record.original.memory_bytes());
  const std::optional<std::uint64_t> in_use = working_set(*record.sample);
  row.add(possible(bytes_of(record.sample->memory_current), Quantity::memory));
  row.add(limit);
  row.add(ratio(real(in_use), static_cast<double>(limit.value_or(0)), 100));
  row.add(in_use);
}

// The limits in force when the row was read, including those that cgphase set.
void add_now(Row& row, const TraceRecord& record) {
  const Sample& sample = *record.sample;
  const Limits& limits = sample.limits;
  const std::optional<Cores> cores = limits.cpu_cores();
  row.add(cores ? std::optional(cores->value) : std::nullopt);
  row.add(bytes_of(limits.memory_bytes()));
  row.add(limits.cpu_max_burst ? std::optional(limits.cpu_max_burst->value) : std::nullopt);
  row.add(limits.cpu_weight);
  for (const auto& limit : {limits.memory_high, limits.memory_low, limits.memory_min,
                            sample.swap_max, sample.pids_max})
    row.add_limit(limit);
  row.add(record.phase);
}

}  // namespace

void write_trace_header(std::string& out) {
  out += kLeadingColumns;
  for (const TraceColumn& column : trace_columns()) (out += ',') += column.name;
  for (const TraceRatio& column : trace_ratios()) (out += ',') += column.name;
  (out += ',') += kTrailingColumns;
  out += '\n';
}

void write_trace_row(std::string& out, const TraceRecord& record) {
  const ContainerInfo& container = *record.container;
  const std::optional<Cores> cpu_limit = record.original.cpu_cores();
  Row row(out);
  row.add(std::optional(timestamp(record.time)));
  row.add(escape_name(container.image.empty() ? container.name : container.image));
  row.add(identity(container));
  add_cpu(row, record);
  add_memory(row, record);
  row.add(record.previous != nullptr ? std::optional(record.interval_seconds) : std::nullopt);
  row.add(cpu_limit ? std::optional(cpu_limit->value) : std::nullopt);
  row.add(record.host.memory.value > 0 ? std::optional(record.host.memory.value) : std::nullopt);
  for (const TraceColumn& column : trace_columns())
    row.add(possible(column.get(*record.sample), column.quantity));
  for (const TraceRatio& column : trace_ratios()) row.add(column.get(*record.sample));
  add_now(row, record);
  row.add(record.label);
  row.add(record.label_detail);
  out += '\n';
}

}  // namespace cgphase
