#include "policy/learned_state.h"

namespace cgphase {

Status check(const LearnedState& learned) {
  if (const auto* phases = std::get_if<LearnedPhases>(&learned)) return check(*phases);
  if (const auto* usage = std::get_if<LearnedUsage>(&learned)) return check(*usage);
  return {};
}

LearnedState merge_learned(const LearnedState& earlier, const LearnedState& run) {
  if (is_empty(run) || !check(run)) return earlier;
  if (const auto* phases = std::get_if<LearnedPhases>(&run)) {
    const auto* before = std::get_if<LearnedPhases>(&earlier);
    return merge(before != nullptr && check(*before) ? *before : LearnedPhases{}, *phases);
  }
  const auto& usage = std::get<LearnedUsage>(run);
  const auto* before = std::get_if<LearnedUsage>(&earlier);
  return before == nullptr ? usage : merge(*before, usage);
}

}  // namespace cgphase
