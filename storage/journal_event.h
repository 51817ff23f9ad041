// The entries of the journal: decisions and their outcomes.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>

#include "base/clock.h"
#include "policy/decision.h"

namespace cgphase {

struct JournalDecision {
  WallTime time;
  Decision decision;
  // The process whose write prevents this decision, if the kernel reported it: "systemd (pid 1,
  // init.scope) wrote memory.max 536870912". Of a decision by the budget: who leaves the room.
  // Printable.
  std::string writer = {};
};
struct JournalOutcome {
  WallTime time;
  Outcome outcome;
};

// A decision with its outcomes, as far as they are known.
struct JournalEntry {
  JournalDecision decision;
  std::optional<JournalOutcome> written;  // read back
  std::optional<JournalOutcome> end;      // of the trial, or why there was none
};

// The place of an event in the journal, which is ordered by time. Events of one time are ordered by
// table.
struct EventPlace {
  std::int64_t time_ns = 0;
  int table = 0;         // 0: decision, 1: refusal, 2: outcome
  std::int64_t row = 0;  // of the table
  friend auto operator<=>(const EventPlace&, const EventPlace&) = default;
};

// A decision or an outcome.
struct JournalEvent {
  std::string name;  // of the container; may be empty
  std::variant<JournalDecision, JournalOutcome> what;
  EventPlace place;
};

// A part of the journal: from <= time <= until, the newest `limit` events before `before`.
struct EventSpan {
  WallTime from = {}, until = WallTime::max();
  std::optional<EventPlace> before = {};
  int limit = 0;
};

}  // namespace cgphase
