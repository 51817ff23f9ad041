#include "cli/commands/history_source.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "cli/daemon_client.h"
#include "cli/host_history.h"
#include "protocol/events.h"
#include "protocol/history.h"
#include "protocol/report.h"
#include "storage/store.h"

namespace cgphase {
namespace {

using nlohmann::json;

// Answers requests from the files of a stopped daemon. Which containers still run is not known
// then.
class StoredAnswers {
 public:
  explicit StoredAnswers(Store history) : history_(std::move(history)) {}

  OrComplaint<json> answer(const Request& request) {
    auto reply = find(request);
    if (history_.damaged_count() > 0 && !std::exchange(warned_, true))
      complain(Exit::ok, kDamagedLeftOut);
    return reply;
  }

 private:
  OrComplaint<json> find(const Request& request) {
    if (const auto* one = std::get_if<HistoryRequest>(&request))
      return one->record ? record_rows(*one) : history(*one);
    if (const auto* one = std::get_if<ExplainRequest>(&request)) return explain(*one);
    if (const auto* one = std::get_if<EventsRequest>(&request)) return events(*one);
    return complaint(Exit::usage, "this needs a running daemon: leave out --state-dir");
  }

  struct Target {
    StoredRecord record;
    Store::Subject subject;
  };

  // The last container of a name, and the subject that selects its rows.
  OrComplaint<Target> target_of(const std::string& text) {
    auto last = history_.last_container(text);
    if (!last) return complaint(last.error());
    if (!*last)
      return complaint(Exit::no_container, "no container '" + printable(text) + "' in the history");
    Target target{.record = **std::move(last), .subject = {}};
    target.subject.record = target.record.record;
    target.subject.name = target.record.stored.container.name;
    target.subject.engine = target.record.stored.container.engine;
    return target;
  }

  OrComplaint<json> history(const HistoryRequest& request) {
    const auto target = target_of(*request.container);
    if (!target) return std::unexpected(target.error());
    const WallTime from = from_of(request), until = until_of(request);
    const auto runs = history_.runs(target->subject, from, until);
    if (!runs) return complaint(runs.error());
    std::vector<HistoryPoint> points;
    if (!runs->empty()) {
      auto read = history_.history_of(runs->front().record, from, until, rows_of(request));
      if (!read) return complaint(read.error());
      points = *std::move(read);
    }
    return history_of_name(target->record.stored.container, *runs, points, true);
  }

  OrComplaint<json> record_rows(const HistoryRequest& request) {
    const std::int64_t record = *request.record;
    const auto run = history_.records(record - 1, 1);
    if (!run) return complaint(run.error());
    if (run->empty() || run->front().record != record)
      return complaint(Exit::no_container,
                       "no record " + std::to_string(record) + " in the history");
    const auto points =
        history_.history_of(record, from_of(request), until_of(request), rows_of(request));
    if (!points) return complaint(points.error());
    return history_of_record(run->front(), *points);
  }

  OrComplaint<json> explain(const ExplainRequest& request) {
    const auto target = target_of(request.container);
    if (!target) return std::unexpected(target.error());
    ExplainReport report{.now = {}, .at = time_of(request.at_seconds), .gone = true,
                         .stopped = true};
    report.now.container = target->record.stored.container;
    auto entries = history_.entries(target->subject, report.at.value_or(clock_.wall_now()),
                                    kExplainDecisions);
    if (!entries) return complaint(entries.error());
    report.decisions = *std::move(entries);
    return to_json(report);
  }

  OrComplaint<json> events(const EventsRequest& request) {
    const Result<EventSpan> span = event_span(request);
    if (!span) return complaint(span.error());
    std::optional<Store::Subject> subject;
    if (request.container) {
      const auto target = target_of(*request.container);
      if (!target) return std::unexpected(target.error());
      subject = target->subject;
    }
    const auto events = history_.events(subject, *span);
    if (!events) return complaint(events.error());
    return events_page(*events, events->size() == static_cast<std::size_t>(span->limit));
  }

  static WallTime from_of(const HistoryRequest& request) {
    return time_of(request.from_seconds).value_or(WallTime{});
  }
  WallTime until_of(const HistoryRequest& request) const {
    return time_of(request.until_seconds).value_or(clock_.wall_now());
  }
  static int rows_of(const HistoryRequest& request) {
    return bounded(request.limit, kHistoryRows, kMostHistoryRows);
  }

  Store history_;
  SystemClock clock_;
  bool warned_ = false;
};

}  // namespace

OrComplaint<Ask> history_source(const CommonOptions& options, const std::string& state_dir) {
  if (state_dir.empty())
    return [socket = options.socket](const Request& request) {
      return ask_daemon(socket, request);
    };
  Result<Store> opened = Store::open_for_reading(state_dir + "/history.db");
  if (!opened) return complaint(opened.error());
  const auto answers = std::make_shared<StoredAnswers>(*std::move(opened));
  return [answers](const Request& request) { return answers->answer(request); };
}

}  // namespace cgphase
