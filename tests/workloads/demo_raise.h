// Finds raises before a phase in what the daemon of scripts/demo recorded: a limit rose, and only
// later, in another phase, use passed the limit that was in force before. Pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace cgphase::workloads {

struct Raise {
  std::string container, knob;    // knob: memory.high or cpu.max
  double second = 0;              // of the run
  double from = 0, to = 0;        // bytes or cores, as the journal has them
  double seconds_before = 0;      // until use passed `from`
  double use_then = 0, use = 0;   // when the limit rose, and when use passed `from`
  char phase_then = '?', phase = '?';
};

// `events` are lines of `cgphase events -o jsonl`. `points` are lines of `cgphase history NAME -o
// jsonl`, oldest first. Both may have other runs; only what is not older than `begin`, in seconds
// since 1970, counts. Raises by the fast path do not count, because they answer use. If several
// raises precede one rise of use, the highest counts. Throws what nlohmann-json throws if a field
// is missing.
std::vector<Raise> raises_before_phases(const std::string& container, double begin,
                                        const std::vector<nlohmann::json>& events,
                                        const std::vector<nlohmann::json>& points);

// One sentence.
std::string to_text(const Raise& raise);

}  // namespace cgphase::workloads
