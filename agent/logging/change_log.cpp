#include "agent/logging/change_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/observers/read_back.h"
#include "base/text.h"
#include "cgroupfs/knob_file.h"
#include "protocol/report.h"
#include "protocol/sentence.h"

namespace cgphase {
namespace {

// As the journal has the output of containers: conmon(8) and Docker's journald driver write the
// id's beginning there.
constexpr std::size_t kShortId = 12;
constexpr std::size_t kWholeId = 64;

std::string short_id(const std::string& engine_id) {
  return engine_id.size() == kWholeId ? engine_id.substr(0, kShortId) : engine_id;
}

std::vector<LogField> container_fields(const ContainerInfo& info) {
  return {{"CGROUP_PATH", escape_name(info.path)},
          {"CONTAINER_ID", escape_name(short_id(info.engine_id))},
          {"CONTAINER_NAME", escape_name(info.name)}};
}

std::vector<LogField> decision_fields(const ContainerInfo& info, std::uint64_t decision_id) {
  std::vector<LogField> fields = container_fields(info);
  fields.push_back({"DECISION_ID", std::to_string(decision_id)});
  return fields;
}

// Back to what was there before, whoever asked for it.
bool puts_back(Reason reason) {
  return reason == Reason::restored || reason == Reason::another_manager ||
         reason == Reason::gpu_seen || reason == Reason::trial_failed ||
         reason == Reason::program_started || reason == Reason::reads_limits ||
         reason == Reason::silence || reason == Reason::memory_fits ||
         reason == Reason::freeze_over;
}

Message message_of(const Decision& decision) {
  if (puts_back(decision.reason)) return Message::limit_restored;
  return decision.direction == Direction::lower ? Message::limit_lowered : Message::limit_raised;
}

bool about_others(Verdict verdict) {
  return verdict == Verdict::standing_down || verdict == Verdict::rival;
}

bool told_beyond(Message message) { return message == Message::limit_restored; }

std::string knob_text(Knob knob, const Limits& limits) {
  const Result<KnobText> text = format_knob(knob, limits);
  return text ? std::string(text->view()) : "";
}

}  // namespace

void ChangeLog::tell(CgroupId id, MonotonicTime now, LogEntry entry) {
  Told& told = told_[id];
  if (told.entries == 0 || now - told.window >= kEntryWindow) {
    told.window = now;
    told.entries = 0;
  }
  if (told.entries >= kMostEntries && !told_beyond(entry.message)) {
    told.left_out += 1;
    return;
  }
  told.entries += 1;
  if (const int left_out = std::exchange(told.left_out, 0); left_out > 0)
    entry.text += fmt::format(" ({} before it are only in `cgphase events`)", left_out);
  tell_(entry);
}

void ChangeLog::written(const ContainerInfo& info, const Decision& decision,
                        const Limits& in_force, const std::string& givers) {
  told_[decision.container].verdict(decision.resource) = Verdict::allowed;
  const Outcome outcome{.decision_id = decision.decision_id, .kind = OutcomeKind::written};
  const std::string sentence = explain_sentence(info.name, decision, &outcome, givers);
  for (const Knob knob : kKnobs) {
    const std::string before = knob_text(knob, decision.old_limits);
    const std::string after = knob_text(knob, in_force);
    const bool changed = !before.empty() && !after.empty() && before != after;
    if (!changed || resource_of(knob) != decision.resource) continue;
    std::vector<LogField> fields = decision_fields(info, decision.decision_id);
    fields.insert(fields.end(), {{"PHASE", phase_letter(decision.phase)},
                                 {"REASON", to_string(decision.reason)},
                                 {"KNOB", file_name(knob)},
                                 {"OLD", before},
                                 {"NEW", after}});
    tell(decision.container, decision.time,
         {message_of(decision),
          fmt::format("{} [{}: {} -> {}]", sentence, file_name(knob), before, after),
          std::move(fields)});
  }
}

void ChangeLog::held(const ContainerInfo& info, const Decision& decision,
                     const std::string& writer) {
  Told& told = told_[decision.container];
  told.verdict(decision.resource) = decision.verdict;
  if (std::ranges::none_of(told.last, about_others)) told.hold = Verdict::allowed;
  if (!about_others(decision.verdict) || told.hold == decision.verdict) return;
  told.hold = decision.verdict;
  tell(decision.container, decision.time,
       {Message::container_stood_down, explain_sentence(info.name, decision, nullptr, writer),
        container_fields(info)});
}

void ChangeLog::concluded(const ContainerInfo& info, const Outcome& outcome) {
  const bool reverted = outcome.kind == OutcomeKind::trial_reverted;
  if (!reverted && outcome.kind != OutcomeKind::write_failed) return;
  tell(outcome.container, outcome.time,
       {reverted ? Message::trial_reverted : Message::write_failed,
        outcome_sentence(info.name, outcome), decision_fields(info, outcome.decision_id)});
}

void ChangeLog::kill_switch(bool present, const std::string& path) {
  if (present)
    tell_({Message::kill_switch_on,
           fmt::format("the kill switch {} is there: limits go back to the originals and "
                       "containers are only observed until it is gone", path),
           {{"KILL_SWITCH", path}}});
  else
    tell_({Message::kill_switch_off, fmt::format("the kill switch {} is gone", path),
           {{"KILL_SWITCH", path}}});
}

void ChangeLog::restore_failed(const std::vector<std::string>& failures) {
  for (const std::string& failure : failures)
    tell_({Message::restore_failed, "a limit could not be put back: " + failure,
           {{"CAUSE", failure}}});
}

}  // namespace cgphase
