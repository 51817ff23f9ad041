// Answers from the history: samples, recorded containers, tables.
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/answers.h"
#include "protocol/history.h"

namespace cgphase {

void Answers::answer(const HistoryRequest& request, const Peer&, const Respond& respond) {
  if (agent_.store() == nullptr) return respond(no_store("history"));
  if (request.record && request.rows) return record_rows(request, respond);
  if (request.record) return full_history(request, CgroupId{}, respond);
  if (request.full) {
    const auto view = container(*request.container);
    if (!view) return respond(error_reply(view.error()));
    return full_history(request, (*view)->info.id, respond);
  }
  Result<Asked> asked = asked_about(*request.container);
  if (!asked) return respond(error_reply(asked.error()));
  const WallTime until = time_of(request.until_seconds).value_or(clock_.wall_now());
  const WallTime from = time_of(request.from_seconds).value_or(until - std::chrono::minutes(10));
  const int limit = bounded(request.limit, kHistoryRows, kMostHistoryRows);
  // A refused question drops `respond`, and the client gets an error.
  (void)agent_.store()->query([asked = *std::move(asked), from, until, limit,
                             respond](Store& store) mutable {
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
    respond(history_of_name(asked.container, *runs, points, asked.gone()));
  });
}

// Sends the points of one record of any boot, as for a live container.
void Answers::record_rows(const HistoryRequest& request, const Respond& respond) {
  const WallTime from = time_of(request.from_seconds).value_or(WallTime{});
  const WallTime until = time_of(request.until_seconds).value_or(clock_.wall_now());
  const int limit = bounded(request.limit, kHistoryRows, kMostHistoryRows);
  const std::int64_t record = *request.record;
  (void)agent_.store()->query([record, from, until, limit, respond](Store& store) {
    const auto run = store.records(record - 1, 1);
    if (!run) return respond(error_reply(run.error()));
    if (run->empty() || run->front().record != record)
      return respond(error_reply(Exit::no_container,
                                 "no record " + std::to_string(record) + " in the history"));
    const auto points = store.history_of(record, from, until, limit);
    if (!points) return respond(error_reply(points.error()));
    respond(history_of_record(run->front(), *points));
  });
}

// Sends a page of one record of any boot, or of a live container.
void Answers::full_history(const HistoryRequest& request, CgroupId id, const Respond& respond) {
  const WallTime from = time_of(request.from_seconds).value_or(WallTime{});
  const WallTime until = time_of(request.until_seconds).value_or(clock_.wall_now());
  const int limit = bounded(request.limit, kHistoryPagePoints, kHistoryPagePoints);
  const std::optional<std::int64_t> record = request.record;
  (void)agent_.store()->query([record, id, from, until, limit, respond](Store& store) {
    const auto points =
        record ? store.history_of(*record, from, until, limit)
               : store.history(id, from, until, limit);
    respond(points ? ok_reply(history_page(*points))
                   : error_reply(points.error()));
  });
}

void Answers::answer(const RecordsRequest& request, const Peer&, const Respond& respond) {
  if (agent_.store() == nullptr) return respond(no_store("records"));
  const std::int64_t after = request.after.value_or(0);
  (void)agent_.store()->query([after, respond](Store& store) {
    const auto found = store.records(after, kRecordsPage);
    if (!found) return respond(error_reply(found.error()));
    std::vector<RecordEntry> entries;
    for (const StoredRecord& record : *found)
      entries.push_back({record.record, record.stored.container, record.stored.first_seen});
    respond(ok_reply(records_page(entries)));
  });
}

void Answers::answer(const TableRequest& request, const Peer&, const Respond& respond) {
  if (agent_.store() == nullptr) return respond(no_store("table"));
  const std::int64_t after = request.after.value_or(0);
  (void)agent_.store()->query([name = request.name, after, respond](Store& store) {
    const auto page = store.table_page(name, after);
    respond(page ? ok_reply(table_reply(*page))
                 : error_reply(page.error()));
  });
}

}  // namespace cgphase
