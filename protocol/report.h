// Reports about the daemon and its containers: plain structs that the agent fills and the command
// reads, and their one JSON form (docs/internals/protocol.md) in base units: bytes, cores, seconds
// since the epoch. Pure, any thread.
//
// Names, paths and images are foreign bytes. escape_name() makes every text in the JSON printable
// UTF-8, and find_container() accepts it.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/limits.h"
#include "collectors/containers/container_info.h"
#include "collectors/sample.h"
#include "model/forecast.h"
#include "model/phase.h"
#include "policy/budget/saving.h"
#include "policy/decision.h"
#include "policy/pin.h"
#include "policy/terms.h"
#include "storage/journal_event.h"

namespace cgphase {

// `limits` always has cpu_cores and memory_bytes (null: "max" or no file), and the raw knobs of the
// files that exist. `phase` has index null if there is no nearest phase.
nlohmann::json to_json(const CgroupId& id);
nlohmann::json to_json(const Limits& limits);
nlohmann::json to_json(const Phase& phase);
nlohmann::json to_json(const ContainerInfo& container);
nlohmann::json to_json(const Decision& decision, WallTime time);
nlohmann::json to_json(const Outcome& outcome, WallTime time);
const char* to_string(Engine engine);
double seconds_since_epoch(WallTime time);

// Returns the letter of model/phase.h, "?" for an unknown phase, "-" without enough history.
std::string phase_letter(const Phase& phase);
// Returns margin / (2 distance + margin), from 0 (halfway between two centroids) to 1 (on one). 0
// unless the phase is known.
double phase_confidence(const Phase& phase);

// Joins words, quoted for a shell; for "undo" lines.
std::string shell_command(std::span<const std::string_view> words);
std::string shell_command(std::initializer_list<std::string_view> words);

// Formats a pin as `cgphase pin` takes it: "cpu=0.5". With `all`, "cpu=0.5,memory=auto".
std::string pin_words(const Pin& pin, bool all);

// --- one container: list, show ---

// A phase that may be next. A reply has few of them, because it may have thousands of containers.
struct NextPhase {
  int phase = -1;
  double probability = 0;
  std::optional<std::int64_t> in_seconds = {};  // absent: unknown
};
inline constexpr std::size_t kMostNext = 3;
// Returns the most probable next phases, the most probable first.
std::vector<NextPhase> next_phases(const Forecast& forecast);

struct PhaseSeen {
  int phase = -1;
  std::uint64_t steps = 0;  // of the model
};

// When a container last woke: what was asleep, and how long its tasks waited for memory.
struct WakeReport {
  WallTime time;
  std::uint64_t asleep_bytes = 0;
  std::optional<std::uint64_t> waited_usec;
};

struct ContainerReport {
  ContainerInfo container;
  Mode mode = Mode::observe;
  std::optional<Terms> terms;  // absent: class standard, no minimum
  bool paused = false;
  Phase phase;
  std::optional<double> seconds_in_phase;
  std::optional<double> cpu_cores;  // usage in the last interval
  std::optional<std::uint64_t> memory_need_bytes, memory_current_bytes;
  Limits limits;                   // in force
  Limits original;
  Saving saving;
  std::optional<Limits> recommendation;  // the policy's recommendation, before the safety rules
  Pin pinned;                      // the administrator's override
  std::optional<Saving> recommended_saving;
  // Not in JSON: a container around it has such a limit, so the host gains nothing.
  bool cpu_limit_around = false, memory_limit_around = false;
  std::vector<NextPhase> next;                          // next_phases()
  std::optional<Verdict> cpu_blocked_by,
      memory_blocked_by;  // the safety rule that blocks a lowering
  std::optional<std::uint64_t> throttled_usec, oom_kills;
  std::optional<std::uint64_t> memory_delay_usec;       // while memory.high was lowered
  std::optional<std::uint64_t> asleep_bytes;            // reclaimed because it is idle
  std::optional<WakeReport> last_wake;                  // not in a list
  std::vector<PhaseSeen> phases_seen;                   // ascending
  RunQueueStat run_queue;                               // by BPF programs, as the next four
  std::optional<RunQueueHistogram> run_queue_histogram;
  NetworkStat network;
  BlockStat block;
  GpuStat gpu;                                          // of its processes, over all GPUs
  std::vector<std::string> gpu_ids;                     // GPUs with a process of the container
};
// The reply to `show` has the same members.
nlohmann::json to_json(const ContainerReport& report);
// Sets the savings of a report from its limits, within what the host and the ancestors allow.
void set_savings(ContainerReport& report, const AncestorLimits& ancestor_limits);

struct ListReply {
  std::vector<ContainerReport> containers;
};
nlohmann::json to_json(const ListReply& reply);

// Reads a reply: one of the structs with a to_json() here or in protocol/replies.h. A missing
// key or an unknown word leaves the default. Errors: invalid (an error reply; an unknown type).
template <class T>
Result<T> read_reply(const nlohmann::json& body);

// Finds the container that `text` names: its name, its engine's id or at least 4 characters of it,
// its path, each raw or as escape_name() prints it. An exact name goes before a path, a path before
// an id. Errors: not_found (with the nearest name), invalid (several match; names them).
Result<std::size_t> find_container(std::span<const ContainerInfo* const> containers,
                                   std::string_view text);
Result<std::size_t> find_container(std::span<const ContainerReport> reports,
                                   std::string_view text);

// --- the daemon: status ---

struct SourceReport {
  std::string name;     // "cgroup v2", "PSI", "eBPF", "GPU"
  bool present = false;
  std::string detail;   // where it is, or why it is off
};

// One GPU, or one MIG instance, with the use of all its processes.
struct GpuReport {
  std::string id, name;
  GpuStat use;
  std::optional<std::uint64_t> memory_total_bytes;
};

struct StatusReport {
  std::string version;
  Mode mode = Mode::observe;
  std::string policy;
  double uptime_seconds = 0;
  WallTime started;
  double cpu_seconds = 0;          // of the daemon itself, since its start
  // Over the last minutes, without the start; absent in the first seconds.
  std::optional<double> overhead_cpu_cores;
  std::uint64_t rss_bytes = 0;
  std::vector<SourceReport> sources;
  std::vector<GpuReport> gpus;
  struct {
    std::string path, provenance;
    std::string origin;            // "configuration", "installed" or "package"
    int phases = 0, features = 0;
    double step_seconds = 0;
  } model;
  struct {
    std::uint64_t size_bytes = 0, cap_bytes = 0;
    std::string state = "ok";      // "ok", or the fault and what happens now
    // Lost since the start: samples and journal entries that could not be written, and damaged
    // blocks or rows of the file.
    std::uint64_t dropped_samples = 0, dropped_entries = 0, damaged = 0;
    std::uint64_t left_out = 0;  // refusals above one user's share of the journal
    std::string quarantined;     // path of a corrupt or older file that was replaced
  } store;
  int containers_observe = 0, containers_advise = 0, containers_enforce = 0;
  int containers_hands_off = 0;    // never written, whatever their mode
  Saving saved_now;                // sum over containers
  double saved_core_seconds = 0, saved_byte_seconds = 0;   // since the start
  std::uint64_t writes_up = 0, writes_down = 0, trials_reverted = 0;
  std::uint64_t impossible_samples = 0;  // left out, or without their impossible values
  // The last write of an earlier run, as far back as the journal goes.
  std::optional<WallTime> last_written_before;
  bool changed_anything = false;   // by this run, or by an earlier one in the journal
  bool kill_switch = false;
  std::string standing_down;       // why nothing is written on this host; empty: writes are allowed
  bool companion_needed = true;    // false: no limit can be written on this host
  bool companion_alive = false;
  std::vector<std::string> degraded;   // one sentence each
};
nlohmann::json to_json(const StatusReport& report);
// Sets the container counts and saved_now from the containers. If one container contains another,
// only the outer one counts as saved.
void sum_up(StatusReport& status, std::span<const ContainerReport> reports);

// --- why: explain, events ---

// The facts of an explanation.
struct ExplainReport {
  ContainerReport now;
  std::optional<WallTime> at;    // the time in the request; absent: the newest
  std::vector<JournalEntry> decisions = {};  // newest first; the first is explained
  bool gone = false;             // the container does not run: `now` has only its names
  bool stopped = false;          // the daemon does not run: unknown whether the container runs
  bool kill_switch = false;      // now
  std::string unwritable = {};   // now: why a mode that allows writing does not write
};

struct ExplainedDecision {
  JournalEntry entry;
  std::string sentence;
};
nlohmann::json to_json(const ExplainedDecision& decision);

// The reply to `explain`, with at most kMostExplainBytes of decisions. The sentence
// (protocol/sentence.h) adds the present state if it differs, unless a time is given or the
// container is gone.
struct ExplainReply {
  std::string sentence;
  std::optional<WallTime> at;
  bool gone = false;
  ContainerReport container;
  std::vector<ExplainedDecision> decisions;
};
ExplainReply explain_reply(const ExplainReport& report);
nlohmann::json to_json(const ExplainReply& reply);
nlohmann::json to_json(const ExplainReport& report);  // of its reply
inline constexpr std::size_t kMostExplainBytes = 48 * 1024;

struct EventReport {
  std::string name;   // of the container
  WallTime time;
  std::optional<Decision> decision;   // exactly one of decision and outcome
  std::optional<Outcome> outcome;
  std::string writer = {};            // of the decision, as in JournalDecision
  std::string sentence = {};          // set by reading; to_json() makes it from the others
};
nlohmann::json to_json(const EventReport& report);
// The reply to `events`, oldest first.
struct EventsReply {
  std::vector<nlohmann::json> events;  // EventReport; reading gives time, name and sentence
  std::string earlier = {};            // `before` of the previous page; empty: there is none
};
nlohmann::json to_json(const EventsReply& reply);

struct HistoryRow {
  WallTime time;
  Phase phase;
  std::optional<double> cpu_cores;
  std::optional<std::uint64_t> memory_need_bytes, memory_current_bytes;
  Limits limits;
};
// The reply to `history`. A reply by record has no `gone` and no `earlier`, and an entry of
// `earlier` has no points.
struct HistoryReply {
  ContainerInfo container;
  std::optional<std::int64_t> record;  // its number in the history
  std::optional<WallTime> first_seen;
  std::optional<std::vector<HistoryRow>> points;  // oldest first
  std::optional<bool> gone;
  std::optional<std::vector<HistoryReply>> earlier;  // of this name, oldest first
};
nlohmann::json to_json(const HistoryReply& reply);

// --- acting: mode, pause, resume, restore ---

struct ActionReport {
  std::string done;   // one sentence: the change
  std::string undo;   // the command that undoes it (shell_command); empty if nothing changed
  std::vector<std::string> changes;    // "web-1: memory.max 1.2 GiB -> 2.0 GiB"
  std::vector<std::string> failures;   // if there is one, the command exits with 1
};
nlohmann::json to_json(const ActionReport& report);

}  // namespace cgphase
