#include "protocol/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "protocol/protocol.h"
#include "protocol/sentence.h"

namespace cgphase {
namespace {

using nlohmann::json;

// Of the decisions in one reply: what a person reads, not a history.
constexpr std::size_t kMostExplainBytes = 48 * 1024;

template <class T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

json bytes_or_null(const std::optional<MemoryLimit>& limit) {
  return limit && limit->bytes ? json(limit->bytes->value) : json(nullptr);
}

json to_json(const Saving& value) {
  return {{"cpu_cores", value.cpu_cores}, {"memory_bytes", value.memory_bytes}};
}

json verdict_or_null(const std::optional<Verdict>& verdict) {
  return verdict ? json(to_string(*verdict)) : json(nullptr);
}

json text_or_null(const std::string& text) {
  return text.empty() ? json(nullptr) : json(printable(text));
}

json texts(std::span<const std::string> lines) {
  json out = json::array();
  for (const std::string& line : lines) out.push_back(printable(line));
  return out;
}

json usage_json(const ContainerReport& report) {
  return {{"cpu_cores", or_null(report.cpu_cores)},
          {"memory_need_bytes", or_null(report.memory_need_bytes)},
          {"memory_current_bytes", or_null(report.memory_current_bytes)}};
}

json to_json(const GpuStat& use) {
  const auto bytes = use.memory_bytes ? json(use.memory_bytes->value) : json(nullptr);
  return {{"utilisation_ratio", or_null(use.utilisation_ratio)},
          {"memory_utilisation_ratio", or_null(use.memory_utilisation_ratio)},
          {"memory_bytes", bytes}};
}

json run_queue_json(const ContainerReport& report) {
  const RunQueueStat& stat = report.run_queue;
  return {{"wait_usec", or_null(stat.wait_usec)},
          {"waits", or_null(stat.waits)},
          {"longest_wait_usec", or_null(stat.longest_wait_usec)},
          {"voluntary_switches", or_null(stat.voluntary_switches)},
          {"involuntary_switches", or_null(stat.involuntary_switches)},
          {"histogram", or_null(report.run_queue_histogram)}};
}

json to_json(const NetworkStat& stat) {
  return {{"receive_bytes", or_null(stat.receive_bytes)},
          {"receive_packets", or_null(stat.receive_packets)},
          {"transmit_bytes", or_null(stat.transmit_bytes)},
          {"transmit_packets", or_null(stat.transmit_packets)},
          {"tcp_retransmits", or_null(stat.tcp_retransmits)}};
}

json to_json(const BlockStat& stat) {
  return {{"bytes", or_null(stat.bytes)},
          {"requests", or_null(stat.requests)},
          {"latency_usec", or_null(stat.latency_usec)}};
}

json gpu_json(const ContainerReport& report) {
  json out = to_json(report.gpu);
  out["ids"] = json::array();
  for (const std::string& id : report.gpu_ids) out["ids"].push_back(escape_name(id));
  return out;
}

json gpus_json(std::span<const GpuReport> gpus) {
  json out = json::array();
  for (const GpuReport& gpu : gpus) {
    json one = to_json(gpu.use);
    one["id"] = escape_name(gpu.id);
    one["name"] = escape_name(gpu.name);
    one["memory_total_bytes"] = or_null(gpu.memory_total_bytes);
    out.push_back(std::move(one));
  }
  return out;
}

json next_json(std::span<const Forecast::Next> next) {
  json out = json::array();
  for (const Forecast::Next& one : next) out.push_back(to_json(one));
  return out;
}

json phases_seen_json(std::span<const std::uint64_t> steps) {
  json out = json::array();
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const int phase = static_cast<int>(i);
    if (steps[i] > 0)
      out.push_back({{"phase", phase}, {"letter", phase_letter(phase)}, {"steps", steps[i]}});
  }
  return out;
}

std::string unwritable_text(const ExplainReport& report) {
  return "nothing is written, for " + printable(report.unwritable);
}

// What holds now instead of the decision that is explained; empty where nothing else does. A change
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
  const auto& holding =
      decision.resource == Resource::cpu ? now.holding_cpu : now.holding_memory;
  if (then == Verdict::allowed || !holding || *holding == then) return "";
  return *holding == Verdict::allowed ? "nothing holds it back" : std::string(because(*holding));
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

json to_json(const CgroupId& id) { return {{"device", id.device}, {"inode", id.inode}}; }

json to_json(const Limits& limits) {
  json out = {{"cpu_cores", nullptr}, {"memory_bytes", nullptr}};
  if (const auto cores = limits.cpu_cores()) out["cpu_cores"] = cores->value;
  if (const auto bytes = limits.memory_bytes()) out["memory_bytes"] = bytes->value;
  if (limits.cpu_max) {
    const auto& quota = limits.cpu_max->quota;
    out["cpu_max"] = {{"quota_usec", quota ? json(quota->value) : json(nullptr)},
                      {"period_usec", limits.cpu_max->period.value}};
  }
  if (limits.cpu_max_burst) out["cpu_max_burst_usec"] = limits.cpu_max_burst->value;
  if (limits.cpu_weight) out["cpu_weight"] = *limits.cpu_weight;
  if (limits.memory_max) out["memory_max_bytes"] = bytes_or_null(limits.memory_max);
  if (limits.memory_high) out["memory_high_bytes"] = bytes_or_null(limits.memory_high);
  if (limits.memory_low) out["memory_low_bytes"] = bytes_or_null(limits.memory_low);
  if (limits.memory_min) out["memory_min_bytes"] = bytes_or_null(limits.memory_min);
  return out;
}

json to_json(const Phase& phase) {
  const bool has_index = phase.index >= 0;
  return {{"state", to_string(phase.state)},
          {"index", has_index ? json(phase.index) : json(nullptr)},
          {"letter", phase_letter(phase)},
          {"distance", phase.distance},
          {"margin", phase.margin},
          {"confidence", phase_confidence(phase)}};
}

json to_json(const Forecast::Next& next) {
  return {{"phase", next.phase},
          {"letter", phase_letter(next.phase)},
          {"probability", next.probability},
          {"in_seconds", next.in.count() > 0 ? json(next.in.count()) : json(nullptr)}};
}

json to_json(const ContainerInfo& container) {
  return {{"id", to_json(container.id)},
          {"path", escape_name(container.path)},
          {"engine", engine_name(container.engine)},
          {"engine_id", escape_name(container.engine_id)},
          {"name", escape_name(container.name)},
          {"image", escape_name(container.image)},
          {"hands_off", printable(container.hands_off)}};
}

json to_json(const Evidence& evidence) {
  json facts = json::object();
  for (std::size_t i = 0; i < kFactCount; ++i)
    facts[to_string(static_cast<Fact>(i))] = or_null(evidence.facts[i]);
  return facts;
}

json to_json(const Decision& decision, WallTime time) {
  return {{"decision_id", decision.decision_id},
          {"time", seconds_since_epoch(time)},
          {"container", to_json(decision.container)},
          {"resource", to_string(decision.resource)},
          {"direction", to_string(decision.direction)},
          {"old_limits", to_json(decision.old_limits)},
          {"new_limits", to_json(decision.new_limits)},
          {"reason", to_string(decision.reason)},
          {"verdict", to_string(decision.verdict)},
          {"phase", to_json(decision.phase)},
          {"usage", decision.usage},
          {"statistic", decision.statistic},
          {"sample_count", decision.sample_count},
          {"facts", to_json(decision.evidence)}};
}

json to_json(const Outcome& outcome, WallTime time) {
  return {{"decision_id", outcome.decision_id},
          {"time", seconds_since_epoch(time)},
          {"container", to_json(outcome.container)},
          {"kind", to_string(outcome.kind)},
          {"detail", printable(outcome.detail)}};
}

const char* engine_name(Engine engine) {
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

std::vector<Forecast::Next> told_next(const Forecast& forecast) {
  std::vector<Forecast::Next> told;
  for (const Forecast::Next& next : forecast.next)
    if (next.phase >= 0 && told.size() < kMostNext) told.push_back(next);
  return told;
}

json to_json(const ContainerReport& report) {
  json out = to_json(report.container);
  out["mode"] = to_string(report.mode);
  out["paused"] = report.paused;
  out["phase"] = to_json(report.phase);
  out["seconds_in_phase"] = or_null(report.seconds_in_phase);
  out["usage"] = usage_json(report);
  out["limits"] = to_json(report.limits);
  out["original"] = to_json(report.original);
  out["saving"] = to_json(saving(report.original, report.limits, report.granted));
  out["proposal"] = report.proposal ? to_json(*report.proposal) : json(nullptr);
  out["pinned"] = {{"cpu_cores", nullptr}, {"memory_bytes", nullptr}};
  if (report.pinned.cpu) out["pinned"]["cpu_cores"] = report.pinned.cpu->value;
  if (report.pinned.memory) out["pinned"]["memory_bytes"] = report.pinned.memory->value;
  out["proposal_saving"] =
      report.proposal ? to_json(saving(report.original, *report.proposal, report.granted))
                      : json(nullptr);
  out["next"] = next_json(report.next);
  out["holding"] = {{"cpu", verdict_or_null(report.holding_cpu)},
                    {"memory", verdict_or_null(report.holding_memory)}};
  out["throttled_usec"] = or_null(report.throttled_usec);
  out["oom_kills"] = or_null(report.oom_kills);
  out["memory_delay_usec"] = or_null(report.memory_delay_usec);
  out["phases_seen"] = phases_seen_json(report.phases_seen);
  out["run_queue"] = run_queue_json(report);
  out["network"] = to_json(report.network);
  out["block"] = to_json(report.block);
  out["gpu"] = gpu_json(report);
  return out;
}

json list_reply(std::span<const ContainerReport> reports) {
  json containers = json::array();
  for (const ContainerReport& report : reports) containers.push_back(to_json(report));
  return ok_reply({{"containers", std::move(containers)}});
}

json to_json(const StatusReport& report) {
  json sources = json::array();
  for (const SourceReport& source : report.sources)
    sources.push_back({{"name", source.name},
                       {"present", source.present},
                       {"detail", printable(source.detail)}});
  return ok_reply({
      {"version", report.version},
      {"mode", to_string(report.mode)},
      {"policy", report.policy},
      {"uptime_seconds", report.uptime_seconds},
      {"started", seconds_since_epoch(report.started)},
      {"cpu_seconds", report.cpu_seconds},
      {"overhead_cpu_cores", or_null(report.overhead_cpu_cores)},
      {"rss_bytes", report.rss_bytes},
      {"sources", std::move(sources)},
      {"gpus", gpus_json(report.gpus)},
      {"model",
       {{"path", escape_name(report.model.path)},
        {"provenance", printable(report.model.provenance)},
        {"origin", report.model.origin},
        {"phases", report.model.phases},
        {"features", report.model.features},
        {"step_seconds", report.model.step_seconds}}},
      {"store",
       {{"size_bytes", report.store.size_bytes},
        {"cap_bytes", report.store.cap_bytes},
        {"state", printable(report.store.state)},
        {"dropped_samples", report.store.dropped_samples},
        {"dropped_entries", report.store.dropped_entries},
        {"left_out", report.store.left_out},
        {"damaged", report.store.damaged},
        {"quarantined", report.store.quarantined.empty()
                            ? json()
                            : json(escape_name(report.store.quarantined))}}},
      {"containers",
       {{"observe", report.containers_observe},
        {"advise", report.containers_advise},
        {"enforce", report.containers_enforce},
        {"hands_off", report.containers_hands_off}}},
      {"saved_now", to_json(report.saved_now)},
      {"saved_core_seconds", report.saved_core_seconds},
      {"saved_byte_seconds", report.saved_byte_seconds},
      {"writes", {{"up", report.writes_up}, {"down", report.writes_down}}},
      {"trials_reverted", report.trials_reverted},
      {"impossible_samples", report.impossible_samples},
      {"changed_anything", report.changed_anything},
      {"last_written_before", report.last_written_before
                                  ? json(seconds_since_epoch(*report.last_written_before))
                                  : json(nullptr)},
      {"kill_switch", report.kill_switch},
      {"standing_down", printable(report.standing_down)},
      {"companion_needed", report.companion_needed},
      {"companion_alive", report.companion_alive},
      {"degraded", texts(report.degraded)},
  });
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
    const Saving one = saving(report.original, report.limits, report.granted);
    if (!report.cpu_limit_around) status.saved_now.cpu_cores += one.cpu_cores;
    if (!report.memory_limit_around) status.saved_now.memory_bytes += one.memory_bytes;
  }
}

json to_json(const ExplainReport& report) {
  json decisions = json::array();
  std::string sentence;
  std::size_t bytes = 0;
  for (const auto& [entry, written, end] : report.decisions) {
    json one = {{"decision", to_json(entry.decision, entry.time)},
                {"written", nullptr},
                {"outcome", nullptr},
                {"writer", text_or_null(entry.writer)}};
    if (written) one["written"] = to_json(written->outcome, written->time);
    if (end) one["outcome"] = to_json(end->outcome, end->time);
    const std::optional<JournalOutcome>& last = end ? end : written;
    one["sentence"] = explain_sentence(report.now.container.name, entry.decision,
                                       last ? &last->outcome : nullptr, entry.writer);
    if (sentence.empty()) sentence = one["sentence"].get<std::string>();
    bytes += one.dump().size();
    if (bytes > kMostExplainBytes && !decisions.empty()) break;
    decisions.push_back(std::move(one));
  }
  const bool gone = report.gone && !report.stopped;
  if (!sentence.empty() && gone) sentence += " The container is gone.";
  if (!sentence.empty() && !report.gone && !report.at)
    if (const std::string now = now_text(report, report.decisions.front().decision.decision);
        !now.empty())
      sentence += " Now: " + now + ".";
  if (sentence.empty())
    sentence = report.gone || report.at
                   ? escape_name(report.now.container.name) + (gone ? ": gone, and" : ":") +
                         " no decision about it is kept from that time."
                   : holding_sentence(report.now) +
                         (report.unwritable.empty() ? ""
                                                    : " Now: " + unwritable_text(report) + ".");
  return ok_reply({{"sentence", sentence},
                   {"at", report.at ? json(seconds_since_epoch(*report.at)) : json(nullptr)},
                   {"gone", report.gone},
                   {"container", to_json(report.now)},
                   {"decisions", std::move(decisions)}});
}

json to_json(const EventReport& report) {
  json out = {{"time", seconds_since_epoch(report.time)}, {"name", escape_name(report.name)}};
  if (report.decision) {
    out["event"] = "decision";
    out["decision"] = to_json(*report.decision, report.time);
    out["writer"] = text_or_null(report.writer);
    out["sentence"] = explain_sentence(report.name, *report.decision, nullptr, report.writer);
  }
  if (report.outcome) {
    out["event"] = "outcome";
    out["outcome"] = to_json(*report.outcome, report.time);
    out["sentence"] = outcome_sentence(report.name, *report.outcome);
  }
  return out;
}

json events_reply(std::span<const EventReport> events) {
  json out = json::array();
  for (const EventReport& event : events) out.push_back(to_json(event));
  return ok_reply({{"events", std::move(out)}});
}

json history_reply(const ContainerInfo& container, std::span<const HistoryRow> rows) {
  json points = json::array();
  for (const HistoryRow& row : rows)
    points.push_back({{"time", seconds_since_epoch(row.time)},
                      {"phase", to_json(row.phase)},
                      {"cpu_cores", or_null(row.cpu_cores)},
                      {"memory_need_bytes", or_null(row.memory_need_bytes)},
                      {"memory_current_bytes", or_null(row.memory_current_bytes)},
                      {"limits", to_json(row.limits)}});
  return ok_reply({{"container", to_json(container)}, {"points", std::move(points)}});
}

json to_json(const ActionReport& report) {
  return ok_reply({{"done", printable(report.done)},
                   {"undo", printable(report.undo)},
                   {"changes", texts(report.changes)},
                   {"failures", texts(report.failures)}});
}

}  // namespace cgphase
