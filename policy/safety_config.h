// The numbers of safety: what the safety rules judge by, and the fast path where it judges the
// same.
#pragma once

#include <chrono>
#include <cstdint>

#include "base/units.h"

namespace cgphase {

// The horizon of memory: a peak of the last minute, and one foreseen within a minute, are kept room
// for.
inline constexpr std::chrono::seconds kMemoryHorizon{60};
// Of enough_samples, what memory needs: its limit is soft, and a wrong one costs milliseconds.
inline constexpr double kMemorySampleShare = 1.0 / 3;

// Each number is one row of the table in docs/safety.md and has a test.
struct SafetyConfig {
  double enough_samples = 60;
  int enough_runs = 3;
  double quiet_memory_io_some_avg10 = 0.001;
  double quiet_cpu_some_avg10 = 0.10;
  bool cpu_pressure_holds_memory = true;   // a throttled container keeps its memory too
  std::chrono::seconds cool_down{300};
  std::chrono::seconds quarantine{24 * 3600};
  std::chrono::seconds stall_quarantine{30 * 60};    // after the fast path's stall breaker
  int trials_before_quarantine = 3;
  std::chrono::seconds trial{30};
  int trial_model_steps = 3;
  double trial_tolerance_ratio = 0.20;
  std::chrono::seconds host_lower_window{60};
  int host_lowers_per_window = 4;
  std::chrono::milliseconds reaction_time{500};
  double at_risk_ratio = 0.90;
  double cpu_headroom_ratio = 1.15;
  std::uint64_t cpu_floor_usec_per_period = 10'000;
  double throttled_ratio = 0.02;
  std::chrono::seconds throttled_window{5};
  double cpu_raise_factor = 1.2;
  std::chrono::seconds cpu_lower_window{60};
  double memory_headroom_ratio = 1.15;
  std::uint64_t memory_headroom_bytes = 256 * kMiB;  // 25 % of the limit below 1 GiB
  double killed_margin_factor = 2;         // of these two, beside who kills on pressure or limit
  double memory_step_ratio = 0.50;         // a step down, where need is not steady and unproven
  std::chrono::seconds memory_lower_window{10};
  std::chrono::seconds dwell{30};          // need steady for so long: a step may take half the gap
  std::chrono::minutes stand_down{15};     // after somebody else's change
  double smallest_change_ratio = 0.05;     // lowering by less is not worth a write
  double smallest_raise_ratio =
      0.01;  // a recommendation above the limit by less is not worth a write
  int throttled_periods = 3;               // in throttled_window
  std::chrono::seconds cpu_raises_window{600};  // a second raise in it goes back to the original
  std::chrono::seconds at_risk_growth{2};  // need grows to the limit within so long
  double stall_full_avg10 = 0.10;          // memory PSI `full` under our limit: to the original
  std::chrono::seconds settle{10};         // hold after a gap, a freeze, a counter reset
  std::chrono::seconds start_up{20};       // hold after processes (re)start: they read their limits
  std::chrono::seconds failure_memory{3600};    // failed trials are forgotten after so long
  double steady_ratio = 0.02;              // of the limit: need moves less than this in a dwell
  double growing_ratio = 0.01;             // of the limit: need that rose by more is growing
  double cache_room_ratio = 0.05;          // kept free above memory.current, cache and all
  double trial_stall_allowance = 0.01;     // share of time; never worse below this
  double trial_faults_allowance = 10;      // refaults or major faults per second; likewise
  std::chrono::seconds silent_revert{10};  // file = original so soon after a reload or our write
  std::chrono::seconds reapply_pause{30};
  int reapplies_per_hour = 3;
  int rival_changes = 3;                   // each after a lowering of ours, in rival_window
  std::chrono::seconds rival_window{6 * 3600};
  std::chrono::seconds rival_pause{24 * 3600};  // only observed; then the next change is enough
  bool lower_gpu_quota = false;            // of a container that has a GPU, or may have one

  friend bool operator==(const SafetyConfig&, const SafetyConfig&) = default;
};

}  // namespace cgphase
