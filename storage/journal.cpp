#include "storage/journal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "cgroupfs/kernel_text.h"

namespace cgphase {
namespace {

// Column names once, for writing and for reading.
std::string limit_columns(const std::string& side) {
  std::string columns;
  for (const char* knob : {"cpu_max", "cpu_max_burst", "cpu_weight", "memory_max", "memory_high",
                           "memory_low", "memory_min"})
    columns += "," + side + "_" + knob;
  return columns;
}

std::string decision_columns() {
  std::string columns =
      "time_ns,decision_id,monotonic_ns,resource,direction,reason,verdict,phase_state,"
      "phase_index,phase_distance,phase_margin,usage,statistic,sample_count" +
      limit_columns("old") + limit_columns("new") + ",writer";
  for (std::size_t fact = 0; fact < kFactCount; ++fact)
    columns += std::string(",fact_") + to_string(static_cast<Fact>(fact));
  return columns;
}

constexpr const char* kOutcomeColumns = "time_ns,decision_id,monotonic_ns,kind,detail";

std::string insert_into(const std::string& table, const std::string& columns) {
  std::string places = "?";
  for (const char letter : columns)
    if (letter == ',') places += ",?";
  return "INSERT INTO " + table + " (container," + columns + ") VALUES (?," + places + ")";
}

std::string select_from(const std::string& table, const std::string& columns,
                        const std::string& condition) {
  return "SELECT device,inode," + columns + " FROM " + table +
         " JOIN container USING (container) WHERE time_ns <= ?1 " + condition +
         " ORDER BY time_ns DESC, " + table + " DESC LIMIT ?2";
}

// The last two columns are those of a JournalEvent.
std::string select_events(const std::string& table, const std::string& columns,
                          const std::string& condition) {
  return "SELECT device,inode," + columns + ",name," + table + " FROM " + table +
         " JOIN container USING (container) WHERE time_ns BETWEEN ?1 AND ?2"
         " AND (time_ns < ?2 OR " + table + " < ?3) " + condition +
         " ORDER BY time_ns DESC, " + table + " DESC LIMIT ?4";
}

// Only the newest decisions: each run ends those of earlier runs, and outcomes of old decisions may
// be deleted.
std::string end_open_sql() {
  return std::string("INSERT INTO outcome (container,") + kOutcomeColumns +
         ") SELECT container,?1,decision_id,monotonic_ns,?2,?3 FROM decision"
         " WHERE decision > (SELECT max(decision) FROM decision) - 1000 AND NOT EXISTS"
         " (SELECT 1 FROM outcome WHERE outcome.decision_id = decision.decision_id AND"
         " outcome.container = decision.container AND"
         " (outcome.kind <> ?4 OR decision.direction = ?5)) ORDER BY decision";
}

constexpr int kOutcomeTable = 2;  // of EventPlace
constexpr int kFirstOldLimit = 16, kFirstNewLimit = 23, kWriter = 30, kFirstFact = 31;

// The enumerator with this word. to_string() of a number after the last one is empty, so a new
// enumerator needs no change here.
template <class Enum>
std::optional<Enum> parse_word(std::string_view word) {
  for (int value = 0; *to_string(static_cast<Enum>(value)) != '\0'; ++value)
    if (word == to_string(static_cast<Enum>(value))) return static_cast<Enum>(value);
  return std::nullopt;
}

// Sets `value` to the enumerator of a column; an unknown word sets `sound` to false.
template <class Enum>
void read_word(const Statement& row, int column, Enum& value, bool& sound) {
  const std::optional<Enum> found = parse_word<Enum>(row.text(column));
  sound = sound && found.has_value();
  if (found) value = *found;
}

// Unsigned numbers keep their bits in SQLite's signed integers.
std::uint64_t unsigned_at(const Statement& row, int column) {
  return std::bit_cast<std::uint64_t>(row.integer(column));
}

std::optional<std::string> writer_text(const JournalDecision& entry) {
  if (entry.writer.empty()) return std::nullopt;
  return escape_name(std::string_view(entry.writer).substr(0, kMaxDetailBytes));
}

template <class Limit>
std::optional<std::string> limit_text(const std::optional<Limit>& limit) {
  if (!limit) return std::nullopt;
  return to_text(*limit);
}

std::optional<std::int64_t> burst_number(const Limits& limits) {
  if (!limits.cpu_max_burst) return std::nullopt;
  return as_signed(limits.cpu_max_burst->value);
}

std::optional<std::int64_t> weight_number(const Limits& limits) {
  if (!limits.cpu_weight) return std::nullopt;
  return std::int64_t{*limits.cpu_weight};
}

void read_memory_limit(const Statement& row, int column, std::optional<MemoryLimit>& limit,
                       bool& sound) {
  if (row.is_null(column)) return;
  limit = parse_limit(row.text(column));
  sound = sound && limit.has_value();
}

Limits limits_at(const Statement& row, int first, bool& sound) {
  Limits limits;
  if (!row.is_null(first)) {
    limits.cpu_max = parse_cpu_max(row.text(first));
    sound = sound && limits.cpu_max.has_value();
  }
  if (!row.is_null(first + 1)) limits.cpu_max_burst = Microseconds{unsigned_at(row, first + 1)};
  if (!row.is_null(first + 2))
    limits.cpu_weight = static_cast<std::uint32_t>(row.integer(first + 2));
  read_memory_limit(row, first + 3, limits.memory_max, sound);
  read_memory_limit(row, first + 4, limits.memory_high, sound);
  read_memory_limit(row, first + 5, limits.memory_low, sound);
  read_memory_limit(row, first + 6, limits.memory_min, sound);
  return limits;
}

WallTime wall_time(std::int64_t ns) { return WallTime(std::chrono::nanoseconds(ns)); }
MonotonicTime monotonic_time(std::int64_t ns) {
  return MonotonicTime(std::chrono::nanoseconds(ns));
}

std::optional<JournalDecision> decision_in(const Statement& row) {
  bool sound = true;
  JournalDecision entry;
  Decision& decision = entry.decision;
  decision.container = {unsigned_at(row, 0), unsigned_at(row, 1)};
  entry.time = wall_time(row.integer(2));
  decision.decision_id = unsigned_at(row, 3);
  decision.time = monotonic_time(row.integer(4));
  read_word(row, 5, decision.resource, sound);
  read_word(row, 6, decision.direction, sound);
  read_word(row, 7, decision.reason, sound);
  read_word(row, 8, decision.verdict, sound);
  read_word(row, 9, decision.phase.state, sound);
  decision.phase.index = static_cast<int>(row.integer(10));
  decision.phase.distance = row.real(11);
  decision.phase.margin = row.real(12);
  decision.usage = row.real(13);
  decision.statistic = row.real(14);
  decision.sample_count = row.real(15);
  decision.old_limits = limits_at(row, kFirstOldLimit, sound);
  decision.new_limits = limits_at(row, kFirstNewLimit, sound);
  if (!row.is_null(kWriter)) entry.writer = unescape_name(row.text(kWriter));
  int column = kFirstFact;
  for (std::optional<double>& fact : decision.evidence.facts) {
    if (!row.is_null(column)) fact = row.real(column);
    ++column;
  }
  return sound ? std::optional(entry) : std::nullopt;
}

std::optional<JournalOutcome> outcome_in(const Statement& row) {
  bool sound = true;
  JournalOutcome entry;
  entry.outcome.container = {unsigned_at(row, 0), unsigned_at(row, 1)};
  entry.time = wall_time(row.integer(2));
  entry.outcome.decision_id = unsigned_at(row, 3);
  entry.outcome.time = monotonic_time(row.integer(4));
  read_word(row, 5, entry.outcome.kind, sound);
  entry.outcome.detail = unescape_name(row.text(6));
  return sound ? std::optional(entry) : std::nullopt;
}

std::optional<JournalEvent> event_in(const Statement& row, int table) {
  JournalEvent event;
  if (table == kOutcomeTable) {
    const std::optional<JournalOutcome> outcome = outcome_in(row);
    if (!outcome) return std::nullopt;
    event.what = *outcome;
  } else {
    const std::optional<JournalDecision> decision = decision_in(row);
    if (!decision) return std::nullopt;
    event.what = *decision;
  }
  const int columns = row.column_count();
  event.name = unescape_name(row.text(columns - 2));
  event.place = {row.integer(2), table, row.integer(columns - 1)};
  return event;
}

// The first row of a table that is not before `span.before`, among rows of that time.
std::int64_t first_not_wanted(const EventSpan& span, int table) {
  if (!span.before || ns_of(span.until) < span.before->time_ns) return INT64_MAX;
  if (table == span.before->table) return span.before->row;
  return table < span.before->table ? INT64_MAX : INT64_MIN;
}

std::int64_t last_time(const EventSpan& span) {
  return span.before ? std::min(ns_of(span.until), span.before->time_ns) : ns_of(span.until);
}

void keep_newest(std::vector<JournalEvent>& events, int limit) {
  std::ranges::sort(events, std::greater<>(), &JournalEvent::place);
  if (events.size() > static_cast<std::size_t>(std::max(limit, 0)))
    events.resize(static_cast<std::size_t>(std::max(limit, 0)));
}

template <class Entry, class Read>
Result<std::vector<Entry>> read_rows(Statement& rows, Read read, Journal::Damaged& damaged) {
  std::vector<Entry> entries;
  for (;;) {
    const Result<bool> row = rows.next();
    if (!row) return std::unexpected(row.error());
    if (!*row) return entries;
    if (std::optional<Entry> entry = read(rows))
      entries.push_back(std::move(*entry));
    else
      damaged.emplace(rows.integer(2), rows.integer(3));
  }
}

void keep_newest(std::vector<JournalDecision>& decisions, int limit) {
  std::ranges::sort(decisions, [](const JournalDecision& a, const JournalDecision& b) {
    return std::pair(a.time, a.decision.decision_id) > std::pair(b.time, b.decision.decision_id);
  });
  if (decisions.size() > static_cast<std::size_t>(std::max(limit, 0)))
    decisions.resize(static_cast<std::size_t>(std::max(limit, 0)));
}

void begin_rows(Statement& all, Statement& of_one, std::optional<std::int64_t> container,
                WallTime until, int limit) {
  if (container)
    of_one.begin(ns_of(until), std::max(limit, 0), *container);
  else
    all.begin(ns_of(until), std::max(limit, 0));
}

}  // namespace

std::string to_text(const MemoryLimit& limit) {
  return limit.bytes ? std::to_string(limit.bytes->value) : "max";
}

std::string to_text(const CpuMax& limit) {
  return (limit.quota ? std::to_string(limit.quota->value) : "max") + " " +
         std::to_string(limit.period.value);
}

Result<std::int64_t> Journal::Rows::drop_oldest(std::int64_t keep, std::int64_t at_most) {
  const Result<RowSpan> rows = read_row_span(span);
  if (!rows) return std::unexpected(rows.error());
  const std::int64_t excess = std::min(rows->count() - keep, at_most);
  if (excess <= 0) return 0;
  if (Status dropped = drop.run(rows->first + excess); !dropped)
    return std::unexpected(dropped.error());
  return excess;
}

Result<Journal> Journal::prepare(Connection& connection) {
  Journal journal;
  std::vector<std::pair<Statement*, std::string>> wanted = {
      {&journal.read_outcomes_of_,
       "SELECT device,inode," + std::string(kOutcomeColumns) + " FROM outcome JOIN container USING"
       " (container) WHERE decision_id = ?1 AND device = ?2 AND inode = ?3 ORDER BY outcome"},
      {&journal.last_id_,
       "SELECT max((SELECT ifnull(max(decision_id), 0) FROM decision),"
       " (SELECT ifnull(max(decision_id), 0) FROM refusal),"
       " (SELECT ifnull(max(decision_id), 0) FROM outcome))"},
      {&journal.last_written_, "SELECT max(time_ns) FROM outcome WHERE kind = '" +
                                   std::string(to_string(OutcomeKind::written)) + "'"},
      {&journal.end_open_, end_open_sql()},
  };
  const auto want = [&](Rows& rows, const std::string& table, const std::string& columns) {
    wanted.push_back({&rows.add, insert_into(table, columns)});
    wanted.push_back({&rows.read, select_from(table, columns, "")});
    wanted.push_back({&rows.read_container, select_from(table, columns, "AND container = ?3")});
    wanted.push_back({&rows.events, select_events(table, columns, "")});
    wanted.push_back({&rows.events_container, select_events(table, columns, "AND container = ?5")});
    wanted.push_back({&rows.span, row_span_sql(table)});
    wanted.push_back({&rows.drop, "DELETE FROM " + table + " WHERE " + table + " < ?"});
  };
  want(journal.decisions_, "decision", decision_columns());
  want(journal.refusals_, "refusal", decision_columns());
  want(journal.outcomes_, "outcome", kOutcomeColumns);
  if (Status prepared = connection.prepare_all(wanted); !prepared)
    return std::unexpected(prepared.error());
  return journal;
}

Status Journal::add(std::int64_t container, const JournalDecision& entry) {
  const Decision& decision = entry.decision;
  const Limits &old_limits = decision.old_limits, &new_limits = decision.new_limits;
  Rows& rows = decision.verdict == Verdict::allowed ? decisions_ : refusals_;
  const auto run = [&](const auto&... facts) {
    return rows.add.run(
        container, ns_of(entry.time), as_signed(decision.decision_id), ns_of(decision.time),
        std::string_view(to_string(decision.resource)),
        std::string_view(to_string(decision.direction)),
        std::string_view(to_string(decision.reason)), std::string_view(to_string(decision.verdict)),
        std::string_view(to_string(decision.phase.state)), decision.phase.index,
        decision.phase.distance, decision.phase.margin, decision.usage, decision.statistic,
        decision.sample_count, limit_text(old_limits.cpu_max), burst_number(old_limits),
        weight_number(old_limits), limit_text(old_limits.memory_max),
        limit_text(old_limits.memory_high), limit_text(old_limits.memory_low),
        limit_text(old_limits.memory_min), limit_text(new_limits.cpu_max),
        burst_number(new_limits), weight_number(new_limits), limit_text(new_limits.memory_max),
        limit_text(new_limits.memory_high), limit_text(new_limits.memory_low),
        limit_text(new_limits.memory_min), writer_text(entry), facts...);
  };
  return std::apply(run, decision.evidence.facts);
}

Status Journal::add(std::int64_t container, const JournalOutcome& entry) {
  const Outcome& outcome = entry.outcome;
  const std::string_view detail = std::string_view(outcome.detail).substr(0, kMaxDetailBytes);
  return outcomes_.add.run(container, ns_of(entry.time), as_signed(outcome.decision_id),
                           ns_of(outcome.time), std::string_view(to_string(outcome.kind)),
                           escape_name(detail));
}

Result<std::vector<JournalDecision>> Journal::decisions(std::optional<std::int64_t> container,
                                                        WallTime until, int limit) {
  std::vector<JournalDecision> found;
  for (Rows* rows : {&decisions_, &refusals_}) {
    Statement& statement = container ? rows->read_container : rows->read;
    begin_rows(rows->read, rows->read_container, container, until, limit);
    Result<std::vector<JournalDecision>> more =
        read_rows<JournalDecision>(statement, decision_in, damaged_);
    if (!more) return more;
    std::move(more->begin(), more->end(), std::back_inserter(found));
  }
  keep_newest(found, limit);
  return found;
}

Result<std::vector<JournalOutcome>> Journal::outcomes(std::optional<std::int64_t> container,
                                                      WallTime until, int limit) {
  begin_rows(outcomes_.read, outcomes_.read_container, container, until, limit);
  return read_rows<JournalOutcome>(container ? outcomes_.read_container : outcomes_.read,
                                   outcome_in, damaged_);
}

Status Journal::add_outcomes(JournalEntry& entry) {
  const Decision& decision = entry.decision.decision;
  read_outcomes_of_.begin(as_signed(decision.decision_id), as_signed(decision.container.device),
                          as_signed(decision.container.inode));
  Result<std::vector<JournalOutcome>> outcomes =
      read_rows<JournalOutcome>(read_outcomes_of_, outcome_in, damaged_);
  if (!outcomes) return std::unexpected(outcomes.error());
  for (JournalOutcome& outcome : *outcomes)
    (outcome.outcome.kind == OutcomeKind::written ? entry.written : entry.end) = std::move(outcome);
  return {};
}

Result<std::vector<JournalEntry>> Journal::entries(const std::vector<std::int64_t>& containers,
                                                   WallTime until, int limit) {
  std::vector<JournalDecision> found;
  for (const std::int64_t container : containers) {
    Result<std::vector<JournalDecision>> more = decisions(container, until, limit);
    if (!more) return std::unexpected(more.error());
    std::move(more->begin(), more->end(), std::back_inserter(found));
    keep_newest(found, limit);
  }
  std::vector<JournalEntry> entries;
  for (JournalDecision& decision : found) {
    JournalEntry& entry = entries.emplace_back(std::move(decision));
    if (Status added = add_outcomes(entry); !added) return std::unexpected(added.error());
  }
  return entries;
}

Result<std::vector<JournalEvent>> Journal::events_of(std::optional<std::int64_t> container,
                                                     const EventSpan& span) {
  std::vector<JournalEvent> found;
  const std::array<Rows*, 3> tables = {&decisions_, &refusals_, &outcomes_};
  for (int table = 0; table <= kOutcomeTable; ++table) {
    Rows& rows = *tables[static_cast<std::size_t>(table)];
    Statement& statement = container ? rows.events_container : rows.events;
    const std::int64_t from = ns_of(span.from), until = last_time(span);
    const std::int64_t end = first_not_wanted(span, table);
    if (container) statement.begin(from, until, end, std::max(span.limit, 0), *container);
    else statement.begin(from, until, end, std::max(span.limit, 0));
    const auto read = [table](const Statement& row) { return event_in(row, table); };
    Result<std::vector<JournalEvent>> more =
        read_rows<JournalEvent>(statement, read, damaged_);
    if (!more) return more;
    std::move(more->begin(), more->end(), std::back_inserter(found));
  }
  keep_newest(found, span.limit);
  return found;
}

Result<std::vector<JournalEvent>> Journal::events(const EventSpan& span) {
  return events_of(std::nullopt, span);
}

// Once there are enough events, earlier containers are read only for events newer than the oldest.
Result<std::vector<JournalEvent>> Journal::events(const std::vector<std::int64_t>& containers,
                                                  const EventSpan& span) {
  std::vector<JournalEvent> found;
  EventSpan left = span;
  for (const std::int64_t container : containers) {
    Result<std::vector<JournalEvent>> more = events_of(container, left);
    if (!more) return more;
    std::move(more->begin(), more->end(), std::back_inserter(found));
    keep_newest(found, span.limit);
    if (!found.empty() && found.size() >= static_cast<std::size_t>(span.limit))
      left.from = WallTime(std::chrono::nanoseconds(found.back().place.time_ns));
  }
  return found;
}

Result<std::uint64_t> Journal::last_decision_id() {
  last_id_.begin();
  const Result<bool> row = last_id_.next();
  if (!row) return std::unexpected(row.error());
  const std::uint64_t last = unsigned_at(last_id_, 0);
  last_id_.stop();
  return last;
}

Result<std::optional<WallTime>> Journal::last_written() {
  last_written_.begin();
  const Result<bool> row = last_written_.next();
  if (!row) return std::unexpected(row.error());
  std::optional<WallTime> time;
  if (!last_written_.is_null(0)) time = wall_time(last_written_.integer(0));
  last_written_.stop();
  return time;
}

Status Journal::end_open(WallTime now) {
  return end_open_.run(ns_of(now), std::string_view(to_string(OutcomeKind::overtaken)),
                       std::string_view("the daemon or the container ended first"),
                       std::string_view(to_string(OutcomeKind::written)),
                       std::string_view(to_string(Direction::raise)));
}

Result<std::int64_t> Journal::trim(std::int64_t rows) {
  std::int64_t dropped = 0;
  for (const auto& [table, keep] : {std::pair(&decisions_, rows / 2),
                                    std::pair(&refusals_, rows / 2), std::pair(&outcomes_, rows)}) {
    const Result<std::int64_t> gone = table->drop_oldest(keep, INT64_MAX);
    if (!gone) return gone;
    dropped += *gone;
  }
  return dropped;
}

Result<std::int64_t> Journal::drop_oldest(std::int64_t rows) {
  const Result<std::int64_t> refusals = refusals_.drop_oldest(0, rows);
  if (!refusals || *refusals > 0) return refusals;
  const Result<std::int64_t> decisions = decisions_.drop_oldest(0, rows);
  if (!decisions) return decisions;
  const Result<std::int64_t> outcomes = outcomes_.drop_oldest(0, rows);
  if (!outcomes) return outcomes;
  return *decisions + *outcomes;
}

}  // namespace cgphase
