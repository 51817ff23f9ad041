#include "protocol/sentence.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/text.h"

namespace cgphase {
namespace {

// By the name of the verdict. A verdict without a phrase is printed by its name.
struct Phrase {
  std::string_view verdict, text;
};
constexpr Phrase kPhrases[] = {
    {"observe_mode", "the mode is observe"},
    {"advise_mode", "the mode is advise"},
    {"hands_off", "another manager owns the container"},
    {"no_limit", "it has no limit of its own and manage_unlimited is off"},
    {"phase_unknown", "its behaviour is in no known phase"},
    {"not_enough_samples", "there are not enough samples of its phase yet"},
    {"stale_data", "data was missing or stale"},
    {"cool_down", "an event is too recent (cool-down)"},
    {"quarantined", "failed trials, an OOM or a stall have put it in quarantine"},
    {"pressure_not_quiet", "its pressure is not quiet"},
    {"trial_running", "the trial of the last change is still running"},
    {"rate_limited", "enough was changed in this window already"},
    {"too_small", "the difference is not worth a write"},
    {"memory_growing", "its memory is growing"},
    {"standing_down", "somebody else changed the limit a short while ago"},
    {"cache_in_way", "page cache would meet the new limit and has to be reclaimed first"},
    {"silently_reverted", "a reload or the engine put the original back (pause)"},
    {"oom_remembered", "its image ran out of memory under a lowered limit and needs more"},
    {"rival", "another manager changes its limits again and again, so it is left alone"},
    {"gpu_container", "it has a GPU, or that cannot be ruled out (lower_gpu_quota)"},
    {"reads_limits", "its programs read this limit again while they run, so it stays as it is"},
    {"granted", "its owner agreed to more than its own limit, and the host has room"},
    {"shared_by_weight", "processors are shared by weight, and no quota is lowered "
                         "(enforce.cpu)"},
    {"at_floor", "what it uses and may need leaves no step lower that is worth a write"},
};

std::string amount(Resource resource, double value) {
  return resource == Resource::memory || resource == Resource::freeze
             ? human_bytes(value) : fmt::format("{:.2f} cores", value);
}

std::string limit_text(Resource resource, const Limits& limits) {
  if (resource == Resource::cpu_weight)
    return limits.cpu_weight ? std::to_string(*limits.cpu_weight) : "no weight";
  if (resource == Resource::freeze) return limits.frozen == true ? "frozen" : "running";
  if (resource == Resource::cpu) {
    const auto cores = limits.cpu_cores();
    return cores ? amount(resource, cores->value) : "no limit";
  }
  const auto bytes = limits.memory_bytes();
  return bytes ? amount(resource, static_cast<double>(bytes->value)) : "no limit";
}

std::string why(const Decision& decision) {
  const std::string phase = phase_letter(decision.phase);
  const std::string statistic = amount(decision.resource, decision.statistic);
  const std::string usage = amount(decision.resource, decision.usage);
  switch (decision.reason) {
    case Reason::phase_statistics:
      return fmt::format("phase {} needs {} ({:.0f} samples)", phase, statistic,
                         decision.sample_count);
    case Reason::phase_changed: return fmt::format("of phase {}, which needs {}", phase, statistic);
    case Reason::window_statistics: return "the recent window needed " + statistic;
    case Reason::headroom: return usage + " in use came close to the limit";
    case Reason::throttled: return "it was throttled at " + usage;
    case Reason::memory_event: return "the kernel counted a max or oom event at " + usage;
    case Reason::pressure: return "its tasks were stalled at " + usage;
    case Reason::trial_failed: return "the trial of the change before it failed";
    case Reason::restored: return "the original limit was to be restored";
    case Reason::stalled: return "the kernel reclaimed its memory in vain at " + usage;
    case Reason::another_manager: return "another manager of limits was seen";
    case Reason::oom_remembered: return "its image ran out of memory under a lowered limit";
    case Reason::gpu_seen: return "it has a GPU, or that cannot be ruled out any more";
    case Reason::pinned: return "an administrator's pin asks for " + statistic;
    case Reason::program_started: return "a new program started, which may read it";
    case Reason::reads_limits: return "its programs read this limit again while they run";
    case Reason::silence:
      return "the daemon was silent for too long, and cgphase-restore put the original back";
    case Reason::budget: return "of the host's budget at " + usage + " in use";
    case Reason::memory_short:
      return fmt::format("the host is short of memory by {} and its class is batch", statistic);
    case Reason::memory_fits: return "the host is no longer short of memory";
    case Reason::freeze_over: return "its owner allows no longer freeze at once";
    case Reason::service_class:
      return decision.direction == Direction::raise ? "its class is critical"
                                                    : "its class is batch";
  }
  return "";
}

std::string fate(const Outcome& outcome) {
  const std::string detail =
      outcome.detail.empty() ? std::string() : " (" + printable(outcome.detail) + ")";
  switch (outcome.kind) {
    case OutcomeKind::trial_passed: return "the trial passed" + detail;
    case OutcomeKind::trial_reverted: return "the trial failed and it was reverted" + detail;
    case OutcomeKind::write_failed: return "the write failed" + detail;
    case OutcomeKind::overtaken: return "a later change overtook it" + detail;
    case OutcomeKind::written: return "it was written" + detail;
  }
  return "";
}

std::string change_text(const Decision& decision) {
  if (decision.resource == Resource::freeze) {
    if (decision.direction == Direction::raise) return "thawed because " + why(decision);
    return fmt::format("frozen for at most {} because {}",
                       human_duration(decision.evidence[Fact::freeze_seconds].value_or(0)),
                       why(decision));
  }
  const char* const verb = decision.direction == Direction::lower ? "lowered" : "raised";
  return fmt::format("{} from {} to {} because {}", verb,
                     limit_text(decision.resource, decision.old_limits),
                     limit_text(decision.resource, decision.new_limits), why(decision));
}

// A floor may leave no lower step, or one that rounding hides.
std::string refusal_text(const Decision& decision) {
  const std::string now = limit_text(decision.resource, decision.old_limits);
  const std::string other = limit_text(decision.resource, decision.new_limits);
  return fmt::format("stays at {}{} because {}", now, other == now ? "" : " instead of " + other,
                     because(decision.verdict));
}

std::string usage_text(const ContainerReport& report) {
  std::string text;
  if (report.cpu_cores)
    text += fmt::format(", using {} (limit: {})", amount(Resource::cpu, *report.cpu_cores),
                        limit_text(Resource::cpu, report.limits));
  if (report.memory_need_bytes)
    text += fmt::format(", needing {} (limit: {})",
                        human_bytes(static_cast<double>(*report.memory_need_bytes)),
                        limit_text(Resource::memory, report.limits));
  return text;
}

std::string phase_text(const ContainerReport& report) {
  switch (report.phase.state) {
    case PhaseState::not_enough_history: return "not enough history for a phase yet";
    case PhaseState::unknown: return "in no known phase";
    case PhaseState::known: break;
  }
  const std::string since = report.seconds_in_phase
                                ? " for " + human_duration(*report.seconds_in_phase)
                                : std::string();
  return "in phase " + phase_letter(report.phase) + since;
}

}  // namespace

std::string_view because(Verdict verdict) {
  if (verdict == Verdict::allowed) return "";
  const std::string_view name = to_string(verdict);
  const auto row = std::ranges::find(kPhrases, name, &Phrase::verdict);
  return row == std::end(kPhrases) ? name : row->text;
}

std::string explain_sentence(std::string_view name, const Decision& decision,
                             const Outcome* outcome, std::string_view writer) {
  const bool weight = decision.resource == Resource::cpu_weight;
  const bool freeze = decision.resource == Resource::freeze;
  std::string text = escape_name(name) + ": ";
  if (!freeze)
    text += weight ? "cpu weight " : to_string(decision.resource) + std::string(" limit ");
  const bool only_mode =
      decision.verdict == Verdict::observe_mode || decision.verdict == Verdict::advise_mode;
  if (only_mode) {
    text += "would be " + change_text(decision) + "; not written, ";
    text += because(decision.verdict);
  } else if (decision.verdict == Verdict::allowed) {
    text += change_text(decision);
    text += outcome != nullptr ? "; " + fate(*outcome) : "; not answered yet";
    const bool on_trial = outcome != nullptr && outcome->kind == OutcomeKind::written &&
                          decision.direction == Direction::lower && !weight && !freeze &&
                          decision.reason != Reason::budget;
    if (on_trial) text += ", its trial is not over";
    if (decision.reason == Reason::budget && !writer.empty())
      text += "; others leave room: " + printable(writer);
  } else {
    text += refusal_text(decision);
    if (!writer.empty()) text += ": " + printable(writer);
  }
  return text + ".";
}

std::string outcome_sentence(std::string_view name, const Outcome& outcome) {
  return fmt::format("{}: decision {}: {}.", escape_name(name), outcome.decision_id, fate(outcome));
}

std::string blocked_by_sentence(const ContainerReport& report) {
  const std::string name = escape_name(report.container.name);
  if (!report.container.hands_off.empty())
    return name + ": observed only, " + printable(report.container.hands_off) + ".";
  std::string text = name + ": " + phase_text(report) + usage_text(report) + "; no decision yet";
  if (report.paused) return text + ": it is paused.";
  const std::string_view cpu = because(report.cpu_blocked_by.value_or(Verdict::allowed));
  const std::string_view memory = because(report.memory_blocked_by.value_or(Verdict::allowed));
  if (cpu.empty() && memory.empty()) return text + ".";
  if (cpu.empty() || memory.empty() || cpu == memory)
    return fmt::format("{}: {}.", text, cpu.empty() ? memory : cpu);
  return fmt::format("{}: of its CPU because {}; of its memory because {}.", text, cpu, memory);
}

std::string soft_limit_text(const Limits& original) {
  const auto hard = original.memory_max ? original.memory_max->bytes : std::nullopt;
  const auto soft = original.memory_high ? original.memory_high->bytes : std::nullopt;
  if (!hard || !soft || soft->value >= hard->value) return "";
  const double all = static_cast<double>(hard->value);
  return fmt::format("memory.high, {:.0f} % of memory.max ({})",
                     static_cast<double>(soft->value) / all * 100, human_bytes(all));
}

}  // namespace cgphase
