#include "model/phase_sequence.h"

#include <utility>

#include "base/check.h"

namespace cgphase {

void PhaseSequence::add(const PhaseRun& run) {
  CHECK_INVARIANT(run.phase >= 0 && run.phase <= kUnknownPhase && run.length > 0);
  if (!runs.empty() && runs.back().phase == run.phase) runs.back().length += run.length;
  else runs.push_back(run);
}

void PhaseSequence::add(const Phase& step) {
  if (step.state == PhaseState::not_enough_history) return;
  add(PhaseRun{step.known() ? step.index : kUnknownPhase, 1});
}

Status PhaseSequences::add(PhaseSequence sequence, const std::string& where) {
  if (sequences_.size() + without_phase_count_ >= kMaxSequences)
    return failure(ErrorKind::invalid, where + ": more than " + std::to_string(kMaxSequences) +
                                           " executions; pass fewer files at once");
  if (sequence.runs.size() > kMaxSequenceRuns - run_count_)
    return failure(ErrorKind::invalid, where + ": the phases change more than " +
                                           std::to_string(kMaxSequenceRuns) +
                                           " times in all; pass fewer files at once");
  run_count_ += sequence.runs.size();
  if (sequence.runs.empty()) ++without_phase_count_;
  else sequences_.push_back(std::move(sequence));
  return {};
}

}  // namespace cgphase
