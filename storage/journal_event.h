// What the journal holds: decisions, and what became of them.
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
  // Where somebody else's write holds it back and the kernel told whose, printable: "systemd (pid
  // 1, init.scope) wrote memory.max 536870912". Else empty.
  std::string writer = {};
};
struct JournalOutcome {
  WallTime time;
  Outcome outcome;
};

// A decision with what became of it, each once it is known.
struct JournalEntry {
  JournalDecision decision;
  std::optional<JournalOutcome> written;  // read back
  std::optional<JournalOutcome> end;      // of the trial, or why there was none
};

// Where an event stands in the journal, which is told in the order of time; of one time decisions
// come first, those that were written before the others, then outcomes.
struct EventPlace {
  std::int64_t time_ns = 0;
  int table = 0;         // 0: decision, 1: refusal, 2: outcome
  std::int64_t row = 0;  // of the table
  friend auto operator<=>(const EventPlace&, const EventPlace&) = default;
};

// A decision, or what became of one.
struct JournalEvent {
  std::string name;  // of the container; empty where it was not named
  std::variant<JournalDecision, JournalOutcome> what;
  EventPlace place;
};

// What part of the journal: from <= time <= until, the newest `limit` of those before `before`.
struct EventSpan {
  WallTime from = {}, until = WallTime::max();
  std::optional<EventPlace> before = {};
  int limit = 0;
};

}  // namespace cgphase
