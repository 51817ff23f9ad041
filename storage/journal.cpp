#include "storage/journal.h"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "cgroupfs/kernel_text.h"

namespace cgphase {
namespace {

constexpr int kOutcomeTable = 2;  // of EventPlace
constexpr std::array<const char*, 3> kJournalTables = {"decision", "refusal", "outcome"};

// The columns of a table: visit(name, field) for each field of the entry, in order.
template <class Visit>
void visit_limits(const std::string& side, auto& limits, Visit& visit) {
  visit(side + "_cpu_max", limits.cpu_max);
  visit(side + "_cpu_max_burst", limits.cpu_max_burst);
  visit(side + "_cpu_weight", limits.cpu_weight);
  visit(side + "_memory_max", limits.memory_max);
  visit(side + "_memory_high", limits.memory_high);
  visit(side + "_memory_low", limits.memory_low);
  visit(side + "_memory_min", limits.memory_min);
  visit(side + "_frozen", limits.frozen);
}

template <class Visit>
void visit_columns(auto&& entry, Visit visit) {
  visit("time_ns", entry.time);
  if constexpr (requires { entry.outcome; }) {
    visit("decision_id", entry.outcome.decision_id);
    visit("monotonic_ns", entry.outcome.time);
    visit("kind", entry.outcome.kind);
    visit("detail", entry.outcome.detail);
  } else {
    auto& decision = entry.decision;
    visit("decision_id", decision.decision_id);
    visit("monotonic_ns", decision.time);
    visit("resource", decision.resource);
    visit("direction", decision.direction);
    visit("reason", decision.reason);
    visit("verdict", decision.verdict);
    visit("phase_state", decision.phase.state);
    visit("phase_index", decision.phase.index);
    visit("phase_distance", decision.phase.distance);
    visit("phase_margin", decision.phase.margin);
    visit("usage", decision.usage);
    visit("statistic", decision.statistic);
    visit("sample_count", decision.sample_count);
    visit_limits("old", decision.old_limits, visit);
    visit_limits("new", decision.new_limits, visit);
    visit("writer", entry.writer);
    for (std::size_t fact = 0; fact < kFactCount; ++fact)
      visit(std::string("fact_") + to_string(static_cast<Fact>(fact)),
            decision.evidence.facts[fact]);
  }
}

// A field as a value of SQL. Unsigned numbers keep their bits in SQLite's signed integers.
template <class Field>
SqlValue to_sql(const Field& field) {
  if constexpr (std::is_same_v<Field, double>) return field;
  else if constexpr (std::is_enum_v<Field>) return std::string(to_string(field));
  else if constexpr (std::is_same_v<Field, std::string>)
    return escape_name(std::string_view(field).substr(0, kMaxDetailBytes));
  else if constexpr (requires { to_text(field); }) return to_text(field);
  else if constexpr (requires { field.time_since_epoch(); }) return ns_of(field);
  else if constexpr (requires { field.value; }) return as_signed(field.value);
  else return static_cast<std::int64_t>(field);
}
template <class Field>
SqlValue to_sql(const std::optional<Field>& field) {
  return field ? to_sql(*field) : SqlValue();
}

// The enumerator with this word. to_string() of a number after the last one is empty, so a new
// enumerator needs no change here.
template <class Enum>
bool parse_word(std::string_view word, Enum& value) {
  for (int number = 0; *to_string(static_cast<Enum>(number)) != '\0'; ++number) {
    value = static_cast<Enum>(number);
    if (word == to_string(value)) return true;
  }
  return false;
}

// False if the field cannot have this value.
template <class Field>
bool from_sql(const Statement& row, int column, Field& field) {
  if constexpr (std::is_same_v<Field, double>) field = row.real(column);
  else if constexpr (std::is_enum_v<Field>) return parse_word(row.text(column), field);
  else if constexpr (std::is_same_v<Field, std::string>) field = unescape_name(row.text(column));
  else if constexpr (requires { field.time_since_epoch(); })
    field = Field(std::chrono::nanoseconds(row.integer(column)));
  else if constexpr (requires { field.value; })
    field.value = std::bit_cast<std::uint64_t>(row.integer(column));
  else field = static_cast<Field>(row.integer(column));
  return true;
}
template <class Field>
bool from_sql(const Statement& row, int column, std::optional<Field>& field) {
  if (row.is_null(column)) return true;
  if constexpr (std::is_same_v<Field, CpuMax>) field = parse_cpu_max(row.text(column));
  else if constexpr (std::is_same_v<Field, MemoryLimit>) field = parse_limit(row.text(column));
  else return from_sql(row, column, field.emplace());
  return field.has_value();
}

// NaN is NULL in SQLite.
template <class Field>
constexpr const char* sql_type(const Field&) {
  if constexpr (requires(Field field) { field.reset(); }) {
    using Value = typename Field::value_type;
    if constexpr (std::is_same_v<Value, double>) return "REAL";
    else if constexpr (requires(Value value) { to_text(value); }) return "TEXT";
    else return "INTEGER";
  } else if constexpr (std::is_same_v<Field, double>) return "REAL";
  else if constexpr (std::is_enum_v<Field> || std::is_same_v<Field, std::string>)
    return "TEXT NOT NULL";
  else return "INTEGER NOT NULL";
}

// The columns of a table, separated by commas; `typed`: each as "name TYPE".
std::string columns_of(int table, bool typed = false) {
  std::string columns;
  const auto add = [&](const std::string& name, const auto& field) {
    columns += (columns.empty() ? "" : ",") + name;
    if (typed) columns += std::string(" ") + sql_type(field);
  };
  if (table == kOutcomeTable) visit_columns(JournalOutcome(), add);
  else visit_columns(JournalDecision(), add);
  return columns;
}

// The last two columns are those of a JournalEvent.
std::string select_events(int table, const std::string& rest) {
  const std::string name = kJournalTables[static_cast<std::size_t>(table)];
  return "SELECT device,inode," + columns_of(table) + ",name," + name + " FROM " + name +
         " JOIN container USING (container) " + rest;
}

std::string select_span(int table, const std::string& condition) {
  const std::string name = kJournalTables[static_cast<std::size_t>(table)];
  return select_events(table, "WHERE time_ns BETWEEN ?1 AND ?2 AND (time_ns < ?2 OR " + name +
                                  " < ?3) " + condition + " ORDER BY time_ns DESC, " + name +
                                  " DESC LIMIT ?4");
}

// Only the newest decisions: each run ends those of earlier runs, and outcomes of old decisions may
// be deleted.
constexpr const char* kEndOpen =
    "INSERT INTO outcome (container,time_ns,decision_id,monotonic_ns,kind,detail)"
    " SELECT container,?1,decision_id,monotonic_ns,?2,?3 FROM decision"
    " WHERE decision > (SELECT max(decision) FROM decision) - 1000 AND NOT EXISTS"
    " (SELECT 1 FROM outcome WHERE outcome.decision_id = decision.decision_id AND"
    " outcome.container = decision.container AND"
    " (outcome.kind <> ?4 OR decision.direction = ?5)) ORDER BY decision";

template <class Entry>
bool read_entry(const Statement& row, Entry& entry, CgroupId& id) {
  id = {std::bit_cast<std::uint64_t>(row.integer(0)), std::bit_cast<std::uint64_t>(row.integer(1))};
  int column = 2;
  bool sound = true;
  visit_columns(entry, [&](const std::string&, auto& field) {
    sound = from_sql(row, column++, field) && sound;
  });
  return sound;
}

// False if the row is damaged.
bool read_event(const Statement& row, int table, JournalEvent& event) {
  const int columns = row.column_count();
  event.place = {row.integer(2), table, row.integer(columns - 1)};
  event.name = unescape_name(row.text(columns - 2));
  if (table == kOutcomeTable) {
    auto& entry = event.what.emplace<JournalOutcome>();
    return read_entry(row, entry, entry.outcome.container);
  }
  auto& entry = event.what.emplace<JournalDecision>();
  return read_entry(row, entry, entry.decision.container);
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

void keep_newest(std::vector<JournalEvent>& events, std::size_t limit) {
  std::ranges::sort(events, std::greater<>(), &JournalEvent::place);
  if (events.size() > limit) events.resize(limit);
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

std::string journal_tables_sql() {
  std::string sql;
  for (int table = 0; table <= kOutcomeTable; ++table) {
    const std::string name = kJournalTables[static_cast<std::size_t>(table)];
    sql += "CREATE TABLE " + name + " (" + name +
           " INTEGER PRIMARY KEY, container INTEGER NOT NULL," + columns_of(table, true) +
           "); CREATE INDEX " + name + "_time ON " + name + " (time_ns); CREATE INDEX " + name +
           "_container ON " + name + " (container, time_ns);";
  }
  return sql + "CREATE INDEX outcome_decision ON outcome (decision_id);";
}

Result<Journal> Journal::prepare(Connection& connection) {
  Journal journal;
  std::vector<std::pair<Statement*, std::string>> wanted = {
      {&journal.read_outcomes_of_,
       select_events(kOutcomeTable,
                     "WHERE decision_id = ? AND device = ? AND inode = ? ORDER BY outcome")},
      {&journal.last_id_,
       "SELECT max((SELECT ifnull(max(decision_id), 0) FROM decision),"
       " (SELECT ifnull(max(decision_id), 0) FROM refusal),"
       " (SELECT ifnull(max(decision_id), 0) FROM outcome))"},
      {&journal.last_written_, "SELECT max(time_ns) FROM outcome WHERE kind = '" +
                                   std::string(to_string(OutcomeKind::written)) + "'"},
      {&journal.end_open_, kEndOpen},
  };
  for (int table = 0; table <= kOutcomeTable; ++table) {
    const std::string name = kJournalTables[static_cast<std::size_t>(table)];
    const std::string columns = columns_of(table);
    std::string places = "?,?";
    for (const char letter : columns)
      if (letter == ',') places += ",?";
    Rows& rows = journal.rows_[static_cast<std::size_t>(table)];
    wanted.insert(
        wanted.end(),
        {{&rows.add,
          "INSERT INTO " + name + " (container," + columns + ") VALUES (" + places + ")"},
         {&rows.events, select_span(table, "")},
         {&rows.events_container, select_span(table, "AND container = ?5")},
         {&rows.span, row_span_sql(name)},
         {&rows.drop, "DELETE FROM " + name + " WHERE " + name + " < ?"}});
  }
  if (Status prepared = connection.prepare_all(wanted); !prepared)
    return std::unexpected(prepared.error());
  return journal;
}

template <class Entry>
Status Journal::add_to(int table, std::int64_t container, const Entry& entry) {
  std::vector<SqlValue> values = {container};
  visit_columns(entry, [&](const std::string&, const auto& field) {
    values.push_back(to_sql(field));
  });
  return rows_[static_cast<std::size_t>(table)].add.run_values(values);
}

Status Journal::add(std::int64_t container, const JournalDecision& entry) {
  return add_to(entry.decision.verdict == Verdict::allowed ? 0 : 1, container, entry);
}

Status Journal::add(std::int64_t container, const JournalOutcome& entry) {
  return add_to(kOutcomeTable, container, entry);
}

// Appends the events of a begun statement.
Status Journal::read_rows(Statement& rows, int table, std::vector<JournalEvent>& events) {
  return rows.each([&] {
    if (JournalEvent event; read_event(rows, table, event)) events.push_back(std::move(event));
    else damaged_.insert(event.place);
  });
}

Result<std::vector<JournalEvent>> Journal::events_of(std::optional<std::int64_t> container,
                                                     const EventSpan& span, int last_table) {
  std::vector<JournalEvent> found;
  for (int table = 0; table <= last_table; ++table) {
    Rows& rows = rows_[static_cast<std::size_t>(table)];
    const std::int64_t from = ns_of(span.from), until = last_time(span);
    const std::int64_t end = first_not_wanted(span, table);
    const int limit = std::max(span.limit, 0);
    if (container) rows.events_container.begin(from, until, end, limit, *container);
    else rows.events.begin(from, until, end, limit);
    Statement& statement = container ? rows.events_container : rows.events;
    if (Status read = read_rows(statement, table, found); !read)
      return std::unexpected(read.error());
  }
  keep_newest(found, static_cast<std::size_t>(std::max(span.limit, 0)));
  return found;
}

Result<std::vector<JournalEvent>> Journal::events(const EventSpan& span) {
  return events_of(std::nullopt, span, kOutcomeTable);
}

// Once there are enough events, earlier containers are read only for events newer than the oldest.
Result<std::vector<JournalEvent>> Journal::events(const std::vector<std::int64_t>& containers,
                                                  const EventSpan& span, int last_table) {
  std::vector<JournalEvent> found;
  EventSpan left = span;
  const auto limit = static_cast<std::size_t>(std::max(span.limit, 0));
  for (const std::int64_t container : containers) {
    Result<std::vector<JournalEvent>> more = events_of(container, left, last_table);
    if (!more) return more;
    std::move(more->begin(), more->end(), std::back_inserter(found));
    keep_newest(found, limit);
    if (!found.empty() && found.size() >= limit)
      left.from = WallTime(std::chrono::nanoseconds(found.back().place.time_ns));
  }
  return found;
}

Result<std::vector<JournalEvent>> Journal::events(const std::vector<std::int64_t>& containers,
                                                  const EventSpan& span) {
  return events(containers, span, kOutcomeTable);
}

Result<std::vector<JournalEntry>> Journal::entries(const std::vector<std::int64_t>& containers,
                                                   WallTime until, int limit) {
  Result<std::vector<JournalEvent>> decisions =
      events(containers, {.until = until, .limit = limit}, kOutcomeTable - 1);
  if (!decisions) return std::unexpected(decisions.error());
  std::vector<JournalEntry> entries;
  for (JournalEvent& event : *decisions) {
    JournalEntry& entry =
        entries.emplace_back(std::get<JournalDecision>(std::move(event.what)));
    const Decision& decision = entry.decision.decision;
    read_outcomes_of_.begin(as_signed(decision.decision_id), as_signed(decision.container.device),
                            as_signed(decision.container.inode));
    std::vector<JournalEvent> outcomes;
    if (Status read = read_rows(read_outcomes_of_, kOutcomeTable, outcomes); !read)
      return std::unexpected(read.error());
    for (JournalEvent& found : outcomes) {
      auto& outcome = std::get<JournalOutcome>(found.what);
      (outcome.outcome.kind == OutcomeKind::written ? entry.written : entry.end) =
          std::move(outcome);
    }
  }
  return entries;
}

Result<std::uint64_t> Journal::last_decision_id() {
  const Result<std::optional<std::int64_t>> last = last_id_.first_integer();
  if (!last) return std::unexpected(last.error());
  return std::bit_cast<std::uint64_t>(last->value_or(0));
}

Result<std::optional<WallTime>> Journal::last_written() {
  const Result<std::optional<std::int64_t>> ns = last_written_.first_integer();
  if (!ns) return std::unexpected(ns.error());
  if (!*ns) return std::nullopt;
  return WallTime(std::chrono::nanoseconds(**ns));
}

Status Journal::end_open(WallTime now) {
  return end_open_.run(ns_of(now), std::string_view(to_string(OutcomeKind::overtaken)),
                       std::string_view("the daemon or the container ended first"),
                       std::string_view(to_string(OutcomeKind::written)),
                       std::string_view(to_string(Direction::raise)));
}

Result<std::int64_t> Journal::trim(std::int64_t rows) {
  std::int64_t dropped = 0;
  for (int table = 0; table <= kOutcomeTable; ++table) {
    const std::int64_t keep = table == kOutcomeTable ? rows : rows / 2;
    const Result<std::int64_t> gone =
        rows_[static_cast<std::size_t>(table)].drop_oldest(keep, INT64_MAX);
    if (!gone) return gone;
    dropped += *gone;
  }
  return dropped;
}

Result<std::int64_t> Journal::drop_oldest(std::int64_t rows) {
  auto& [decisions, refusals, outcomes] = rows_;
  const Result<std::int64_t> refused = refusals.drop_oldest(0, rows);
  if (!refused || *refused > 0) return refused;
  const Result<std::int64_t> decided = decisions.drop_oldest(0, rows);
  if (!decided) return decided;
  const Result<std::int64_t> ended = outcomes.drop_oldest(0, rows);
  if (!ended) return ended;
  return *decided + *ended;
}

}  // namespace cgphase
