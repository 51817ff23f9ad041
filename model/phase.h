// The behaviour phase of a container in one model step.
#pragma once

#include <cstdint>
#include <string>

namespace cgphase {

enum class PhaseState : std::uint8_t {
  not_enough_history,  // fewer steps than the model's history since the start or the last gap
  unknown,             // farther from its centroid than the model's novelty bound, or uncertain
  known,
};

struct Phase {
  PhaseState state = PhaseState::not_enough_history;
  int index = -1;       // 0-based centroid, also if the state is unknown; -1 without history
  double distance = 0;  // squared Euclidean distance of the hidden activation to that centroid
  // Squared distance to the nearest other centroid minus `distance`. It is negative if the model's
  // switch cost keeps a phase that is not the nearest.
  double margin = 0;
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

// The name of a phase for people, the same in all output: "A" for index 0 ... "Z", "AA"; "-" for a
// negative index.
inline std::string phase_letter(int index) {
  if (index < 0) return "-";
  std::string letters(1, static_cast<char>('A' + index % 26));
  return index < 26 ? letters : phase_letter(index / 26 - 1) + letters;
}

}  // namespace cgphase
