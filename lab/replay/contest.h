// Many replays of the same executions, each made once, on as many processors as there are. What
// comes out does not depend on their number.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "lab/replay/comparison.h"
#include "lab/replay/replay.h"

namespace cgphase {

// One replay to be made.
struct Entrant {
  Contender contender;
  ReplaySettings settings;
  bool keep_limits = false;
  bool swept_only = false;  // result() is not asked for, only swept()
};

// A replay as a point of a sweep.
struct Swept {
  SweptResource cpu, memory;
};

class Contest {
 public:
  // The place of its result; that of an equal one that was entered before. What any of them asks
  // for is kept.
  std::size_t enter(const Entrant& entrant);
  std::vector<std::size_t> enter_all(const std::vector<Entrant>& entrants);

  void run(const ReplayInput& input);

  // After run(). Of entrants that are swept only there are no executions.
  const Result<ContenderResult>& result(std::size_t place) const { return results_[place]; }
  // After run(). Errors: those of result().
  Result<Swept> swept(std::size_t place) const;

 private:
  std::vector<Entrant> entrants_;
  std::map<std::string, std::size_t> places_;
  std::vector<Result<ContenderResult>> results_;
  std::vector<Swept> swept_;  // of those that are swept only
};

}  // namespace cgphase
