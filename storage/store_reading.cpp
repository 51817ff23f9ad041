// What a Store tells.
#include <nlohmann/json.hpp>
#include <utility>

#include "storage/plain_tables.h"
#include "storage/store_impl.h"

namespace cgphase {

Result<nlohmann::json> Store::load_learned(const std::string& image) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.load_learned(image); });
}

namespace {

// Reads rows of one container, or of all; a container that is not known has none.
template <class Entry, class Read>
Result<std::vector<Entry>> read_of(OpenFile& file, std::optional<CgroupId> container, Read read) {
  if (!container) return read(std::nullopt);
  const Result<std::optional<std::int64_t>> row = file.catalog.find(*container);
  if (!row) return std::unexpected(row.error());
  if (!*row) return std::vector<Entry>{};
  return read(*row);
}

}  // namespace

Result<std::vector<JournalDecision>> Store::decisions(std::optional<CgroupId> container,
                                                      WallTime until, int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return read_of<JournalDecision>(file, container, [&](std::optional<std::int64_t> row) {
      return file.journal.decisions(row, until, limit);
    });
  });
}

Result<std::vector<JournalOutcome>> Store::outcomes(std::optional<CgroupId> container,
                                                    WallTime until, int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return read_of<JournalOutcome>(file, container, [&](std::optional<std::int64_t> row) {
      return file.journal.outcomes(row, until, limit);
    });
  });
}

Result<std::vector<JournalEntry>> Store::entries(const Subject& subject, WallTime until,
                                                 int limit) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<JournalEntry>> {
    const Result<std::vector<std::int64_t>> rows = file.catalog.rows_of(subject);
    if (!rows) return std::unexpected(rows.error());
    return file.journal.entries(*rows, until, limit);
  });
}

Result<std::vector<JournalEvent>> Store::events(const std::optional<Subject>& subject,
                                                const EventSpan& span) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<JournalEvent>> {
    if (!subject) return file.journal.events(span);
    const Result<std::vector<std::int64_t>> rows = file.catalog.rows_of(*subject);
    if (!rows) return std::unexpected(rows.error());
    return file.journal.events(*rows, span);
  });
}

Result<std::vector<StoredRecord>> Store::runs(const Subject& subject, WallTime from,
                                              WallTime until) {
  return impl_->with_file([&](OpenFile& file) -> Result<std::vector<StoredRecord>> {
    return runs_of(file.catalog, subject, [&](std::int64_t row) -> Result<bool> {
      const auto any = file.history.read({row, record_id(row)}, from, until, 1);
      if (!any) return std::unexpected(any.error());
      return !any->empty();
    });
  });
}

const std::optional<std::string>& Store::unreadable() const { return impl_->unreadable_; }

Result<std::optional<StoredRecord>> Store::last_container(const std::string& text) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.last(text); });
}

Result<std::vector<HistoryPoint>> Store::history(CgroupId container, WallTime from, WallTime until,
                                                 int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return read_of<HistoryPoint>(file, container, [&](std::optional<std::int64_t> row) {
      return file.history.read({*row, container}, from, until, limit);
    });
  });
}

Result<std::vector<StoredContainer>> Store::containers() {
  return impl_->with_file([](OpenFile& file) { return file.catalog.list(); });
}

Result<std::vector<StoredRecord>> Store::records(std::int64_t after, int limit) {
  return impl_->with_file([&](OpenFile& file) { return file.catalog.records(after, limit); });
}

Result<std::vector<HistoryPoint>> Store::history_of(std::int64_t record, WallTime from,
                                                    WallTime until, int limit) {
  return impl_->with_file([&](OpenFile& file) {
    return file.history.read({record, record_id(record)}, from, until, limit);
  });
}

Result<TablePage> Store::table_page(const std::string& table, std::int64_t after) {
  return impl_->with_file(
      [&](OpenFile& file) { return read_table_page(file.connection, table, after); });
}

Result<std::uint64_t> Store::last_decision_id() {
  return impl_->with_file([](OpenFile& file) { return file.journal.last_decision_id(); });
}

Result<std::optional<WallTime>> Store::last_written() {
  return impl_->with_file([](OpenFile& file) { return file.journal.last_written(); });
}

Status Store::end_open_decisions(WallTime now) {
  return impl_->with_file([&](OpenFile& file) { return file.journal.end_open(now); });
}

}  // namespace cgphase
