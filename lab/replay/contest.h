// Runs many replays of the same executions, each once, on all processors. The results do not depend
// on the number of processors.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lab/replay/comparison.h"
#include "lab/replay/replay.h"

namespace cgphase {

// One replay to run.
struct Entrant {
  Contender contender;
  ReplaySettings settings;
  bool keep_limits = false;
  bool swept_only = false;  // only swept() is needed, not result()
};

// The result of a replay as a point of a sweep.
struct Swept {
  SweptResource cpu, memory;
};

class Contest {
 public:
  // Enters a replay and returns the index of its result. Equal replays share one index, and keep
  // everything that any of them needs.
  std::size_t enter(const Entrant& entrant);
  std::vector<std::size_t> enter_all(const std::vector<Entrant>& entrants);

  void run(const ReplayInput& input);

  // Call after run(). Entrants with swept_only have no executions.
  const Result<ContenderResult>& result(std::size_t place) const { return results_[place]; }
  // Call after run(). Errors: those of result().
  Result<Swept> swept(std::size_t place) const;

 private:
  std::vector<Entrant> entrants_;
  std::map<std::string, std::size_t> places_;
  std::vector<Result<ContenderResult>> results_;
  std::vector<Swept> swept_;  // of entrants with swept_only
};

}  // namespace cgphase
