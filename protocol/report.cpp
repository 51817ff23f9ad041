#include "protocol/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "protocol/protocol.h"
#include "protocol/sentence.h"

namespace cgphase {
namespace {

using nlohmann::json;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

std::string unwritable_text(const ExplainReport& report) {
  return "nothing is written, for " + printable(report.unwritable);
}

// Returns the present state if it differs from the decision that is explained, else empty. A change
// that was made stays made.
std::string now_text(const ExplainReport& report, const Decision& decision) {
  const ContainerReport& now = report.now;
  const Verdict then = decision.verdict;
  if (!now.container.hands_off.empty())
    return then == Verdict::hands_off
               ? ""
               : "it is only observed, " + printable(now.container.hands_off);
  if (report.kill_switch) return "nothing is written while the kill switch is there";
  if (!report.unwritable.empty()) return unwritable_text(report);
  if (now.paused) return "it is paused";
  if (now.mode == Mode::observe)
    return then == Verdict::observe_mode ? "" : std::string(because(Verdict::observe_mode));
  if (decision.resource != Resource::cpu && decision.resource != Resource::memory) return "";
  const auto& blocked_by =
      decision.resource == Resource::cpu ? now.cpu_blocked_by : now.memory_blocked_by;
  if (then == Verdict::allowed || !blocked_by || *blocked_by == then) return "";
  return *blocked_by == Verdict::allowed ? "no safety rule blocks it"
                                         : std::string(because(*blocked_by));
}

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         std::string_view("-_./=:,@%+").find(c) != std::string_view::npos;
}

std::string shell_quote(std::string_view word) {
  if (!word.empty() && std::ranges::all_of(word, is_plain)) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') out += "'\\''";
    else out += c;
  }
  return out + "'";
}

}  // namespace

double seconds_since_epoch(WallTime time) {
  const auto ms = std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch());
  return static_cast<double>(ms.count()) / 1000;
}

const char* to_string(Engine engine) {
  switch (engine) {
    case Engine::docker: return "docker";
    case Engine::podman: return "podman";
    case Engine::containerd: return "containerd";
    case Engine::crio: return "crio";
    case Engine::lxc: return "lxc";
    case Engine::incus: return "incus";
    case Engine::nspawn: return "nspawn";
    case Engine::slurm: return "slurm";
    case Engine::kubernetes: return "kubernetes";
    case Engine::service: return "service";
    case Engine::cgroup: return "cgroup";
    case Engine::qemu: return "qemu";
    case Engine::nomad: return "nomad";
  }
  return "";
}

std::string phase_letter(const Phase& phase) {
  switch (phase.state) {
    case PhaseState::not_enough_history: return "-";
    case PhaseState::unknown: return "?";
    case PhaseState::known: return phase_letter(phase.index);
  }
  return "";
}

double phase_confidence(const Phase& phase) {
  const double both = 2 * phase.distance + phase.margin;
  if (!phase.known() || !(both > 0) || !std::isfinite(both)) return 0;
  return std::clamp(phase.margin / both, 0.0, 1.0);
}

std::string shell_command(std::span<const std::string_view> words) {
  std::string line;
  for (const std::string_view word : words) {
    if (!line.empty()) line += ' ';
    line += shell_quote(word);
  }
  return line;
}

std::string shell_command(std::initializer_list<std::string_view> words) {
  return shell_command(std::span(words.begin(), words.size()));
}

std::string pin_words(const Pin& pin, bool all) {
  std::string words;
  if (pin.cpu) words = fmt::format("cpu={}", pin.cpu->value);
  else if (all) words = "cpu=auto";
  if (pin.memory || all) words += words.empty() ? "memory=" : ",memory=";
  if (pin.memory) return words + std::to_string(pin.memory->value);
  return all ? words + "auto" : words;
}

std::vector<NextPhase> next_phases(const Forecast& forecast) {
  std::vector<NextPhase> phases;
  for (const Forecast::Next& next : forecast.next) {
    if (next.phase < 0 || phases.size() == kMostNext) continue;
    NextPhase& one = phases.emplace_back(next.phase, next.probability);
    if (next.in.count() > 0) one.in_seconds = next.in.count();
  }
  return phases;
}

void set_savings(ContainerReport& report, const AncestorLimits& ancestor_limits) {
  report.saving = saving(report.original, report.limits, ancestor_limits);
  report.recommended_saving.reset();
  if (report.recommendation)
    report.recommended_saving = saving(report.original, *report.recommendation, ancestor_limits);
}

void sum_up(StatusReport& status, std::span<const ContainerReport> reports) {
  status.containers_observe = status.containers_advise = status.containers_enforce = 0;
  status.containers_hands_off = 0;
  status.saved_now = {};
  for (const ContainerReport& report : reports) {
    switch (report.mode) {
      case Mode::observe: ++status.containers_observe; break;
      case Mode::advise: ++status.containers_advise; break;
      case Mode::enforce: ++status.containers_enforce; break;
    }
    if (!report.container.hands_off.empty()) ++status.containers_hands_off;
    if (!report.cpu_limit_around) status.saved_now.cpu_cores += report.saving.cpu_cores;
    if (!report.memory_limit_around) status.saved_now.memory_bytes += report.saving.memory_bytes;
  }
}

ExplainReply explain_reply(const ExplainReport& report) {
  ExplainReply reply{.sentence = {}, .at = report.at, .gone = report.gone,
                     .container = report.now, .decisions = {}};
  std::size_t bytes = 0;
  for (const JournalEntry& entry : report.decisions) {
    const std::optional<JournalOutcome>& last = entry.end ? entry.end : entry.written;
    ExplainedDecision one{entry, explain_sentence(report.now.container.name,
                                                  entry.decision.decision,
                                                  last ? &last->outcome : nullptr,
                                                  entry.decision.writer)};
    bytes += to_json(one).dump().size();
    if (bytes > kMostExplainBytes && !reply.decisions.empty()) break;
    reply.decisions.push_back(std::move(one));
  }
  std::string& sentence = reply.sentence;
  const bool gone = report.gone && !report.stopped;
  if (!reply.decisions.empty()) {
    sentence = reply.decisions.front().sentence;
    if (gone) sentence += " The container is gone.";
    if (report.gone || report.at) return reply;
    if (const std::string now = now_text(report, report.decisions.front().decision.decision);
        !now.empty())
      sentence += " Now: " + now + ".";
  } else if (report.gone || report.at) {
    sentence = escape_name(report.now.container.name) + (gone ? ": gone, and" : ":") +
               " no decision about it is kept from that time.";
  } else {
    sentence = blocked_by_sentence(report.now);
    if (!report.unwritable.empty()) sentence += " Now: " + unwritable_text(report) + ".";
  }
  return reply;
}

}  // namespace cgphase
