// What the daemon tells about itself and its containers: plain structs that the agent fills and
// their one JSON form, under the names of the nouns and in base units (bytes, cores, seconds since
// the epoch). The socket, HTTP and the tests use the same functions. Pure, any thread.
//
// Names, paths and images are foreign bytes: they enter JSON through escape_name(), so every string
// in the JSON is printable UTF-8 and find_container() takes it back.
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
#include "storage/journal_event.h"

namespace cgphase {

// The nouns, under their names in the headers. `limits` always has cpu_cores and memory_bytes
// (null: "max" or no file), and the raw knobs of the files that exist. `phase` has index null
// unless one is nearest, letter and confidence for people.
nlohmann::json to_json(const CgroupId& id);
nlohmann::json to_json(const Limits& limits);
nlohmann::json to_json(const Phase& phase);
nlohmann::json to_json(const Forecast::Next& next);  // in_seconds null where nothing tells
nlohmann::json to_json(const ContainerInfo& container);
nlohmann::json to_json(const Decision& decision, WallTime time);
nlohmann::json to_json(const Outcome& outcome, WallTime time);
const char* engine_name(Engine engine);
double seconds_since_epoch(WallTime time);

// The letter of model/phase.h, "?" for an unknown phase, "-" without enough history.
std::string phase_letter(const Phase& phase);
// margin / (2 distance + margin), 0..1: 1 on a centroid, 0 halfway between two. 0 unless known.
double phase_confidence(const Phase& phase);

// Words joined so that a shell reads them back as these words; for "undo" lines.
std::string shell_command(std::span<const std::string_view> words);
std::string shell_command(std::initializer_list<std::string_view> words);

// As `cgphase pin` takes it, and `all` of it also what is not pinned: "cpu=0.5,memory=auto".
std::string pin_words(const Pin& pin, bool all);

// --- one container: list, show ---

// So many of what may follow a phase are told: a reply has room for thousands of containers.
inline constexpr std::size_t kMostNext = 3;
// The most probable of them that are phases, that one first.
std::vector<Forecast::Next> told_next(const Forecast& forecast);

struct ContainerReport {
  ContainerInfo container;
  Mode mode = Mode::observe;
  bool paused = false;
  Phase phase;
  std::optional<double> seconds_in_phase;
  std::optional<double> cpu_cores;  // usage in the last interval
  std::optional<std::uint64_t> memory_need_bytes, memory_current_bytes;
  Limits limits;                   // in force
  Limits original;
  std::optional<Limits> proposal;  // what the policy wants now, before the rails
  Pin pinned;                      // what an administrator asked for
  Granted granted;                 // by the host and the cgroups around it
  // Another container that it lies in has such a limit: what it gives back is not the host's.
  bool cpu_limit_around = false, memory_limit_around = false;
  std::vector<Forecast::Next> next;                     // told_next()
  std::optional<Verdict> holding_cpu, holding_memory;   // why nothing is lowered now
  std::optional<std::uint64_t> throttled_usec, oom_kills;
  std::optional<std::uint64_t> memory_delay_usec;       // while memory.high was lowered
  std::vector<std::uint64_t> phases_seen;               // model steps by phase index
  RunQueueStat run_queue;                               // this and the next: by BPF programs
  std::optional<RunQueueHistogram> run_queue_histogram;
  NetworkStat network;
  BlockStat block;
  GpuStat gpu;                                          // of its processes, over all GPUs
  std::vector<std::string> gpu_ids;                     // of those it has a process on
};
nlohmann::json to_json(const ContainerReport& report);
// The reply to `list`.
nlohmann::json list_reply(std::span<const ContainerReport> reports);

// The container that `text` names: its name, its engine's id or at least 4 characters of it, its
// path, each raw or as escape_name() prints it. An exact name goes before a path, a path before an
// id. Errors: not_found (offers the nearest name), invalid (several match; names them).
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

// One GPU, or one MIG instance, with what all its processes use together.
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
  // The same over the last minutes, without its start; absent in the first seconds.
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
    std::string state = "ok";      // "ok", or what is wrong and what happens now
    // Gone for good since the start: samples and entries of the journal that memory had no room
    // for, and what is damaged in the file; where a corrupt file went, empty: there was none.
    std::uint64_t dropped_samples = 0, dropped_entries = 0, damaged = 0;
    std::uint64_t left_out = 0;  // refusals above one user's share of the journal
    std::string quarantined;
  } store;
  int containers_observe = 0, containers_advise = 0, containers_enforce = 0;
  int containers_hands_off = 0;    // of these, never written: see their hands_off
  Saving saved_now;                // sum over containers
  double saved_core_seconds = 0, saved_byte_seconds = 0;   // since the start
  std::uint64_t writes_up = 0, writes_down = 0, trials_reverted = 0;
  std::uint64_t impossible_samples = 0;  // left out, or without what was impossible
  // When an earlier run last wrote a limit, as far back as the journal goes.
  std::optional<WallTime> last_written_before;
  bool changed_anything = false;   // by this run, or by one that the journal knows
  bool kill_switch = false;
  std::string standing_down;       // why nothing is written on this host; empty where it may be
  bool companion_needed = true;    // false: no limit can be written on this host
  bool companion_alive = false;
  std::vector<std::string> degraded;   // one sentence each
};
nlohmann::json to_json(const StatusReport& report);
// Sets the container counts and saved_now from the containers; of two in each other it is the limit
// of the outer one that is given back.
void sum_up(StatusReport& status, std::span<const ContainerReport> reports);

// --- why: explain, events ---

struct ExplainReport {
  ContainerReport now;
  std::optional<WallTime> at;   // asked for; absent = the newest
  std::vector<JournalEntry> decisions = {};  // newest first; the first is explained
  bool gone = false;             // the container: of `now` only who it was is known
  bool stopped = false;          // the daemon: that it is gone is not known, either
  bool kill_switch = false;      // now
  std::string unwritable = {};   // now: why nothing is written to it, where its mode allows it
};
// With "sentence" first (protocol/sentence.h), and behind it what holds now where that is something
// else and neither a time was asked for nor the container is gone.
nlohmann::json to_json(const ExplainReport& report);

struct EventReport {
  std::string name;   // of the container
  WallTime time;
  std::optional<Decision> decision;   // one of the two
  std::optional<Outcome> outcome;
  std::string writer = {};            // of the decision, as in JournalDecision
};
nlohmann::json to_json(const EventReport& report);
// The reply to `events`, oldest first.
nlohmann::json events_reply(std::span<const EventReport> events);

struct HistoryRow {
  WallTime time;
  Phase phase;
  std::optional<double> cpu_cores;
  std::optional<std::uint64_t> memory_need_bytes, memory_current_bytes;
  Limits limits;
};
// The reply to `history`, oldest first.
nlohmann::json history_reply(const ContainerInfo& container, std::span<const HistoryRow> rows);

// --- acting: mode, pause, resume, restore ---

struct ActionReport {
  std::string done;   // one sentence: what is different now
  std::string undo;   // the command that takes it back (shell_command); empty when nothing changed
  std::vector<std::string> changes;    // "web-1: memory.max 1.2 GiB -> 2.0 GiB"
  std::vector<std::string> failures;   // any: the command exits with 1
};
nlohmann::json to_json(const ActionReport& report);

}  // namespace cgphase
