// The behaviour phase of a container in one model step.
#pragma once

#include <cstdint>

namespace cgphase {

enum class PhaseState : std::uint8_t {
  not_enough_history,  // fewer steps than the model's history since the start or the last gap
  unknown,             // farther from every centroid than the model's novelty bound, or uncertain
  known,
};

struct Phase {
  PhaseState state = PhaseState::not_enough_history;
  int index = -1;       // 0-based centroid, the nearest one also when state is unknown; else -1
  double distance = 0;  // squared Euclidean distance of the hidden activation to that centroid
  double margin = 0;    // squared distance to the second centroid minus `distance`
  bool known() const { return state == PhaseState::known; }
};

inline const char* to_string(PhaseState state) {
  switch (state) {
    case PhaseState::not_enough_history: return "not enough history";
    case PhaseState::unknown: return "unknown";
    case PhaseState::known: return "known";
  }
  return "";
}

}  // namespace cgphase
