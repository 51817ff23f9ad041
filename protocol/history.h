// Pages of the history, as in replies (docs/internals/protocol.md): points for people, or every
// column of storage. Pure, any thread. The daemon answers with them. The command reads them, and
// makes them from the files of a stopped daemon.
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

// Points in a reply to `history`: without a limit in the request, and at most.
inline constexpr int kHistoryRows = 600, kMostHistoryRows = 7200;

// Makes the reply to `history` by name. `runs` are the containers of that name, newest first, or
// none. `points` are those of the newest one, oldest first. `gone`: the container does not run.
nlohmann::json history_of_name(const ContainerInfo& container,
                               std::span<const StoredRecord> runs,
                               std::span<const HistoryPoint> points, bool gone);
// Makes the reply to `history` by record, with `rows`.
nlohmann::json history_of_record(const StoredRecord& run, std::span<const HistoryPoint> points);

// The most bytes of JSON and the most points in a page. A page has at least one point if there is
// one.
inline constexpr std::size_t kHistoryPageBytes = 60 * 1024;
inline constexpr int kHistoryPagePoints = 120;

// One entry of a reply to `records`: one run of a recorded container.
struct RecordEntry {
  std::int64_t record = 0;
  ContainerInfo container;  // names, path, engine and image
  WallTime first_seen;
};
inline constexpr int kRecordsPage = 100;

// Returns {"columns": [name...], "samples": [[value...]...]}. A value that was not read is null.
// Takes points from the front until the page is full.
nlohmann::json history_page(std::span<const HistoryPoint> points);
// Returns the points of such a page. Their samples have the id {0, 0}. Unknown columns are ignored,
// and missing ones are absent values. Errors: invalid (not such a page).
Result<std::vector<HistoryPoint>> parse_history_page(const nlohmann::json& body);

// {"records": [...]}, and back. Errors: invalid.
nlohmann::json records_page(std::span<const RecordEntry> records);
Result<std::vector<RecordEntry>> parse_records_page(const nlohmann::json& body);

// {"columns": [[name, type]...], "rows": [[value...]...]}, and back. Errors: invalid.
nlohmann::json table_reply(const TablePage& page);
Result<TablePage> parse_table_reply(const nlohmann::json& body);

// A point for tables of plain values: every column of history_page(), with a name that suits SQL
// (cpu_usage_usec, limits_cpu_max), and cpu.max as the kernel writes it.
std::vector<TableColumn> plain_columns();
std::vector<SqlValue> plain_values(const HistoryPoint& point);

}  // namespace cgphase
