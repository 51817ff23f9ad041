#include "cli/host_history.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/temporary_file.h"
#include "base/text.h"
#include "cli/output/print.h"
#include "protocol/history.h"
#include "storage/store.h"
#include "traces/trace.h"

namespace cgphase {
namespace {

using nlohmann::json;
using Runs = std::vector<RecordEntry>;
template <class T>
using Answer = std::expected<T, Complaint>;

constexpr std::size_t kShortestIdPrefix = 4;
constexpr std::size_t kShownBytes = 128;
constexpr std::size_t kFlushBytes = 64 * 1024;
// More than the rounding error of a time in JSON.
constexpr std::chrono::microseconds kClockStep{1};

std::unexpected<Complaint> refusal(const Error& error) {
  return complaint(error.kind == ErrorKind::not_found ? Exit::invalid : exit_of(error.kind),
                   error.text);
}

// Reads the history page by page. A page of `points` contains the oldest points from `from` on.
struct Source {
  std::function<Answer<Runs>(std::int64_t after)> records;
  std::function<Answer<std::vector<HistoryPoint>>(std::int64_t record, WallTime from,
                                                  WallTime until)> points;
  std::function<Answer<TablePage>(const std::string& table, std::int64_t after)> table;
};

double seconds_of(WallTime time) {
  return std::max(0.0, std::chrono::duration<double>(time.time_since_epoch()).count());
}

template <class Page>
Answer<Page> ask_page(const std::string& socket, const Request& request,
                      Result<Page> (*parse)(const json&)) {
  const auto body = ask_daemon(socket, request);
  if (!body) return std::unexpected(body.error());
  Result<Page> page = parse(*body);
  if (page) return *std::move(page);
  return complaint(Exit::failure, "the daemon sent an unknown reply: " + page.error().text +
                                      "; are command and daemon of the same version?");
}

Source daemon_source(const HostHistory& wanted) {
  const std::string socket = wanted.socket;
  return {.records =
              [socket](std::int64_t after) {
                return ask_page(socket, RecordsRequest{.after = after}, parse_records_page);
              },
          .points =
              [socket](std::int64_t record, WallTime from, WallTime until) {
                return ask_page(socket,
                                HistoryRequest{.record = record,
                                               .from_seconds = seconds_of(from - kClockStep),
                                               .until_seconds = seconds_of(until),
                                               .full = true},
                                parse_history_page);
              },
          .table =
              [socket](const std::string& table, std::int64_t after) {
                return ask_page(socket, TableRequest{.name = table, .after = after},
                                parse_table_reply);
              }};
}

Answer<Source> stored_source(const HostHistory& wanted) {
  Result<Store> opened = Store::open_for_reading(wanted.state_dir + "/history.db");
  if (!opened) return refusal(opened.error());
  const auto history = std::make_shared<Store>(*std::move(opened));
  Source source;
  source.records = [history](std::int64_t after) -> Answer<Runs> {
    const auto found = history->records(after, kRecordsPage);
    if (!found) return refusal(found.error());
    Runs runs;
    for (const StoredRecord& record : *found)
      runs.push_back({record.record, record.stored.container, record.stored.first_seen});
    return runs;
  };
  const auto warn = std::make_shared<std::function<void(const std::string&)>>(wanted.incomplete);
  source.points = [history, warn](std::int64_t record, WallTime from,
                                  WallTime until) -> Answer<std::vector<HistoryPoint>> {
    auto points = history->history_of(record, from, until, kHistoryPagePoints);
    if (!points) return refusal(points.error());
    if (history->damaged_count() > 0)
      if (const auto once = std::exchange(*warn, nullptr)) once(kDamagedLeftOut);
    return *std::move(points);
  };
  source.table = [history](const std::string& table, std::int64_t after) -> Answer<TablePage> {
    auto page = history->table_page(table, after);
    if (!page) return refusal(page.error());
    return *std::move(page);
  };
  return source;
}

// All recorded runs, oldest record first.
Answer<Runs> all_runs(const Source& source) {
  Runs runs;
  std::map<std::string, int> seen;
  for (;;) {
    const auto page = source.records(runs.empty() ? 0 : runs.back().record);
    if (!page) return std::unexpected(page.error());
    if (page->empty()) return runs;
    if (page->front().record <= (runs.empty() ? 0 : runs.back().record))
      return complaint(Exit::failure, "the history is inconsistent: record numbers do not rise");
    runs.insert(runs.end(), page->begin(), page->end());
  }
}

std::string identity(const RecordEntry& run) {
  const ContainerInfo& container = run.container;
  if (!container.engine_id.empty()) return container.engine_id;
  if (!container.path.empty()) return container.path;
  return container.name.empty() ? "record-" + std::to_string(run.record) : container.name;
}

// Marks the runs that `text` names: by name, else by path, else by id, else by the beginning of an
// id.
std::vector<bool> named(const Runs& runs, const std::string& text) {
  const std::string raw = unescape_name(text);
  const auto is = [&](const std::string& value) { return value == text || value == raw; };
  const std::array<std::function<bool(const ContainerInfo&)>, 4> ways = {
      [&](const ContainerInfo& container) { return is(container.name); },
      [&](const ContainerInfo& container) { return is(container.path); },
      [&](const ContainerInfo& container) { return is(container.engine_id); },
      [&](const ContainerInfo& container) {
        return text.size() >= kShortestIdPrefix && container.engine_id.starts_with(text);
      }};
  for (const auto& way : ways) {
    std::vector<bool> found;
    for (const RecordEntry& run : runs) found.push_back(way(run.container));
    if (std::ranges::find(found, true) != found.end()) return found;
  }
  return {};
}

std::unexpected<Complaint> missing(const Runs& runs, const std::string& text) {
  const std::string shown = text.substr(0, kShownBytes);
  std::vector<std::string_view> names;
  for (const RecordEntry& run : runs)
    if (run.container.name.size() <= kShownBytes) names.emplace_back(run.container.name);
  const std::string_view close = nearest(shown, names);
  return complaint(Exit::no_container,
                   "no container '" + printable(shown) + "' in the history" +
                       (close.empty() ? "" : "; did you mean '" + escape_name(close) + "'?"));
}

// The wanted runs, each with an id of its own. The second run with the same id becomes "ID#2", no
// matter which runs are wanted.
Answer<Runs> wanted_runs(const Source& source, const HostHistory& wanted) {
  auto runs = all_runs(source);
  if (!runs) return std::unexpected(runs.error());
  std::vector<bool> chosen(runs->size(), wanted.containers.empty());
  for (const std::string& text : wanted.containers) {
    const std::vector<bool> found = named(*runs, text);
    if (found.empty()) return missing(*runs, text);
    for (std::size_t i = 0; i < found.size(); ++i) chosen[i] = chosen[i] || found[i];
  }
  std::map<std::string, int> seen;
  Runs out;
  for (std::size_t i = 0; i < runs->size(); ++i) {
    RecordEntry& run = (*runs)[i];
    run.container.engine_id = identity(run);
    const int count = ++seen[run.container.engine_id];
    if (count > 1) run.container.engine_id += "#" + std::to_string(count);
    if (chosen[i]) out.push_back(std::move(run));
  }
  return out;
}

// Turns points into rows of the trace.
class Writer {
 public:
  explicit Writer(const std::function<Status(std::string_view)>& write) : write_(write) {
    write_trace_header(text_);
  }

  HostTraceCounts counts;

  void begin(const ContainerInfo& container) {
    container_ = &container;
    previous_.reset();
    first_.reset();
  }

  Status add(const HistoryPoint& point) {
    if (!first_) {
      first_ = point.sample.limits;
      counts.executions += 1;
    }
    counts.rows += 1;
    // Older versions did not store the original limits.
    const bool has_original = point.host.cpu_cores > 0 || point.host.memory.value > 0;
    TraceRecord row{.container = container_, .time = point.time, .host = point.host,
                    .original = has_original ? point.original : *first_, .sample = &point.sample,
                    .previous = nullptr, .interval_seconds = 0, .phase = {}, .label = {},
                    .label_detail = {}};
    if (previous_) {
      row.previous = &previous_->sample;
      row.interval_seconds = seconds_between(*previous_, point);
    }
    if (point.phase.known()) row.phase = point.phase.index;
    write_trace_row(text_, row);
    previous_ = point;
    return text_.size() >= kFlushBytes ? flush() : Status{};
  }

  Status flush() {
    const Status written = write_(text_);
    text_.clear();
    return written;
  }

 private:
  const std::function<Status(std::string_view)>& write_;
  const ContainerInfo* container_ = nullptr;
  std::optional<HistoryPoint> previous_;
  std::optional<Limits> first_;
  std::string text_;
};

// Each page begins with the last point of the page before.
Answer<void> read_run(const Source& source, const RecordEntry& run, WallTime from, WallTime until,
                      const std::function<Status(const HistoryPoint&)>& add) {
  for (std::optional<WallTime> last;;) {
    const auto page = source.points(run.record, from, until);
    if (!page) return std::unexpected(page.error());
    bool fresh = false;
    for (const HistoryPoint& point : *page) {
      if (point.time < from || point.time > until || (last && point.time <= *last)) continue;
      if (const Status added = add(point); !added) return refusal(added.error());
      last = point.time;
      fresh = true;
    }
    if (!fresh) return {};
    from = *last;
  }
}

Answer<Source> source_of(const HostHistory& wanted) {
  return wanted.state_dir.empty() ? Answer<Source>(daemon_source(wanted))
                                  : stored_source(wanted);
}

WallTime begin_of(const HostHistory& wanted) {
  return std::max(wanted.since.value_or(WallTime{}), WallTime{} + kClockStep);
}

// Reads every page of a table. The first column numbers the rows, and the numbers must rise.
Answer<void> read_table(const Source& source, const std::string& table,
                        const HostHistoryReader& reader) {
  for (std::int64_t last = 0;;) {
    const auto page = source.table(table, last);
    if (!page) return std::unexpected(page.error());
    if (const Status taken = reader.table(table, *page); !taken) return refusal(taken.error());
    if (page->rows.empty()) return {};
    const auto& row = page->rows.back();
    const auto* const number = row.empty() ? nullptr : std::get_if<std::int64_t>(&row.front());
    if (number == nullptr || *number <= last)
      return complaint(
          Exit::failure,
          "table " + table + " of the history is inconsistent: row numbers do not rise");
    last = *number;
  }
}

}  // namespace

Answer<void> read_host_history(const HostHistory& wanted, const HostHistoryReader& reader) {
  const auto source = source_of(wanted);
  if (!source) return std::unexpected(source.error());
  for (const std::string_view table : kPlainTables)
    if (const auto done = read_table(*source, std::string(table), reader); !done) return done;
  const WallTime until = wanted.until.value_or(SystemClock().wall_now());
  const auto runs = all_runs(*source);
  if (!runs) return std::unexpected(runs.error());
  for (const RecordEntry& run : *runs) {
    const auto add = [&](const HistoryPoint& point) { return reader.point(run.record, point); };
    if (const auto done = read_run(*source, run, begin_of(wanted), until, add); !done) return done;
  }
  return {};
}

Answer<HostTraceCounts> write_host_trace(const HostHistory& wanted,
                                         const std::function<Status(std::string_view)>& write) {
  const auto source = source_of(wanted);
  if (!source) return std::unexpected(source.error());
  const WallTime until = wanted.until.value_or(SystemClock().wall_now());
  const auto runs = wanted_runs(*source, wanted);
  if (!runs) return std::unexpected(runs.error());
  Writer writer(write);
  for (const RecordEntry& run : *runs) {
    writer.begin(run.container);
    const auto add = [&](const HistoryPoint& point) { return writer.add(point); };
    if (const auto done = read_run(*source, run, begin_of(wanted), until, add); !done)
      return std::unexpected(done.error());
    if (writer.counts.executions <= kMaxTraceExecutions) continue;
    return complaint(Exit::invalid, "more than " + std::to_string(kMaxTraceExecutions) +
                                        " runs of containers; choose a shorter time with --since "
                                        "and --until");
  }
  if (writer.counts.rows == 0)
    return complaint(Exit::invalid, std::string("nothing was recorded in this time; ") +
                                        (wanted.from_now ? "`cgphase list` shows what is sampled"
                                                         : "choose an earlier --since"));
  if (const Status written = writer.flush(); !written) return refusal(written.error());
  return writer.counts;
}

Answer<HostTrace> host_trace(const HostHistory& wanted) {
  Result<Fd> file = unlinked_file();
  if (!file) return refusal(file.error());
  HostTrace trace{.file = *std::move(file), .path = {}, .counts = {}};
  trace.path = "/proc/self/fd/" + std::to_string(trace.file.get());
  const auto counts = write_host_trace(wanted, [&](std::string_view text) {
    return write_all(trace.file.get(), text);
  });
  if (!counts) return std::unexpected(counts.error());
  trace.counts = *counts;
  return trace;
}

}  // namespace cgphase
