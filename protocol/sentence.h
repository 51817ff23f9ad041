// Decisions as plain sentences: the first line of `cgphase explain` and the text of an event. Pure.
#pragma once

#include <string>
#include <string_view>

#include "policy/decision.h"
#include "protocol/report.h"

namespace cgphase {

// What was done or refused, from what to what, why, and what became of it. `name` is escaped here;
// `outcome` may be null. `writer` is as in JournalDecision.
std::string explain_sentence(std::string_view name, const Decision& decision,
                             const Outcome* outcome, std::string_view writer = {});

// What became of a decision, alone.
std::string outcome_sentence(std::string_view name, const Outcome& outcome);

// The sentence where there is no decision yet: what cgphase sees and what it waits for.
std::string holding_sentence(const ContainerReport& report);

// "its behaviour is in no known phase": why a verdict keeps a limit as it is; empty for `allowed`.
std::string_view because(Verdict verdict);

}  // namespace cgphase
