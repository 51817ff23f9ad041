// Pages of the history as replies carry them (docs/internals/protocol.md), with what is told of a
// point or with every column that storage keeps. Pure, any thread: the daemon answers with them,
// the command reads those, and makes the same of the files of a daemon that has stopped.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/result.h"
#include "collectors/containers/container_info.h"
#include "storage/history_point.h"
#include "storage/stored_record.h"
#include "storage/table_page.h"

namespace cgphase {

// Points of a reply to `history` where the request has no limit, and at most.
inline constexpr int kHistoryRows = 600, kMostHistoryRows = 7200;

// The reply to `history` by name: `points`, oldest first, of the first of `runs`, which are its
// container and those before it, newest first, or none. `gone`: of the container only who it was is
// known.
nlohmann::json history_of_name(const ContainerInfo& container,
                               std::span<const StoredRecord> runs,
                               std::span<const HistoryPoint> points, bool gone);
// The reply to `history` by record, with `rows`.
nlohmann::json history_of_record(const StoredRecord& run, std::span<const HistoryPoint> points);

// The rows of a page have at most so many bytes of JSON, and it has at most so many of them; one
// point it has always, where there is one.
inline constexpr std::size_t kHistoryPageBytes = 60 * 1024;
inline constexpr int kHistoryPagePoints = 120;

// One entry of a reply to `records`: who was recorded, in which run of it.
struct RecordEntry {
  std::int64_t record = 0;
  ContainerInfo container;  // names, path, engine and image
  WallTime first_seen;
};
inline constexpr int kRecordsPage = 100;

// {"columns": [name...], "samples": [[value...]...]}: a value is null where nothing was read.
// Takes points from the front until the page is full.
nlohmann::json history_page(std::span<const HistoryPoint> points);
// The points of such a page; their samples carry the id {0, 0}. Columns that this version does not
// know are passed over, those it lacks are absent. Errors: invalid (not such a page).
Result<std::vector<HistoryPoint>> parse_history_page(const nlohmann::json& body);

// {"records": [...]}, and back. Errors: invalid.
nlohmann::json records_page(std::span<const RecordEntry> records);
Result<std::vector<RecordEntry>> parse_records_page(const nlohmann::json& body);

// {"columns": [[name, type]...], "rows": [[value...]...]}, and back. Errors: invalid.
nlohmann::json table_reply(const TablePage& page);
Result<TablePage> parse_table_reply(const nlohmann::json& body);

// A point for tables of plain values: every column of history_page(), its name as SQL likes it
// (cpu_usage_usec, limits_cpu_max), cpu.max as the kernel writes it.
std::vector<TableColumn> plain_columns();
std::vector<SqlValue> plain_values(const HistoryPoint& point);

}  // namespace cgphase
