// The phases that an execution went through, and their lengths.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/model.h"
#include "model/phase.h"

namespace cgphase {

// The index of all steps whose phase is unknown (PhaseState), after all phases of a model.
inline constexpr int kUnknownPhase = kMaxPhases;

// Limits of one analysis. More is refused. A line of a file has so few runs (text_lines.h) that the
// sum of all steps stays far below 2^63.
inline constexpr std::size_t kMaxSequences = 200'000;
inline constexpr std::size_t kMaxSequenceRuns = 2'000'000;        // of all sequences
inline constexpr std::uint64_t kMaxRunLength = 1'000'000'000;     // in a file; steps

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

  // Appends a run. A run of the same phase as the last one extends it.
  void add(const PhaseRun& run);
  // Appends one step. A step without enough history has no phase and is skipped, so that a gap in
  // the telemetry does not split a phase.
  void add(const Phase& step);
};

// The sequences of several executions. A value. Executions without any phase are only counted.
class PhaseSequences {
 public:
  // The error starts with `where` and is invalid: more than kMaxSequences or kMaxSequenceRuns.
  Status add(PhaseSequence sequence, const std::string& where);

  const std::vector<PhaseSequence>& with_phases() const { return sequences_; }
  std::size_t without_phase_count() const { return without_phase_count_; }

 private:
  std::vector<PhaseSequence> sequences_;
  std::size_t without_phase_count_ = 0, run_count_ = 0;
};

}  // namespace cgphase
