// A change of one container's limits: what cgphase wants, why, and what came of it.
#pragma once

#include <chrono>
#include <cstddef>
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

// CPU and memory are limits. Weight is the share of contended CPU. Freeze stops all processes.
enum class Resource : std::uint8_t { cpu, memory, cpu_weight, freeze };
inline constexpr std::size_t kResourceCount = 4;

constexpr Resource resource_of(Knob knob) {
  switch (knob) {
    case Knob::cpu_max:
    case Knob::cpu_max_burst: return Resource::cpu;
    case Knob::cpu_weight: return Resource::cpu_weight;
    case Knob::memory_max:
    case Knob::memory_high: return Resource::memory;
    case Knob::cgroup_freeze: return Resource::freeze;
  }
  return Resource::cpu;
}

// Why a limit should change. Text for people is made from it by the front ends.
enum class Reason : std::uint8_t {
  phase_statistics,     // lowered to the need of this phase
  phase_changed,        // raised before or at the start of another phase
  window_statistics,    // the rule of a policy that ignores phases
  headroom,             // usage or need came close to the limit
  throttled,            // raised because of nr_throttled / throttled_usec
  memory_event,         // a new max or oom event
  pressure,             // PSI or its substitutes
  trial_failed,         // reverted
  restored,             // back to the original: stop, kill switch, request, restart of processes
  stalled,              // reclaim failed at memory.high: the fast path's stall breaker
  another_manager,      // restored, because another manager sets limits here
  oom_remembered,       // raised to the floor that an OOM in another run of the image left
  gpu_seen,             // restored, because the container has a GPU, or may have one
  pinned,               // set to the value that an administrator asked for
  program_started,      // restored: a new program reads the limits and must find the originals
  reads_limits,         // restored, because a program rereads the limit while it runs
  silence,              // restored by cgphase-restore, because the daemon was silent for too long
  service_class,        // the weight of the container's class
  budget,               // what the host's budget grants
  memory_short,         // frozen, because the needs of all exceed the host's budget
  memory_fits,          // thawed, because they fit again
  freeze_over,          // thawed, because its owner allows no more at once
};

// The answer of the safety rules.
enum class Verdict : std::uint8_t {
  allowed,
  observe_mode,          // mode observe: nothing is recommended
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
  too_small,             // too little difference to be worth a write
  memory_growing,
  standing_down,         // somebody else changed the limit
  cache_in_way,          // page cache would reach the new limit at once; reclaim it first
  silently_reverted,     // a reload or the engine restored the original; a pause follows
  oom_remembered,        // the image had an OOM under a limit of ours; its floor blocks
  rival,                 // a conflicting writer undoes each lowering
  gpu_container,         // it has a GPU, or may have one, so its quota is not lowered
  reads_limits,          // a program rereads this limit while it runs, so it is not lowered
  at_floor,              // use or need leaves no step that is worth a write
  granted,               // raised above its original limit by consent
  shared_by_weight,      // no quota is lowered ([enforce] cpu)
};

enum class Direction : std::uint8_t { lower, raise };

// One change of one container's limits, recommended or made. `new_limits` differs from `old_limits`
// only in the knobs to write.
struct Decision {
  std::uint64_t decision_id = 0;  // ascending within a core
  MonotonicTime time;
  CgroupId container;
  Resource resource = Resource::cpu;
  Direction direction = Direction::lower;
  Limits old_limits;
  Limits new_limits;
  Reason reason = Reason::phase_statistics;
  Verdict verdict = Verdict::allowed;
  Phase phase;
  // The numbers behind it, for `explain`.
  double usage = 0;           // cores, or bytes of need
  double statistic = 0;       // recommended by the policy before the safety rules, cores or bytes
  double sample_count = 0;    // samples in the statistic
  Evidence evidence = {};

  // When a freeze must end. Absent if it is none.
  std::optional<MonotonicTime> deadline() const {
    const auto longest = evidence[Fact::freeze_seconds];
    if (resource != Resource::freeze || direction != Direction::lower || !longest)
      return std::nullopt;
    return time + std::chrono::seconds(static_cast<std::int64_t>(*longest));
  }
};

// How the write of a decision ended.
enum class WriteEnd : std::uint8_t {
  done,
  failed,
  overtaken,  // a raise or a restore came first: nothing was changed, no failure
  program_started,  // a program started first, and the originals are back: no failure
};

enum class OutcomeKind : std::uint8_t {
  trial_passed,
  trial_reverted,   // worse than the tolerance
  write_failed,
  overtaken,        // raised or restored before the write or the trial ended
  written,          // in force and read back; the trial of a lowering begins
};

// The result of a decision that was written.
struct Outcome {
  std::uint64_t decision_id = 0;
  MonotonicTime time;
  CgroupId container;
  OutcomeKind kind = OutcomeKind::trial_passed;
  std::string detail;  // numbers for explain: which measure, before, after
};

// Names as used in JSON, in the journal and in text.
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
    case Resource::cpu_weight: return "cpu_weight";
    case Resource::freeze: return "freeze";
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
    case Reason::service_class: return "service_class";
    case Reason::budget: return "budget";
    case Reason::memory_short: return "memory_short";
    case Reason::memory_fits: return "memory_fits";
    case Reason::freeze_over: return "freeze_over";
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
    case Verdict::granted: return "granted";
    case Verdict::shared_by_weight: return "shared_by_weight";
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
