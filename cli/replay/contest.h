// Many replays of the same executions, each made once, on as many processors as there are. What
// comes out does not depend on their number.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "cli/replay/replay.h"

namespace cgphase {

// One replay to be made.
struct Entrant {
  Contender contender;
  ReplaySettings settings;
  bool keep_limits = false;
};

class Contest {
 public:
  // The place of its result; that of an equal one that was entered before.
  std::size_t enter(const Entrant& entrant);
  std::vector<std::size_t> enter_all(const std::vector<Entrant>& entrants);

  void run(const ReplayInput& input);

  // After run().
  const Result<ContenderResult>& result(std::size_t place) const { return results_[place]; }

 private:
  std::vector<Entrant> entrants_;
  std::map<std::string, std::size_t> places_;
  std::vector<Result<ContenderResult>> results_;
};

}  // namespace cgphase
