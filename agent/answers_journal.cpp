// Answers from the journal: explain and events.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "agent/answers.h"
#include "base/text.h"
#include "protocol/events.h"

namespace cgphase {
namespace {

void keep_newest_events(std::vector<JournalEvent>& events, std::size_t limit) {
  std::ranges::sort(events, std::greater<>(), &JournalEvent::place);
  if (events.size() > limit) events.resize(limit);
}

// Identifies an event, so that one from memory and one from the file are the same.
std::tuple<CgroupId, std::uint64_t, int> key_of(const JournalEvent& event) {
  if (const auto* const outcome = std::get_if<JournalOutcome>(&event.what))
    return {outcome->outcome.container, outcome->outcome.decision_id,
            static_cast<int>(outcome->outcome.kind)};
  const Decision& decision = std::get<JournalDecision>(event.what).decision;
  return {decision.container, decision.decision_id, -1};
}

void add_missing(std::vector<JournalEvent>& events, std::vector<JournalEvent>&& more) {
  std::set<std::tuple<CgroupId, std::uint64_t, int>> there;
  for (const JournalEvent& event : events) there.insert(key_of(event));
  for (JournalEvent& event : more)
    if (there.insert(key_of(event)).second) events.push_back(std::move(event));
}

bool within(const EventSpan& span, WallTime time) {
  return time >= span.from && time <= span.until;
}

}  // namespace

void Answers::answer(const ExplainRequest& request, const Peer&, const Respond& respond) {
  Result<Asked> asked = asked_about(request.container);
  if (!asked) return respond(error_reply(asked.error()));
  ExplainReport explained{.now = {}, .at = time_of(request.at_seconds), .gone = asked->gone()};
  explained.kill_switch = agent_.kill_switch();
  if (!asked->gone()) {
    const ContainerView& view = *agent_.core().find(asked->subject.id);
    explained.now = report_with_next(view);
    if (agent_.overrides().asked_mode(view.info) != Mode::observe)
      explained.unwritable = agent_.unwritable();
  }
  const WallTime until = explained.at.value_or(clock_.wall_now());
  std::vector<JournalEntry> recent = recent_entries(explained.now.container.id, until);
  if (agent_.store() == nullptr) {
    explained.decisions = std::move(recent);
    return respond(to_json(explained));
  }
  // A refused question drops `respond`, and the client gets an error.
  (void)agent_.store()->query([explained = std::move(explained), recent = std::move(recent), until,
                               asked = *std::move(asked), respond](Store& store) mutable {
    if (const Status found = find_asked(store, asked); !found)
      return respond(error_reply(found.error()));
    if (asked.gone()) explained.now.container = asked.container;
    auto entries = store.entries(asked.subject, until, kExplainDecisions);
    // If the file cannot be read, the newest decisions in memory still answer.
    if (!entries && recent.empty()) return respond(error_reply(entries.error()));
    explained.decisions = entries ? *std::move(entries) : std::move(recent);
    respond(to_json(explained));
  });
}

// The newest decisions about a container until then, from memory, newest first.
std::vector<JournalEntry> Answers::recent_entries(CgroupId id, WallTime until) const {
  std::vector<JournalEntry> entries;
  const auto& recent = agent_.journal().recent_decisions();
  for (auto one = recent.rbegin(); one != recent.rend(); ++one) {
    if (one->decision.container != id || one->time > until) continue;
    if (entries.size() >= kExplainDecisions) break;
    JournalEntry& entry =
        entries.emplace_back(JournalEntry{.decision = *one, .written = {}, .end = {}});
    for (const JournalOutcome& outcome : agent_.journal().recent_outcomes())
      if (outcome.outcome.decision_id == one->decision.decision_id)
        (outcome.outcome.kind == OutcomeKind::written ? entry.written : entry.end) = outcome;
  }
  return entries;
}

// Returns events that the file does not have yet; with `all`, every recent event, because writing
// fails. `only` selects one container.
std::vector<JournalEvent> Answers::events_in_memory(std::optional<CgroupId> only,
                                                    const EventSpan& span, bool all) const {
  std::vector<JournalEvent> events;
  const auto take = [&](const auto& entry, CgroupId id, int table) {
    if ((only && *only != id) || !within(span, entry.time)) return;
    const ContainerView* const view = agent_.core().find(id);
    const auto later = static_cast<std::int64_t>(events.size());
    events.push_back({view != nullptr ? view->info.name : "(gone)", entry,
                      {entry.time.time_since_epoch().count(), table,
                       INT64_MAX / 2 + later}});  // after all rows of the file
  };
  constexpr int kDecisions = 0, kOutcomes = 2;
  const auto take_decisions = [&](const auto& entries) {
    for (const JournalDecision& entry : entries) take(entry, entry.decision.container, kDecisions);
  };
  const auto take_outcomes = [&](const auto& entries) {
    for (const JournalOutcome& entry : entries) take(entry, entry.outcome.container, kOutcomes);
  };
  if (all) {
    take_decisions(agent_.journal().recent_decisions());
    take_outcomes(agent_.journal().recent_outcomes());
  } else {
    take_decisions(agent_.journal().unsaved_decisions());
    take_outcomes(agent_.journal().unsaved_outcomes());
  }
  return events;
}

void Answers::answer(const EventsRequest& request, const Peer&, const Respond& respond) {
  std::optional<Asked> asked;
  if (request.container) {
    Result<Asked> found = asked_about(*request.container);
    if (!found) return respond(error_reply(found.error()));
    asked = *std::move(found);
  }
  const Result<EventSpan> wanted = event_span(request);
  if (!wanted) return respond(error_reply(wanted.error()));
  const EventSpan span = *wanted;
  StoreThread* const store = agent_.store();
  std::vector<JournalEvent> newest;
  if (!span.before && !(asked && asked->gone()))
    newest = events_in_memory(asked ? std::optional(asked->subject.id) : std::nullopt, span,
                              store == nullptr || store->degraded().has_value());
  const auto limit = static_cast<std::size_t>(span.limit);
  if (store == nullptr) {
    keep_newest_events(newest, limit);
    return respond(events_page(newest, false));
  }
  // A refused question drops `respond`, and the client gets an error.
  (void)store->query([asked = std::move(asked), span, limit, newest = std::move(newest),
                      respond](Store& stored) mutable {
    if (asked)
      if (const Status found = find_asked(stored, *asked); !found)
        return respond(error_reply(found.error()));
    const auto subject = asked ? std::optional(asked->subject) : std::nullopt;
    auto events = stored.events(subject, span);
    if (!events && newest.empty()) return respond(error_reply(events.error()));
    if (!events) {  // the file cannot be read, but events in memory still answer
      keep_newest_events(newest, limit);
      return respond(events_page(newest, false));
    }
    const bool more = events->size() == limit;
    add_missing(*events, std::move(newest));
    keep_newest_events(*events, limit);
    respond(events_page(*events, more));
  });
}

}  // namespace cgphase
