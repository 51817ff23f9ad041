// Which phases an execution went through, and for how long.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/phase.h"

namespace cgphase {

// Stands for all steps whose phase is unknown (PhaseState), after the phases that a model can have.
inline constexpr int kUnknownPhase = kMaxPhases;

// Bounds of what is looked at together; one past any of them is refused. A line of a file holds
// so few runs (text_lines.h) that all steps together stay far below 2^63.
inline constexpr std::size_t kMaxSequences = 200'000;
inline constexpr std::size_t kMaxSequenceRuns = 2'000'000;        // of all sequences
inline constexpr std::uint64_t kMaxRunLength = 1'000'000'000;     // as read; steps

// A phase, 0..kMaxPhases-1 or kUnknownPhase, that lasted `length` steps, at least one.
struct PhaseRun {
  int phase = 0;
  std::uint64_t length = 0;
  friend bool operator==(const PhaseRun&, const PhaseRun&) = default;
};

// The runs of one execution in their order; neighbours differ in phase.
struct PhaseSequence {
  std::string id;
  std::vector<PhaseRun> runs;

  // Appends; a run of the same phase as the last one prolongs it.
  void add(const PhaseRun& run);
  // One step. One without enough history has no phase and is left out, so that a gap in the
  // telemetry does not part a phase that goes on behind it.
  void add(const Phase& step);
};

// The sequence of these steps.
PhaseSequence phase_sequence(std::string id, std::span<const Phase> steps);

// The sequences of several executions. A value; executions without any phase are only counted.
class PhaseSequences {
 public:
  // `where` opens the error: invalid, beyond kMaxSequences or kMaxSequenceRuns.
  Status add(PhaseSequence sequence, const std::string& where);

  const std::vector<PhaseSequence>& with_phases() const { return sequences_; }
  std::size_t without_phase_count() const { return without_phase_count_; }

 private:
  std::vector<PhaseSequence> sequences_;
  std::size_t without_phase_count_ = 0, run_count_ = 0;
};

}  // namespace cgphase
