#include "protocol/history.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/text.h"
#include "collectors/sample.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr const char* kMaxWord = "max";
constexpr std::size_t kMostColumns = 256;

// The columns in the order of the wire, each with its name.
template <class S, class Visit>
void visit_cpu(S& s, Visit& visit) {
  visit("cpu.usage_usec", s.cpu.usage_usec);
  visit("cpu.user_usec", s.cpu.user_usec);
  visit("cpu.system_usec", s.cpu.system_usec);
  visit("cpu.nr_periods", s.cpu.nr_periods);
  visit("cpu.nr_throttled", s.cpu.nr_throttled);
  visit("cpu.throttled_usec", s.cpu.throttled_usec);
  visit("pids_current", s.pids_current);
  visit("pids_max", s.pids_max);
  visit("io.read_bytes", s.io.read_bytes);
  visit("io.write_bytes", s.io.write_bytes);
  visit("io.read_ios", s.io.read_ios);
  visit("io.write_ios", s.io.write_ios);
  visit("populated", s.populated);
  visit("frozen", s.frozen);
}

template <class S, class Visit>
void visit_memory(S& s, Visit& visit) {
  visit("memory_current", s.memory_current);
  visit("memory_peak", s.memory_peak);
  visit("swap_current", s.swap_current);
  visit("swap_max", s.swap_max);
  visit("memory.anon_bytes", s.memory.anon_bytes);
  visit("memory.file_bytes", s.memory.file_bytes);
  visit("memory.shmem_bytes", s.memory.shmem_bytes);
  visit("memory.unevictable_bytes", s.memory.unevictable_bytes);
  visit("memory.hugetlb_bytes", s.memory.hugetlb_bytes);
  visit("memory.kernel_bytes", s.memory.kernel_bytes);
  visit("memory.slab_reclaimable_bytes", s.memory.slab_reclaimable_bytes);
  visit("memory.slab_unreclaimable_bytes", s.memory.slab_unreclaimable_bytes);
  visit("memory.sock_bytes", s.memory.sock_bytes);
  visit("memory.inactive_file_bytes", s.memory.inactive_file_bytes);
  visit("memory.active_file_bytes", s.memory.active_file_bytes);
  visit("memory.inactive_anon_bytes", s.memory.inactive_anon_bytes);
  visit("memory.pgfault", s.memory.pgfault);
  visit("memory.pgmajfault", s.memory.pgmajfault);
  visit("memory.workingset_refault_file", s.memory.workingset_refault_file);
  visit("memory.workingset_refault_anon", s.memory.workingset_refault_anon);
  visit("memory.pgscan", s.memory.pgscan);
  visit("memory.pgsteal", s.memory.pgsteal);
  visit("memory.pgscan_direct", s.memory.pgscan_direct);
  visit("memory_events.low", s.memory_events.low);
  visit("memory_events.high", s.memory_events.high);
  visit("memory_events.max", s.memory_events.max);
  visit("memory_events.oom", s.memory_events.oom);
  visit("memory_events.oom_kill", s.memory_events.oom_kill);
}

template <class L, class Visit>
void visit_line(const std::string& name, L& line, Visit& visit) {
  visit((name + ".avg10_ratio").c_str(), line.avg10_ratio);
  visit((name + ".avg60_ratio").c_str(), line.avg60_ratio);
  visit((name + ".total_usec").c_str(), line.total_usec);
}

template <class S, class Visit>
void visit_pressure(S& s, Visit& visit) {
  visit_line("cpu_pressure.some", s.cpu_pressure.some, visit);
  visit_line("cpu_pressure.full", s.cpu_pressure.full, visit);
  visit_line("memory_pressure.some", s.memory_pressure.some, visit);
  visit_line("memory_pressure.full", s.memory_pressure.full, visit);
  visit_line("io_pressure.some", s.io_pressure.some, visit);
  visit_line("io_pressure.full", s.io_pressure.full, visit);
}

template <class S, class Visit>
void visit_senses(S& s, Visit& visit) {
  visit("run_queue.wait_usec", s.run_queue.wait_usec);
  visit("run_queue.waits", s.run_queue.waits);
  visit("run_queue.longest_wait_usec", s.run_queue.longest_wait_usec);
  visit("run_queue.voluntary_switches", s.run_queue.voluntary_switches);
  visit("run_queue.involuntary_switches", s.run_queue.involuntary_switches);
  visit("network.receive_bytes", s.network.receive_bytes);
  visit("network.receive_packets", s.network.receive_packets);
  visit("network.transmit_bytes", s.network.transmit_bytes);
  visit("network.transmit_packets", s.network.transmit_packets);
  visit("network.tcp_retransmits", s.network.tcp_retransmits);
  visit("block.bytes", s.block.bytes);
  visit("block.requests", s.block.requests);
  visit("block.latency_usec", s.block.latency_usec);
  visit("gpu.utilisation_ratio", s.gpu.utilisation_ratio);
  visit("gpu.memory_utilisation_ratio", s.gpu.memory_utilisation_ratio);
  visit("gpu.memory_bytes", s.gpu.memory_bytes);
}

template <class L, class Visit>
void visit_limits(L& limits, Visit& visit) {
  visit("limits.cpu_max", limits.cpu_max);
  visit("limits.cpu_max_burst_usec", limits.cpu_max_burst);
  visit("limits.cpu_weight", limits.cpu_weight);
  visit("limits.memory_max", limits.memory_max);
  visit("limits.memory_high", limits.memory_high);
  visit("limits.memory_low", limits.memory_low);
  visit("limits.memory_min", limits.memory_min);
}

template <class P, class Visit>
void visit_point(P& point, Visit& visit) {
  visit("time_ns", point.time);
  visit_cpu(point.sample, visit);
  visit_memory(point.sample, visit);
  visit_pressure(point.sample, visit);
  visit_limits(point.sample.limits, visit);
  visit_senses(point.sample, visit);
  visit("phase.state", point.phase.state);
  visit("phase.index", point.phase.index);
  visit("phase.distance", point.phase.distance);
  visit("phase.margin", point.phase.margin);
  visit("original.cpu_max", point.original.cpu_max);
  visit("original.memory_max", point.original.memory_max);
  visit("host.cpu_cores", point.host.cpu_cores);
  visit("host.memory_bytes", point.host.memory);
  visit("peak_cpu_cores", point.peak_cpu_cores);
  visit("clock_start_ms", point.clock_start_ms);
}

json json_of(WallTime time) { return time.time_since_epoch().count(); }
json json_of(Bytes bytes) { return bytes.value; }
json json_of(Microseconds time) { return time.value; }
json json_of(PhaseState state) { return to_string(state); }
json json_of(const MemoryLimit& limit) { return limit.bytes ? json(limit.bytes->value) : kMaxWord; }
json json_of(const CpuMax& limit) {
  return {limit.quota ? json(limit.quota->value) : json(kMaxWord), limit.period.value};
}
template <class Number>
  requires std::is_arithmetic_v<Number>
json json_of(Number value) { return value; }
template <class T>
json json_of(const std::optional<T>& value) { return value ? json_of(*value) : json(); }

// Returns false if the JSON is not such a value. The caller has excluded null.
template <class Integer>
  requires std::is_integral_v<Integer> && (!std::is_same_v<Integer, bool>)
bool take(const json& from, Integer& value) {
  if (!from.is_number_integer()) return false;
  if (from.is_number_unsigned() && !std::in_range<Integer>(from.get<std::uint64_t>())) return false;
  if (!from.is_number_unsigned() && !std::in_range<Integer>(from.get<std::int64_t>())) return false;
  value = from.get<Integer>();
  return true;
}
bool take(const json& from, bool& value) {
  if (!from.is_boolean()) return false;
  value = from.get<bool>();
  return true;
}
bool take(const json& from, double& value) {
  if (!from.is_number()) return false;
  value = from.get<double>();
  return std::isfinite(value);
}
bool take(const json& from, WallTime& time) {
  std::int64_t ns = 0;
  if (!take(from, ns)) return false;
  time = WallTime(std::chrono::nanoseconds(ns));
  return true;
}
bool take(const json& from, Bytes& bytes) { return take(from, bytes.value); }
bool take(const json& from, Microseconds& time) { return take(from, time.value); }
bool take(const json& from, PhaseState& state) {
  for (const PhaseState known :
       {PhaseState::not_enough_history, PhaseState::unknown, PhaseState::known})
    if (from == to_string(known)) {
      state = known;
      return true;
    }
  return false;
}
bool take(const json& from, MemoryLimit& limit) {
  if (from == kMaxWord) return true;
  limit.bytes.emplace();
  return take(from, *limit.bytes);
}
bool take(const json& from, CpuMax& limit) {
  if (!from.is_array() || from.size() != 2 || !take(from[1], limit.period)) return false;
  if (from[0] == kMaxWord) return true;
  limit.quota.emplace();
  return take(from[0], *limit.quota);
}
template <class T>
bool take(const json& from, std::optional<T>& value) { return take(from, value.emplace()); }

class Encoder {
 public:
  template <class Value>
  void operator()(const char*, const Value& value) { row_.push_back(json_of(value)); }
  json take_row() { return std::exchange(row_, json::array()); }

 private:
  json row_ = json::array();
};

class Names {
 public:
  template <class Value>
  void operator()(const char* name, const Value&) { names_.push_back(name); }
  json names_ = json::array();
};

// Fills a point from a row. `places` has the index in the row of each known column, in order.
class Decoder {
 public:
  Decoder(const json& row, std::span<const std::size_t> places) : row_(row), places_(places) {}
  bool sound() const { return sound_; }

  template <class Value>
  void operator()(const char*, Value& value) {
    const std::size_t place = places_[next_++];
    if (place >= row_.size() || row_[place].is_null()) return;
    sound_ = take(row_[place], value) && sound_;
  }

 private:
  const json& row_;
  std::span<const std::size_t> places_;
  std::size_t next_ = 0;
  bool sound_ = true;
};

json column_names() {
  Names names;
  const HistoryPoint none{};
  visit_point(none, names);
  return std::move(names.names_);
}

std::unexpected<Error> bad(const char* why) {
  return failure(ErrorKind::invalid, std::string("a page of the history: ") + why);
}

// A value that is not a number, a word or null becomes its JSON text. cpu.max is a list.
SqlValue plain_value(const json& value) {
  if (value.is_null()) return {};
  if (value.is_boolean()) return std::int64_t{value.get<bool>()};
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array() && value.size() == 2 && value[1].is_number_integer())
    return (value[0].is_string() ? value[0].get<std::string>() : value[0].dump()) + " " +
           value[1].dump();
  return value.dump();
}

std::string text_at(const json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return {};
  return unescape_name(found->get_ref<const std::string&>());
}

std::vector<HistoryRow> rows_of(std::span<const HistoryPoint> points) {
  std::vector<HistoryRow> rows;
  const HistoryPoint* previous = nullptr;
  for (const HistoryPoint& point : points) {
    HistoryRow row{.time = point.time, .phase = point.phase, .limits = point.sample.limits};
    if (const auto need = memory_need(point.sample)) row.memory_need_bytes = need->value;
    if (point.sample.memory_current) row.memory_current_bytes = point.sample.memory_current->value;
    const Counter now = point.sample.cpu.usage_usec;
    const Counter before = previous != nullptr ? previous->sample.cpu.usage_usec : std::nullopt;
    const double seconds = previous != nullptr ? seconds_between(*previous, point) : 0;
    if (const Counter used = growth(now, before); used && seconds > 0)
      row.cpu_cores = static_cast<double>(*used) / 1e6 / seconds;
    if (row.cpu_cores && point.host.cpu_cores > 0)
      row.cpu_cores = std::min(*row.cpu_cores, point.host.cpu_cores);
    rows.push_back(std::move(row));
    previous = &point;
  }
  return rows;
}

HistoryReply run_reply(const StoredRecord& run) {
  HistoryReply reply{.container = run.stored.container};
  reply.record = run.record;
  reply.first_seen = run.stored.first_seen;
  return reply;
}

}  // namespace

json history_page(std::span<const HistoryPoint> points) {
  json samples = json::array();
  std::size_t bytes = 0;
  for (const HistoryPoint& point : points) {
    Encoder encode;
    visit_point(point, encode);
    json row = encode.take_row();
    bytes += row.dump().size() + 1;
    if (samples.size() == std::size_t{kHistoryPagePoints}) break;
    if (bytes > kHistoryPageBytes && !samples.empty()) break;
    samples.push_back(std::move(row));
  }
  return {{"columns", column_names()}, {"samples", std::move(samples)}};
}

Result<std::vector<HistoryPoint>> parse_history_page(const json& body) {
  const auto columns = body.find("columns"), samples = body.find("samples");
  if (!body.is_object() || columns == body.end() || samples == body.end() ||
      !columns->is_array() || !samples->is_array() || columns->size() > kMostColumns)
    return bad("it has no columns or no samples");
  static const json kKnown = column_names();
  std::vector<std::size_t> places;
  for (const json& name : kKnown)
    places.push_back(static_cast<std::size_t>(std::ranges::find(*columns, name) -
                                              columns->begin()));
  if (places.front() == columns->size()) return bad("it has no times");
  std::vector<HistoryPoint> points;
  for (const json& row : *samples) {
    if (!row.is_array() || row.size() != columns->size() || row[places.front()].is_null())
      return bad("a row has not as many values as there are columns, or no time");
    Decoder decode(row, places);
    visit_point(points.emplace_back(), decode);
    if (!decode.sound()) return bad("a value is of the wrong type");
  }
  return points;
}

json history_of_name(const ContainerInfo& container, std::span<const StoredRecord> runs,
                     std::span<const HistoryPoint> points, bool gone) {
  HistoryReply reply;
  if (!runs.empty()) reply = run_reply(runs.front());
  reply.container = container;
  reply.points = rows_of(points);
  reply.gone = gone;
  reply.earlier.emplace();
  for (std::size_t i = runs.size(); i > 1; --i) reply.earlier->push_back(run_reply(runs[i - 1]));
  return to_json(reply);
}

json history_of_record(const StoredRecord& run, std::span<const HistoryPoint> points) {
  HistoryReply reply = run_reply(run);
  reply.points = rows_of(points);
  return to_json(reply);
}

json records_page(std::span<const RecordEntry> records) {
  json entries = json::array();
  for (const RecordEntry& entry : records) {
    const ContainerInfo& container = entry.container;
    entries.push_back({{"record", entry.record},
                       {"first_seen_ns", entry.first_seen.time_since_epoch().count()},
                       {"path", escape_name(container.path)},
                       {"engine_id", escape_name(container.engine_id)},
                       {"name", escape_name(container.name)},
                       {"image", escape_name(container.image)}});
  }
  return {{"records", std::move(entries)}};
}

Result<std::vector<RecordEntry>> parse_records_page(const json& body) {
  const auto entries = body.find("records");
  if (!body.is_object() || entries == body.end() || !entries->is_array())
    return bad("it has no records");
  std::vector<RecordEntry> records;
  for (const json& entry : *entries) {
    RecordEntry record;
    if (!entry.is_object() || !take(entry.value("record", json()), record.record) ||
        !take(entry.value("first_seen_ns", json()), record.first_seen))
      return bad("a record has no number or no time");
    record.container.path = text_at(entry, "path");
    record.container.engine_id = text_at(entry, "engine_id");
    record.container.name = text_at(entry, "name");
    record.container.image = text_at(entry, "image");
    records.push_back(std::move(record));
  }
  return records;
}

json table_reply(const TablePage& page) {
  json columns = json::array(), rows = json::array();
  for (const TableColumn& column : page.columns) columns.push_back({column.name, column.type});
  for (const auto& values : page.rows) {
    json row = json::array();
    for (const SqlValue& value : values)
      row.push_back(std::visit([](const auto& plain) -> json {
        if constexpr (std::is_same_v<std::decay_t<decltype(plain)>, std::monostate>) return {};
        else return plain;
      }, value));
    rows.push_back(std::move(row));
  }
  return {{"columns", std::move(columns)}, {"rows", std::move(rows)}};
}

Result<TablePage> parse_table_reply(const json& body) {
  const auto columns = body.find("columns"), rows = body.find("rows");
  if (!body.is_object() || columns == body.end() || rows == body.end() || !columns->is_array() ||
      !rows->is_array() || columns->size() > kMostColumns)
    return bad("it has no columns or no rows");
  TablePage page;
  for (const json& column : *columns) {
    if (!column.is_array() || column.size() != 2 || !column[0].is_string() ||
        !column[1].is_string())
      return bad("a column has no name or no type");
    page.columns.push_back({column[0], column[1]});
  }
  for (const json& row : *rows) {
    if (!row.is_array() || row.size() != page.columns.size())
      return bad("a row has not as many values as there are columns");
    auto& values = page.rows.emplace_back();
    for (const json& value : row) values.push_back(plain_value(value));
  }
  return page;
}

std::vector<TableColumn> plain_columns() {
  std::vector<TableColumn> columns;
  for (const json& name : column_names()) {
    columns.push_back({name, ""});
    std::ranges::replace(columns.back().name, '.', '_');
  }
  return columns;
}

std::vector<SqlValue> plain_values(const HistoryPoint& point) {
  Encoder encode;
  visit_point(point, encode);
  std::vector<SqlValue> values;
  for (const json& value : encode.take_row()) values.push_back(plain_value(value));
  return values;
}

}  // namespace cgphase
