// Decisions as plain sentences: the first line of `cgphase explain` and the text of an event. Pure.
#pragma once

#include <string>
#include <string_view>

#include "policy/decision.h"
#include "protocol/report.h"

namespace cgphase {

// Says what was done or refused, the values before and after, the reason and the outcome. Escapes
// `name`. `outcome` may be null. `writer` is as in JournalDecision.
std::string explain_sentence(std::string_view name, const Decision& decision,
                             const Outcome* outcome, std::string_view writer = {});

// Says how a decision ended.
std::string outcome_sentence(std::string_view name, const Outcome& outcome);

// The sentence without a decision: the present state, and the rules that block a decision.
std::string blocked_by_sentence(const ContainerReport& report);

// If the owner's memory.high is below memory.max, as Incus and Proxmox VE set it: "memory.high,
// 90 % of memory.max (1.0 GiB)". That one is the limit then. Empty otherwise.
std::string soft_limit_text(const Limits& original);

// Says why a verdict keeps a limit: "its behaviour is in no known phase". Empty for `allowed`.
std::string_view because(Verdict verdict);

}  // namespace cgphase
