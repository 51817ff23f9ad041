// What cgphase wants to do to one container, why, and what became of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/limits.h"
#include "model/phase.h"
#include "policy/evidence.h"

namespace cgphase {

enum class Mode : std::uint8_t { observe, advise, enforce };

enum class Resource : std::uint8_t { cpu, memory };

// Why a limit should change. Text for people is made from it at the edge.
enum class Reason : std::uint8_t {
  phase_statistics,     // lowered to what this phase needs
  phase_changed,        // raised ahead of or at the start of another phase
  window_statistics,    // a phase-free policy's own rule
  headroom,             // usage or need came close to the limit
  throttled,            // raised because of nr_throttled / throttled_usec
  memory_event,         // a new max or oom event
  pressure,             // PSI or its substitutes
  trial_failed,         // reverted
  restored,             // back to the original: stop, kill switch, request, restart of processes
  stalled,              // reclaim in vain at memory.high: the guard's stall breaker
  another_manager,      // restored, because somebody else sets limits here
  oom_remembered,       // raised to what an OOM of another run of the image taught
  gpu_seen,             // restored, because the container has a GPU, or may have one
  pinned,               // to what an administrator asked for
  program_started,      // restored: a new program reads the limits, which are to be the original
  reads_limits,         // restored, because its programs read the limit again and again
  silence,              // restored by cgphase-restore, because the daemon was silent for too long
};

// What the guard rails said.
enum class Verdict : std::uint8_t {
  allowed,
  observe_mode,          // mode observe: not even proposed
  advise_mode,           // would have been written
  hands_off,             // another manager owns it
  no_limit,              // the container has no limit and manage_unlimited is off
  phase_unknown,
  not_enough_samples,
  stale_data,            // gap, clock jump, counter reset, frozen, just resumed
  cool_down,
  quarantined,
  pressure_not_quiet,
  trial_running,
  rate_limited,          // per container and window, or per host
  too_small,             // what is wished differs too little to be worth a write
  memory_growing,
  standing_down,         // somebody else changed the limit
  cache_in_way,          // page cache would meet the new limit at once; reclaim it first
  silently_reverted,     // a reload or the engine put the original back; a pause
  oom_remembered,        // its image ran out of memory under a limit of ours: not below that floor
  rival,                 // somebody else changes its limits again and again: theirs
  gpu_container,         // it has a GPU, or that cannot be ruled out: its quota stays
  reads_limits,          // its programs read this limit again and again: it stays what they read
  at_floor,              // what it uses or needs leaves no step that is worth a write
};

enum class Direction : std::uint8_t { lower, raise };

// One change of one container's limits, proposed or made. `new_limits` differs from `old_limits`
// only in the knobs to be written.
struct Decision {
  std::uint64_t decision_id = 0;  // ascending within a pipeline
  MonotonicTime time;
  CgroupId container;
  Resource resource = Resource::cpu;
  Direction direction = Direction::lower;
  Limits old_limits;
  Limits new_limits;
  Reason reason = Reason::phase_statistics;
  Verdict verdict = Verdict::allowed;
  Phase phase;
  // The numbers behind it, for explain.
  double usage = 0;           // cores, or bytes of need
  double statistic = 0;       // cores or bytes the policy asked for before the rails
  double sample_count = 0;    // samples in the statistic
  Evidence evidence = {};
};

// How the writing of a decision ended.
enum class WriteEnd : std::uint8_t {
  done,
  failed,
  overtaken,  // a raise or a restore came first: nothing was changed, nobody is to blame
  program_started,  // one came first, and the originals are back: nobody is to blame
};

enum class OutcomeKind : std::uint8_t {
  trial_passed,
  trial_reverted,   // measured worse than tolerance
  write_failed,
  overtaken,        // raised or restored for another reason before the write or the trial ended
  written,          // in force, as read back; the trial of a lowering begins
};

// What became of a decision that was written.
struct Outcome {
  std::uint64_t decision_id = 0;
  MonotonicTime time;
  CgroupId container;
  OutcomeKind kind = OutcomeKind::trial_passed;
  std::string detail;  // numbers for explain: which measure, before, after
};

// Names as they stand in JSON, in the journal and in text.
constexpr const char* to_string(Mode mode) {
  switch (mode) {
    case Mode::observe: return "observe";
    case Mode::advise: return "advise";
    case Mode::enforce: return "enforce";
  }
  return "";
}

constexpr const char* to_string(Resource resource) {
  switch (resource) {
    case Resource::cpu: return "cpu";
    case Resource::memory: return "memory";
  }
  return "";
}

constexpr const char* to_string(Reason reason) {
  switch (reason) {
    case Reason::phase_statistics: return "phase_statistics";
    case Reason::phase_changed: return "phase_changed";
    case Reason::window_statistics: return "window_statistics";
    case Reason::headroom: return "headroom";
    case Reason::throttled: return "throttled";
    case Reason::memory_event: return "memory_event";
    case Reason::pressure: return "pressure";
    case Reason::trial_failed: return "trial_failed";
    case Reason::restored: return "restored";
    case Reason::stalled: return "stalled";
    case Reason::another_manager: return "another_manager";
    case Reason::oom_remembered: return "oom_remembered";
    case Reason::gpu_seen: return "gpu_seen";
    case Reason::pinned: return "pinned";
    case Reason::program_started: return "program_started";
    case Reason::reads_limits: return "reads_limits";
    case Reason::silence: return "silence";
  }
  return "";
}

constexpr const char* to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::allowed: return "allowed";
    case Verdict::observe_mode: return "observe_mode";
    case Verdict::advise_mode: return "advise_mode";
    case Verdict::hands_off: return "hands_off";
    case Verdict::no_limit: return "no_limit";
    case Verdict::phase_unknown: return "phase_unknown";
    case Verdict::not_enough_samples: return "not_enough_samples";
    case Verdict::stale_data: return "stale_data";
    case Verdict::cool_down: return "cool_down";
    case Verdict::quarantined: return "quarantined";
    case Verdict::pressure_not_quiet: return "pressure_not_quiet";
    case Verdict::trial_running: return "trial_running";
    case Verdict::rate_limited: return "rate_limited";
    case Verdict::too_small: return "too_small";
    case Verdict::memory_growing: return "memory_growing";
    case Verdict::standing_down: return "standing_down";
    case Verdict::cache_in_way: return "cache_in_way";
    case Verdict::silently_reverted: return "silently_reverted";
    case Verdict::oom_remembered: return "oom_remembered";
    case Verdict::rival: return "rival";
    case Verdict::gpu_container: return "gpu_container";
    case Verdict::reads_limits: return "reads_limits";
    case Verdict::at_floor: return "at_floor";
  }
  return "";
}

constexpr const char* to_string(Direction direction) {
  switch (direction) {
    case Direction::lower: return "lower";
    case Direction::raise: return "raise";
  }
  return "";
}

constexpr const char* to_string(OutcomeKind kind) {
  switch (kind) {
    case OutcomeKind::trial_passed: return "trial_passed";
    case OutcomeKind::trial_reverted: return "trial_reverted";
    case OutcomeKind::write_failed: return "write_failed";
    case OutcomeKind::overtaken: return "overtaken";
    case OutcomeKind::written: return "written";
  }
  return "";
}

constexpr std::optional<Mode> parse_mode(std::string_view text) {
  for (const Mode mode : {Mode::observe, Mode::advise, Mode::enforce})
    if (text == to_string(mode)) return mode;
  return std::nullopt;
}

}  // namespace cgphase
