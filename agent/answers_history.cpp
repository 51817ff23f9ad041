// Answers out of the history: samples, who was recorded, tables as they are.
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/answers.h"
#include "protocol/history.h"

namespace cgphase {

void Answers::history(const Request& request, Respond respond) {
  if (agent_.store() == nullptr) return respond(no_store("history"));
  const bool by_record = request.args.contains("record");
  if (by_record && request.flag("rows")) return record_rows(request, std::move(respond));
  if (by_record) return full_history(request, CgroupId{}, std::move(respond));
  if (request.flag("full")) {
    const auto view = container(request);
    if (!view) return respond(error_reply(view.error()));
    return full_history(request, (*view)->info.id, std::move(respond));
  }
  Result<Asked> asked = asked_about(request);
  if (!asked) return respond(error_reply(asked.error()));
  const WallTime until = request.time("until_seconds").value_or(clock_.wall_now());
  const WallTime from = request.time("from_seconds").value_or(until - std::chrono::minutes(10));
  const int limit = request.count("limit", kHistoryRows, kMostHistoryRows);
  // A refused question drops `respond`, and the client is told that there was no answer.
  (void)agent_.store()->ask([asked = *std::move(asked), from, until, limit,
                             respond = std::move(respond)](Store& store) mutable {
    if (const Status found = find_asked(store, asked); !found)
      return respond(error_reply(found.error()));
    const auto runs = store.runs(asked.subject, from, until);
    if (!runs) return respond(error_reply(runs.error()));
    std::vector<HistoryPoint> points;
    if (!runs->empty()) {
      auto read = store.history_of(runs->front().record, from, until, limit);
      if (!read) return respond(error_reply(read.error()));
      points = *std::move(read);
    }
    respond(told(store, history_of_name(asked.container, *runs, points, asked.gone())));
  });
}

// The points of one record of any boot in the form of those of a container that lives.
void Answers::record_rows(const Request& request, Respond respond) {
  const WallTime from = request.time("from_seconds").value_or(WallTime{});
  const WallTime until = request.time("until_seconds").value_or(clock_.wall_now());
  const int limit = request.count("limit", kHistoryRows, kMostHistoryRows);
  const auto record = static_cast<std::int64_t>(*request.number("record"));
  (void)agent_.store()->ask([record, from, until, limit,
                             respond = std::move(respond)](Store& store) {
    const auto run = store.records(record - 1, 1);
    if (!run) return respond(error_reply(run.error()));
    if (run->empty() || run->front().record != record)
      return respond(error_reply(Exit::no_container,
                                 "no record " + std::to_string(record) + " in the history"));
    const auto points = store.history_of(record, from, until, limit);
    if (!points) return respond(error_reply(points.error()));
    respond(told(store, history_of_record(run->front(), *points)));
  });
}

// A page of one record of any boot, or of a container that lives.
void Answers::full_history(const Request& request, CgroupId id, Respond respond) {
  const WallTime from = request.time("from_seconds").value_or(WallTime{});
  const WallTime until = request.time("until_seconds").value_or(clock_.wall_now());
  const int limit = request.count("limit", kHistoryPagePoints, kHistoryPagePoints);
  const std::optional<double> record = request.number("record");
  (void)agent_.store()->ask([record, id, from, until, limit,
                               respond = std::move(respond)](Store& store) {
    const auto points =
        record ? store.history_of(static_cast<std::int64_t>(*record), from, until, limit)
               : store.history(id, from, until, limit);
    respond(points ? told(store, ok_reply(history_page(*points))) : error_reply(points.error()));
  });
}

void Answers::records(const Request& request, Respond respond) {
  if (agent_.store() == nullptr) return respond(no_store("records"));
  const auto after = static_cast<std::int64_t>(request.number("after").value_or(0));
  (void)agent_.store()->ask([after, respond = std::move(respond)](Store& store) {
    const auto found = store.records(after, kRecordsPage);
    if (!found) return respond(error_reply(found.error()));
    std::vector<RecordEntry> entries;
    for (const StoredRecord& record : *found)
      entries.push_back({record.record, record.stored.container, record.stored.first_seen});
    respond(told(store, ok_reply(records_page(entries))));
  });
}

void Answers::table(const Request& request, Respond respond) {
  if (agent_.store() == nullptr) return respond(no_store("table"));
  const auto after = static_cast<std::int64_t>(request.number("after").value_or(0));
  (void)agent_.store()->ask([name = *request.text("name"), after,
                               respond = std::move(respond)](Store& store) {
    const auto page = store.table_page(name, after);
    respond(page ? told(store, ok_reply(table_reply(*page))) : error_reply(page.error()));
  });
}

}  // namespace cgphase
