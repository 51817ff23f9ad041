#include "traces/trace_parser.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/iso_time.h"
#include "base/parse.h"
#include "base/text.h"
#include "traces/text_lines.h"

namespace cgphase {
namespace {

constexpr double kNsPerSec = 1e9;
constexpr double kMaxNumber = 9.2e18;       // a uint64 that was read as a double
constexpr double kIntervalTolerance = 1.5;  // seconds; timestamps may be whole seconds
constexpr double kQuotaPeriodUsec = 100'000;
constexpr double kMostLimitCores = 1e9;  // larger limits are reduced to this
constexpr double kMostPercent = 100 * kCpuTolerance;
// AI4DL's nanoseconds cover intervals of their own. These are at most this many row intervals long.
constexpr double kMostOwnIntervals = 10;
constexpr Bound kAnyNumber{kMaxNumber, "more than a counter holds"};

std::int64_t to_nanoseconds(double seconds) { return std::llround(seconds * kNsPerSec); }

bool is_whole(double value) { return value == std::floor(value); }

// The value of "1%" in a column of this name; 0 if percentages are not allowed.
double percent_of(const std::string& name) {
  if (name.ends_with(".pct") || name.contains(".pct.")) return 1;
  for (const TraceRatio& ratio : trace_ratios())
    if (name == ratio.name) return 0.01;
  return 0;
}

bool is_limit(std::string_view name) {
  constexpr std::string_view kLimits[] = {
      "mem.limit", "cpu.limit.cores", "cpu.requested.cores", "cpu.limit.now.cores",
      "mem.limit.now", "memory.high", "memory.low", "memory.min", "memory.swap.max", "pids.max"};
  return std::ranges::find(kLimits, name) != std::end(kLimits);
}

double growth_per_second(Quantity quantity, const RowBounds& bounds) {
  constexpr double kUsecPerSec = 1e6;
  switch (quantity) {
    case Quantity::cpu_time: return bounds.cores.most * kUsecPerSec;
    case Quantity::wall_time: return kCpuTolerance * kUsecPerSec;
    case Quantity::traffic: return kMostBytesPerSecond;
    default: return kMostEventsPerSecond;
  }
}

}  // namespace

TraceParser::TraceParser(std::string path, TraceOptions options, TraceShape shape)
    : path_(std::move(path)), options_(std::move(options)), shape_(std::move(shape)) {
  bind_columns();
  find_conversions();
}

std::unexpected<Error> TraceParser::bad(std::string_view column, const std::string& reason) const {
  return failure(ErrorKind::invalid, path_ + ": line " + std::to_string(line_) + ": column " +
                                         escape_name(column) + ": " + reason);
}

void TraceParser::fault(std::string_view column, const std::string& reason) {
  if (!fault_) fault_ = bad(column, reason).error();
}

void TraceParser::bind_columns() {
  const std::pair<std::string_view, Position*> places[] = {
      {"timestamp", &timestamp_}, {"service", &service_}, {"pod.id", &pod_},
      {"cpu.num.cores", &host_cores_}, {"host.memory", &host_memory_}, {"cpu.usage", &cpu_usage_},
      {"cpu.usage.cores", &cpu_cores_}, {"cpu.usage.pct", &cpu_host_pct_},
      {"cpu.usage.pct.container.requested", &cpu_pct_},
      {"cpu.limit.cores", &cpu_limit_}, {"mem.current", &memory_current_},
      {"mem.limit", &memory_limit_}, {"mem.usage.pct", &memory_pct_},
      {"mem.working.set", &working_set_}, {"interval", &interval_},
      {"label", &label_}, {"label.detail", &label_detail_}};
  for (const auto& [name, place] : places) *place = shape_.find(name);
  if (!cpu_limit_) cpu_limit_ = shape_.find("cpu.requested.cores");
  std::vector<std::string> names;
  for (const std::string& name : shape_.names) names.push_back(lower_case(name));
  for (const TraceColumn* column : columns_to_read(names))
    sample_columns_.emplace_back(column, *shape_.find(column->name));
  for (const TraceRatio& ratio : trace_ratios())
    if (const Position position = shape_.find(ratio.name)) ratios_.emplace_back(&ratio, position);
  for (const std::string& name : options_.columns)
    asked_.push_back({shape_.find(name), is_limit(name)});
  for (const std::string& name : names) percent_.push_back(percent_of(name));
  has_usage_counter_ = shape_.find("cpu.usage.usec").has_value();
  has_anon_ = shape_.find("memory.anon").has_value();
}

// Percentages replace columns that the file lacks.
void TraceParser::find_conversions() {
  if (!has_usage_counter_ && !cpu_usage_ && !cpu_cores_) {
    cores_by_host_pct_ = cpu_host_pct_ && host_cores_;
    cores_by_pct_ = !cores_by_host_pct_ && cpu_pct_ && cpu_limit_;
  }
  memory_by_pct_ = !has_anon_ && !memory_current_ && !working_set_ && memory_pct_ &&
                   (memory_limit_ || host_memory_);
}

std::vector<std::string> TraceParser::notes() const {
  std::vector<std::string> notes = shape_.notes;
  if (cores_by_host_pct_)
    notes.emplace_back("CPU use computed from cpu.usage.pct and cpu.num.cores");
  if (cores_by_pct_)
    notes.emplace_back("CPU use computed from cpu.usage.pct.container.requested and the CPU limit");
  if (memory_by_pct_)
    notes.emplace_back(memory_limit_ ? "memory use computed from mem.usage.pct and mem.limit"
                                     : "memory use computed from mem.usage.pct and host.memory");
  if (repeated_header_ > 0)
    notes.push_back("the header is repeated in line " + std::to_string(repeated_header_) +
                    "; that line is ignored");
  if (const std::string ignored = impossible_.note(); !ignored.empty()) notes.push_back(ignored);
  return notes;
}

Status TraceParser::check_measured() const {
  if (measured_) return {};
  if (row_count_ == 0)
    return failure(ErrorKind::invalid, path_ + ": has no rows, only a header; record some first");
  std::string text = path_ + ": no row has CPU use (column cpu.usage.usec, cpu.usage or "
                             "cpu.usage.cores) or memory use (memory.anon, mem.working.set or "
                             "mem.current)";
  if (cpu_host_pct_ && !host_cores_) text += "; cpu.usage.pct needs the column cpu.num.cores";
  if (cpu_pct_ && !cpu_limit_ && !cpu_cores_)
    text += "; cpu.usage.pct.container.requested needs the column cpu.limit.cores";
  if (memory_pct_ && !memory_limit_ && !host_memory_)
    text += "; mem.usage.pct needs the column mem.limit or host.memory";
  return failure(ErrorKind::invalid,
                 text + "; found " + first_names(shape_.names) +
                     " (docs/internals/trace-format.md)");
}

// Every row must have as many fields as the first rows.
Status TraceParser::check_fields() {
  const std::size_t named = shape_.leading + shape_.names.size();
  const bool as_many = fields_.size() == named + shape_.trailing;
  if (as_many && (shape_.trailing == 0 || trim(fields_.back()).empty())) return {};
  const std::string wrong = as_many ? "a value after the last column of the header"
                                    : std::to_string(fields_.size()) + " fields, not " +
                                          std::to_string(named + shape_.trailing);
  return failure(ErrorKind::invalid,
                 path_ + ": line " + std::to_string(line_) + ": has " + wrong);
}

std::string_view TraceParser::text(const Position& position) const {
  return position ? fields_[*position + shape_.leading] : std::string_view();
}

std::string TraceParser::name_text(const Position& position) const {
  return std::string(shape_.blanks ? trim(text(position)) : text(position));
}

std::optional<double> TraceParser::number(const Position& position) {
  if (!position) return std::nullopt;
  const std::string_view cell = trim(text(position));
  if (is_missing(cell)) return std::nullopt;
  const double percent = percent_[*position];
  const bool marked = percent > 0 && cell.ends_with('%');
  const std::string_view digits = marked ? trim(cell.substr(0, cell.size() - 1)) : cell;
  const std::optional<double> value = shape_.numbers.read(digits);
  if (value) return marked ? *value * percent : *value;
  if (is_infinite(digits)) {
    ignore(*position, std::numeric_limits<double>::infinity(), kAnyNumber);
    return std::nullopt;
  }
  fault(shape_.names[*position],
        "\"" + escape_name(cell) + "\" " + shape_.numbers.why_not(cell));
  return std::nullopt;
}

void TraceParser::ignore(std::size_t position, double value, const Bound& bound) {
  ignored_.push_back(position);
  impossible_.add(shape_.names[position], value, line_, bound);
}

std::optional<double> TraceParser::reading(const Position& position, const Bound& bound) {
  const std::optional<double> value = number(position);
  if (!value || (*value >= 0 && *value <= bound.most)) return value;
  ignore(*position, *value, bound);
  return std::nullopt;
}

// Some programs write 0 or -1 for no limit.
std::optional<double> TraceParser::limit(const Position& position) {
  if (!position || is_no_limit(trim(text(position)))) return std::nullopt;
  std::optional<double> value = number(position);
  if (value == -1) return std::nullopt;
  if (value && *value < 0) ignore(*position, *value, kAnyNumber);
  if (!value || !(*value > 0) || *value >= kNoLimit) return std::nullopt;
  return value;
}

// Consecutive rows mostly belong to the same execution.
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
  execution.service = name_text(service_);
  for (const auto& [column, position] : sample_columns_)
    if (is_cumulative(column->quantity)) progress_.back().guards.emplace_back();
  return {};
}

void TraceParser::fill_column(const TraceColumn& column, std::size_t position, TraceRow& row,
                              CounterGuard& guard, double seconds) {
  const Quantity quantity = column.quantity;
  // Integers are not read as a double, which would lose digits.
  std::optional<std::uint64_t> value = parse_u64(fields_[position + shape_.leading]);
  if (!value)
    if (const std::optional<double> rounded = reading(position, kAnyNumber))
      value = static_cast<std::uint64_t>(*rounded);
  if (!value) return;
  const auto real = static_cast<double>(*value);
  if (*value > largest(quantity))
    return ignore(position, real, {0, "a number below zero or too large"});
  if (quantity == Quantity::memory && real > bounds_.memory.most)
    return ignore(position, real, bounds_.memory);
  if (is_cumulative(quantity) &&
      !guard.takes(*value, seconds, growth_per_second(quantity, bounds_),
                       bounds_.jitter_seconds))
    return ignore(position, real,
                  quantity == Quantity::cpu_time ? bounds_.cores
                                                 : Bound{0, "a jump that no host can make"});
  column.set(row.sample, *value);
  measured_ = true;
}

void TraceParser::fill_columns(TraceRow& row, Progress& progress) {
  CounterGuard unused;
  std::size_t cumulative = 0;
  for (const auto& [column, position] : sample_columns_) {
    const bool guarded = is_cumulative(column->quantity);
    fill_column(*column, position, row, guarded ? progress.guards[cumulative] : unused,
                progress.seconds);
    if (guarded) ++cumulative;
  }
  for (const auto& [ratio, position] : ratios_)
    if (const auto value = reading(position, {ratio->most, "above 100 % of the time"})) {
      ratio->set(row.sample, *value);
      measured_ = true;
    }
}

// Requested columns are filled last, because a value that another step ignored is absent here too.
void TraceParser::fill_asked(TraceRow& row) {
  row.columns.clear();
  for (const auto& [position, is_limit] : asked_) {
    std::optional<double> value;
    if (is_limit) value = limit(position);
    else if (position && std::ranges::find(ignored_, *position) == ignored_.end() &&
             trim(text(position)) != kMaxWord)
      value = number(position);
    measured_ |= value.has_value();
    row.columns.push_back(value);
  }
}

// The time in seconds, from the unit of the file. Negative after fault().
double TraceParser::timestamp() {
  const std::string_view cell = trim(text(timestamp_));
  const auto refuse = [&](const std::string& why) {
    fault("timestamp", why);
    return -1.0;
  };
  if (is_missing(cell)) return refuse("is missing");
  const bool dates = shape_.time == TimeForm::iso;
  std::optional<double> value;
  if (const auto iso = dates ? parse_iso_time(cell) : std::nullopt) value = iso->seconds;
  if (!dates) value = shape_.numbers.read(cell);
  if (!value)
    return refuse("\"" + escape_name(cell) + "\" is not a time; write seconds since 1970, or ISO "
                  "8601, in every row");
  *value /= per_second(shape_.time);
  if (*value < 0) return refuse("is before 1970");
  if (*value > kLastDate) return refuse("is too large");
  if (shape_.dated && shape_.time != TimeForm::seconds && *value < kFirstDate)
    return refuse("is not in " + std::string(time_form_name(shape_.time)) +
                  ", unlike the first rows");
  return *value;
}

// Timestamps are often rounded. So the time between two rows is the column `interval`, if it agrees
// with the timestamps.
double TraceParser::fill_time(TraceRow& row, Progress& progress) {
  const double now = timestamp();
  const std::optional<double> interval = reading(interval_, kAnyNumber);
  if (now < 0) return 0;
  if (!first_timestamp_) first_timestamp_ = now;
  double elapsed = 0;
  bool agreed = false;
  if (!progress.begun) {
    progress.seconds = now - *first_timestamp_;
  } else {
    elapsed = now - progress.timestamp;
    agreed = interval && *interval > 0 && std::abs(*interval - elapsed) <= kIntervalTolerance;
    if (agreed) elapsed = *interval;
    if (elapsed < 0)
      fault("timestamp",
            "runs backwards: it is before that of the row above with the same "
            "pod.id; sort the rows by time, or give later rows another pod.id");
    progress.seconds += elapsed;
  }
  bounds_.jitter_seconds = !agreed && is_whole(now) && is_whole(progress.timestamp)
                               ? kWholeSecond
                               : kTickSeconds;
  progress.begun = true;
  progress.timestamp = now;
  row.time = MonotonicTime(std::chrono::nanoseconds(to_nanoseconds(progress.seconds)));
  row.wall_time = WallTime(std::chrono::nanoseconds(to_nanoseconds(now)));
  return elapsed;
}

// The mean over the interval as replay computes it, so that no replayed sample exceeds the largest
// use.
std::optional<double> TraceParser::used_cores(const TraceRow& row, const Progress& progress) {
  const double seconds = seconds_of(row.time) - seconds_of(progress.time);
  const Counter used = growth(row.sample.cpu.usage_usec, progress.usage_usec);
  if (!used || !(seconds > 0)) return std::nullopt;
  return static_cast<double>(*used) / 1e6 / seconds;
}

// CPU use in the columns of the row. `of_limit` receives its percentage of the limit.
std::optional<double> TraceParser::cores_of_row(const TraceRow& row,
                                                std::optional<double>& of_limit) {
  const double limit = row.sample.limits.cpu_cores().value_or(Cores{0}).value;
  const std::optional<double> cores = reading(cpu_cores_, bounds_.cores);
  const std::optional<double> of_host =
      reading(cpu_host_pct_, {kMostPercent, "above 100 % of the host's processors"});
  const Bound most{limit > 0 ? bounds_.cores.most / limit * 100 : kMaxNumber, bounds_.cores.source,
             bounds_.cores.capacity, bounds_.cores.unit};
  of_limit = reading(cpu_pct_, most);
  if (cores_by_host_pct_ && of_host && row_cores_ > 0) return *of_host / 100 * row_cores_;
  if (cores_by_pct_ && of_limit && limit > 0) return *of_limit / 100 * limit;
  return cores;
}

// Rebuilds the counter if the file has none. The nanoseconds of the interval are used if the row
// has the interval. Otherwise the cores are used, because AI4DL's nanoseconds cover intervals of
// their own.
void TraceParser::fill_cpu(TraceRow& row, Progress& progress, double elapsed) {
  std::optional<double> percent;
  const std::optional<double> cores = cores_of_row(row, percent);
  const bool by_time = interval_ || !cores;
  const double longest = by_time && elapsed > 0
                             ? elapsed
                             : kMostOwnIntervals * std::max(elapsed, shape_.step_seconds);
  Bound most = bounds_.cores;
  most.most = longest > 0 ? most.most * (longest + bounds_.jitter_seconds) * kNsPerSec : kMaxNumber;
  const std::optional<double> nanoseconds = reading(cpu_usage_, most);
  if (!cpu_limit_ && cores && percent && *percent > 0 &&
      progress.cores_per_pct.size() < kMaxLimitRows)
    progress.cores_per_pct.push_back(std::min(*cores / *percent, kMostLimitCores));
  if (!has_usage_counter_ && (nanoseconds || cores)) {
    progress.cpu_usec += nanoseconds && by_time ? *nanoseconds / 1000
                                                : *cores * std::max(elapsed, 0.0) * 1e6;
    if (progress.cpu_usec > kMaxNumber)
      return fault(cpu_usage_ ? "cpu.usage" : "cpu.usage.cores", "the sum is too large");
    row.sample.cpu.usage_usec = static_cast<std::uint64_t>(progress.cpu_usec);
  }
  for (const auto& used : {cores, used_cores(row, progress)})
    if (used) progress.most_cores = std::max(progress.most_cores, *used);
  progress.usage_usec = row.sample.cpu.usage_usec;
  progress.time = row.time;
  measured_ |= row.sample.cpu.usage_usec.has_value();
}

void TraceParser::fill_memory(TraceRow& row, Progress& progress) {
  const std::optional<double> current = reading(memory_current_, bounds_.memory);
  std::optional<double> in_use = reading(working_set_, bounds_.memory);
  const std::optional<double> percent =
      reading(memory_pct_, {100 * kMostTimesLimit, "above 64 times its limit"});
  const std::optional<Bytes> limit = row.sample.limits.memory_bytes();
  const double capacity = limit ? static_cast<double>(limit->value) : row_memory_;
  if (memory_by_pct_ && percent && capacity > 0) in_use = *percent / 100 * capacity;
  if (current) row.sample.memory_current = Bytes{static_cast<std::uint64_t>(*current)};
  if (!has_anon_ && (in_use || current)) fill_need(in_use ? *in_use : *current, row.sample);
  const std::optional<Bytes> need = memory_need(row.sample);
  if (need) progress.most_memory = std::max(progress.most_memory, need->value);
  measured_ |= need.has_value();
}

// mem.current minus mem.working.set is page cache, which is not need.
void TraceParser::fill_need(double in_use, Sample& sample) {
  MemoryStat& memory = sample.memory;
  memory.anon_bytes = static_cast<std::uint64_t>(in_use);
  if (!sample.memory_current || memory.active_file_bytes) return;
  const std::uint64_t known = saturating_add(*memory.anon_bytes,
                                             memory.inactive_file_bytes.value_or(0));
  if (sample.memory_current->value > known)
    memory.active_file_bytes = sample.memory_current->value - known;
}

// Reads limits and host, which set the bounds for the other values of the row.
void TraceParser::fill_capacity(TraceRow& row, ExecutionHeader& execution) {
  const std::optional<double> cpu_limit = limit(cpu_limit_);
  const std::optional<double> memory_limit = limit(memory_limit_);
  const std::optional<double> host_cores =
      reading(host_cores_, {kMostHostCores, "more than any host has"});
  const std::optional<double> host_memory =
      reading(host_memory_, {kMostMemoryBytes, "more than any host has"});
  if (cpu_limit_) {
    row.sample.limits.cpu_max.emplace();
    if (cpu_limit)
      row.sample.limits.cpu_max->quota =
          Microseconds{static_cast<std::uint64_t>(std::llround(
              std::min(*cpu_limit, kMostLimitCores) * kQuotaPeriodUsec))};
  }
  if (memory_limit_) {
    row.sample.limits.memory_max.emplace();
    if (memory_limit)
      row.sample.limits.memory_max->bytes = Bytes{static_cast<std::uint64_t>(*memory_limit)};
  }
  HostCapacity& host = execution.host;
  if (host_cores && host.cpu_cores == 0) host.cpu_cores = *host_cores;
  if (host_memory && host.memory.value == 0)
    host.memory.value = static_cast<std::uint64_t>(*host_memory);
  const double told_cores = execution.host_cores_told ? host.cpu_cores : 0;
  const double told_memory =
      execution.host_memory_told ? static_cast<double>(host.memory.value) : 0;
  row_cores_ = host_cores.value_or(told_cores);
  row_memory_ = host_memory.value_or(told_memory);
  const double jitter = bounds_.jitter_seconds;
  bounds_ = row_bounds(std::max(row_cores_, told_cores), std::max(row_memory_, told_memory),
                       cpu_limit.value_or(0), memory_limit.value_or(0));
  bounds_.jitter_seconds = jitter;
}

Result<bool> TraceParser::read_row(std::string_view line, std::uint64_t line_number,
                                   TraceRow& row) {
  line_ = line_number;
  if (trim(line).empty()) return false;
  if (line == shape_.header) {
    if (repeated_header_ == 0) repeated_header_ = line_;
    return false;
  }
  if (!split_csv(line, fields_, unquoted_, shape_.separator))
    return bad("(row)", "a quote does not end");
  if (Status status = check_fields(); !status) return std::unexpected(status.error());
  if (row_count_ >= options_.max_rows)
    return bad("(row)", "more than " + std::to_string(options_.max_rows) + " rows");
  ++row_count_;
  const std::string_view id = shape_.blanks ? trim(text(pod_)) : text(pod_);
  if (Status status = find_execution(id); !status) return std::unexpected(status.error());
  Progress& progress = progress_[index_];
  row.line = line_number;
  row.sample = {};
  row.sample.id.inode = index_ + 1;
  row.label = name_text(label_);
  row.label_detail = name_text(label_detail_);
  ignored_.clear();
  const double elapsed = fill_time(row, progress);
  fill_capacity(row, executions_[index_]);
  fill_columns(row, progress);
  fill_cpu(row, progress, elapsed);
  fill_memory(row, progress);
  fill_asked(row);
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

// AI4DL's columns have the CPU request only as usage and its percentage, both rounded. So the limit
// is the median over the rows.
TraceParser::Measured TraceParser::measured(std::string_view id) const {
  const auto found = indices_.find(id);
  if (found == indices_.end()) return {};
  const Progress& progress = progress_[found->second];
  Measured measured{.cpu_max = {}, .host = executions_[found->second].host,
                    .most_used = {progress.most_cores,
                                  Bytes{progress.most_memory}}};
  if (!cpu_limit_ && !progress.cores_per_pct.empty()) {
    const CpuMax limit{Microseconds{static_cast<std::uint64_t>(
        std::llround(median_of(progress.cores_per_pct) * 100 * kQuotaPeriodUsec))}};
    if (limit.quota->value > 0) measured.cpu_max = limit;
  }
  return measured;
}

}  // namespace cgphase
