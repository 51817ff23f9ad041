// A page of the history with every column that storage keeps, as the reply to `history` with `full`
// carries it (docs/protocol.md). Pure, any thread; the daemon writes it, the command reads it.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <vector>

#include "base/result.h"
#include "collectors/containers/container_info.h"
#include "storage/history_point.h"
#include "storage/table_page.h"

namespace cgphase {

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
