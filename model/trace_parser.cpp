#include "model/trace_parser.h"

#include <algorithm>
#include <cmath>

#include "base/parse.h"
#include "base/text.h"
#include "model/text_lines.h"

namespace cgphase {
namespace {

constexpr double kNsPerSec = 1e9;
constexpr double kMaxTimestamp = 9e9;       // seconds: an int64 of nanoseconds still holds it
constexpr double kMaxNumber = 9.2e18;       // an uint64 read by way of a double
constexpr std::uint64_t kMaxWhole = kMostTraceNumber;
constexpr double kIntervalTolerance = 1.5;  // seconds; timestamps may be whole seconds
constexpr double kQuotaPeriodUsec = 100'000;
constexpr double kMostCores = 1e9;          // of a limit or a host; more is as much

std::int64_t to_nanoseconds(double seconds) { return std::llround(seconds * kNsPerSec); }

}  // namespace

TraceParser::TraceParser(std::string path, TraceOptions options)
    : path_(std::move(path)), options_(std::move(options)) {}

std::unexpected<Error> TraceParser::bad(std::string_view column, const std::string& reason) const {
  return failure(ErrorKind::invalid, path_ + ": line " + std::to_string(line_) + ": column " +
                                         escape_name(column) + ": " + reason);
}

void TraceParser::fault(std::string_view column, const std::string& reason) {
  if (!fault_) fault_ = bad(column, reason).error();
}

TraceParser::Position TraceParser::find(std::string_view name) const {
  const auto found = std::ranges::find(names_, name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<std::size_t>(found - names_.begin());
}

Status TraceParser::read_header(std::string_view line) {
  line_ = 1;
  if (line.starts_with("\xEF\xBB\xBF")) line.remove_prefix(3);
  if (!split_csv(line, names_)) return bad("(header)", "a quote does not end");
  if (names_.size() > kMaxTraceColumns)
    return bad("(header)", "more than " + std::to_string(kMaxTraceColumns) + " columns");
  std::vector<std::string> sorted = names_;
  std::ranges::sort(sorted);
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end()) return bad(*twice, "appears twice");
  const std::pair<std::string_view, Position*> places[] = {
      {"timestamp", &timestamp_}, {"service", &service_}, {"pod.id", &pod_},
      {"cpu.num.cores", &host_cores_}, {"host.memory", &host_memory_}, {"cpu.usage", &cpu_usage_},
      {"cpu.usage.cores", &cpu_cores_}, {"cpu.usage.pct.container.requested", &cpu_pct_},
      {"cpu.limit.cores", &cpu_limit_}, {"mem.current", &memory_current_},
      {"mem.limit", &memory_limit_}, {"mem.working.set", &working_set_}, {"interval", &interval_},
      {"label", &label_}, {"label.detail", &label_detail_}};
  for (const auto& [name, place] : places) *place = find(name);
  if (!cpu_limit_) cpu_limit_ = find("cpu.requested.cores");
  if (!timestamp_) return bad("timestamp", "is missing: this is not a trace");
  for (const TraceColumn* column : columns_to_read(names_))
    sample_columns_.emplace_back(column, *find(column->name));
  for (const TraceRatio& ratio : trace_ratios())
    if (const Position position = find(ratio.name)) ratios_.emplace_back(&ratio, position);
  for (const std::string& name : options_.columns) asked_.push_back(find(name));
  has_usage_counter_ = find("cpu.usage.usec").has_value();
  has_anon_ = find("memory.anon").has_value();
  return {};
}

// A first column without a name may be missing in the header altogether (R's write.csv).
Status TraceParser::fix_offset() {
  if (row_count_ == 0) offset_ = fields_.size() == names_.size() + 1 ? 1 : 0;
  if (fields_.size() == names_.size() + offset_) return {};
  return failure(ErrorKind::invalid,
                 path_ + ": line " + std::to_string(line_) + ": has " +
                     std::to_string(fields_.size()) + " fields, not " +
                     std::to_string(names_.size() + offset_));
}

std::string_view TraceParser::text(const Position& position) const {
  return position ? fields_[*position + offset_] : std::string_view();
}

std::optional<double> TraceParser::number(const Position& position) {
  // Nearly every cell is a number and nothing else.
  if (const std::optional<double> plain = parse_double(text(position))) return plain;
  const std::string_view cell = trim(text(position));
  if (cell.empty() || cell == "NaN" || cell == "nan" || cell == "NA") return std::nullopt;
  const std::optional<double> value = parse_double(cell);
  if (!value) fault(names_[*position], "\"" + escape_name(cell) + "\" is not a number");
  return value;
}

std::optional<double> TraceParser::not_negative(const Position& position) {
  const std::optional<double> value = number(position);
  if (!value || (*value >= 0 && *value <= kMaxNumber)) return value;
  fault(names_[*position], "is negative or too large");
  return std::nullopt;
}

// Rows of one execution mostly follow each other.
Status TraceParser::find_execution(std::string_view id) {
  if (index_ < executions_.size() && executions_[index_].id == id) return {};
  const auto found = indices_.find(id);
  if (found != indices_.end()) {
    index_ = found->second;
    return {};
  }
  if (executions_.size() >= kMaxTraceExecutions)
    return bad("pod.id", "more than " + std::to_string(kMaxTraceExecutions) + " executions");
  index_ = executions_.size();
  indices_.emplace(id, index_);
  progress_.emplace_back();
  ExecutionHeader& execution = executions_.emplace_back();
  execution.id = id;
  execution.service = text(service_);
  return {};
}

void TraceParser::fill_columns(TraceRow& row) {
  for (const auto& [column, position] : sample_columns_) {
    // Whole numbers keep all their digits.
    const std::optional<std::uint64_t> whole = parse_u64(fields_[position + offset_]);
    if (whole && *whole <= kMaxWhole) {
      column->set(row.sample, *whole);
      continue;
    }
    const std::optional<double> value = not_negative(position);
    if (value) column->set(row.sample, static_cast<std::uint64_t>(*value));
  }
  for (const auto& [ratio, position] : ratios_)
    if (const std::optional<double> value = not_negative(position)) ratio->set(row.sample, *value);
  row.columns.clear();
  for (const Position& position : asked_)
    row.columns.push_back(text(position) == kMaxWord ? std::nullopt : number(position));
}

// The seconds between two rows are their `interval` where that agrees with the timestamps, which
// are often rounded.
double TraceParser::fill_time(TraceRow& row, Progress& progress) {
  const std::optional<double> timestamp = not_negative(timestamp_);
  const std::optional<double> interval = not_negative(interval_);
  if (!timestamp || *timestamp > kMaxTimestamp) {
    fault("timestamp", timestamp ? "is too large" : "is missing");
    return 0;
  }
  if (!first_timestamp_) first_timestamp_ = timestamp;
  double elapsed = 0;
  if (!progress.begun) {
    progress.seconds = *timestamp - *first_timestamp_;
  } else {
    elapsed = *timestamp - progress.timestamp;
    if (interval && *interval > 0 && std::abs(*interval - elapsed) <= kIntervalTolerance)
      elapsed = *interval;
    if (elapsed < 0)
      fault("timestamp", "runs backwards: it is before that of the row above with the same "
                         "pod.id; sort the rows by time, or name what follows another pod.id");
    progress.seconds += elapsed;
  }
  progress.begun = true;
  progress.timestamp = *timestamp;
  row.time = MonotonicTime(std::chrono::nanoseconds(to_nanoseconds(progress.seconds)));
  row.wall_time = WallTime(std::chrono::nanoseconds(to_nanoseconds(*timestamp)));
  return elapsed;
}

// The mean of the interval as replay sees it, so that none of its samples is above the largest.
std::optional<double> TraceParser::used_cores(const TraceRow& row, const Progress& progress) {
  const double seconds = seconds_of(row.time) - seconds_of(progress.time);
  const Counter used = growth(row.sample.cpu.usage_usec, progress.usage_usec);
  if (!used || !(seconds > 0)) return std::nullopt;
  return static_cast<double>(*used) / 1e6 / seconds;
}

// Without a counter one is rebuilt: from the nanoseconds of the interval where the row says how
// long it was, else from the cores, because AI4DL's nanoseconds are over intervals of their own.
void TraceParser::fill_cpu(TraceRow& row, Progress& progress, double elapsed) {
  // A difference below zero is a counter that began anew.
  const double nanoseconds = number(cpu_usage_).value_or(-1);
  const std::optional<double> cores = not_negative(cpu_cores_);
  const std::optional<double> percent = not_negative(cpu_pct_);
  if (!cpu_limit_ && cores && percent && *percent > 0 &&
      progress.cores_per_pct.size() < kMaxLimitRows)
    progress.cores_per_pct.push_back(std::min(*cores / *percent, kMostCores));
  if (!has_usage_counter_ && (nanoseconds >= 0 || cores)) {
    const bool by_time = nanoseconds >= 0 && (interval_ || !cores);
    progress.cpu_usec += by_time ? nanoseconds / 1000 : *cores * std::max(elapsed, 0.0) * 1e6;
    if (progress.cpu_usec > kMaxNumber)
      return fault(cpu_usage_ ? "cpu.usage" : "cpu.usage.cores", "adds up to too much");
    row.sample.cpu.usage_usec = static_cast<std::uint64_t>(progress.cpu_usec);
  }
  if (const auto most = cores ? cores : used_cores(row, progress))
    progress.most_cores = std::max(progress.most_cores, *most);
  progress.usage_usec = row.sample.cpu.usage_usec;
  progress.time = row.time;
}

void TraceParser::fill_memory(TraceRow& row, Progress& progress) {
  const std::optional<double> current = not_negative(memory_current_);
  const std::optional<double> in_use = not_negative(working_set_);
  if (current) row.sample.memory_current = Bytes{static_cast<std::uint64_t>(*current)};
  if (!has_anon_ && (in_use || current)) fill_need(in_use ? *in_use : *current, row.sample);
  const std::optional<Bytes> need = memory_need(row.sample);
  if (need) progress.most_memory = std::max(progress.most_memory, need->value);
}

// What mem.working.set leaves out of mem.current is page cache, and no need.
void TraceParser::fill_need(double in_use, Sample& sample) {
  MemoryStat& memory = sample.memory;
  memory.anon_bytes = static_cast<std::uint64_t>(in_use);
  if (!sample.memory_current || memory.active_file_bytes) return;
  const std::uint64_t known = saturating_add(*memory.anon_bytes,
                                             memory.inactive_file_bytes.value_or(0));
  if (sample.memory_current->value > known)
    memory.active_file_bytes = sample.memory_current->value - known;
}

void TraceParser::fill_limits(TraceRow& row, ExecutionHeader& execution) {
  const std::optional<double> cpu_limit = not_negative(cpu_limit_);
  const std::optional<double> memory_limit = not_negative(memory_limit_);
  const std::optional<double> host_cores = not_negative(host_cores_);
  const std::optional<double> host_memory = not_negative(host_memory_);
  if (cpu_limit_) {
    row.sample.limits.cpu_max.emplace();
    if (cpu_limit && *cpu_limit > 0)
      row.sample.limits.cpu_max->quota =
          Microseconds{static_cast<std::uint64_t>(std::llround(
              std::min(*cpu_limit, kMostCores) * kQuotaPeriodUsec))};
  }
  if (memory_limit_) {
    row.sample.limits.memory_max.emplace();
    if (memory_limit && *memory_limit > 0)
      row.sample.limits.memory_max->bytes = Bytes{static_cast<std::uint64_t>(*memory_limit)};
  }
  if (host_cores && execution.host.cpu_cores == 0)
    execution.host.cpu_cores = std::min(*host_cores, kMostCores);
  if (host_memory && execution.host.memory.value == 0)
    execution.host.memory.value = static_cast<std::uint64_t>(*host_memory);
}

Result<bool> TraceParser::read_row(std::string_view line, std::uint64_t line_number,
                                   TraceRow& row) {
  line_ = line_number;
  if (trim(line).empty()) return false;
  if (!split_csv(line, fields_, unquoted_)) return bad("(row)", "a quote does not end");
  if (Status status = fix_offset(); !status) return std::unexpected(status.error());
  if (row_count_ >= options_.max_rows)
    return bad("(row)", "more than " + std::to_string(options_.max_rows) + " rows");
  ++row_count_;
  if (Status status = find_execution(text(pod_)); !status) return std::unexpected(status.error());
  Progress& progress = progress_[index_];
  row.line = line_number;
  row.sample = {};
  row.sample.id.inode = index_ + 1;
  row.label = text(label_);
  row.label_detail = text(label_detail_);
  const double elapsed = fill_time(row, progress);
  fill_columns(row);
  fill_cpu(row, progress, elapsed);
  fill_memory(row, progress);
  fill_limits(row, executions_[index_]);
  if (fault_) return std::unexpected(*fault_);
  return true;
}

bool TraceParser::complete(std::size_t index) const {
  const bool limit = cpu_limit_ || !cpu_cores_ || !cpu_pct_;
  const HostCapacity& host = executions_[index].host;
  const bool cores = host.cpu_cores > 0 ||
                     (!host_cores_ && !cpu_cores_ && !cpu_usage_ && !has_usage_counter_);
  const bool memory = host.memory.value > 0 ||
                      (!host_memory_ && !has_anon_ && !memory_current_ && !working_set_);
  return limit && cores && memory;
}

// AI4DL's columns tell the CPU request only as usage and its percentage, each rounded: the median
// over the rows.
TraceParser::Measured TraceParser::measured(std::string_view id) const {
  const auto found = indices_.find(id);
  if (found == indices_.end()) return {};
  const Progress& progress = progress_[found->second];
  Measured measured{.cpu_max = {}, .host = executions_[found->second].host,
                    .most_used = {std::min(progress.most_cores, kMostCores),
                                  Bytes{progress.most_memory}}};
  if (!cpu_limit_ && !progress.cores_per_pct.empty()) {
    std::vector<double> ratios = progress.cores_per_pct;
    const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
    std::ranges::nth_element(ratios, middle);
    const CpuMax limit{Microseconds{
        static_cast<std::uint64_t>(std::llround(*middle * 100 * kQuotaPeriodUsec))}};
    if (limit.quota->value > 0) measured.cpu_max = limit;
  }
  return measured;
}

}  // namespace cgphase
