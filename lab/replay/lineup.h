// Who is replayed, from the words of the command line. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/replay/contest.h"

namespace cgphase {

struct LineupOptions {
  std::vector<std::string> policies;  // as told, see words.h; or "all"; none: kDefaultPolicies
  std::vector<double> margins = {0};
  bool rails = false;                 // ours with rails, too, which have their own margins
  bool threshold_told = false;        // else rails have the daemon's own guard threshold
};

// What the user would save, what could be saved without phases, and what at best.
inline constexpr std::string_view kDefaultPolicies[] = {"phase", "hold", "oracle-max", "static"};

// The policies of a report.
struct Lineup {
  std::vector<PolicySpec> policies;
  bool all = false;                // those that cannot run are left out
  std::vector<Entrant> entrants;   // each policy with each margin
  // By which --assert knows them: "hold@5" with a margin of 5 %, "phase+rails@0"; without @ the
  // first margin is meant.
  std::vector<std::string> names;
  std::vector<std::size_t> named;  // the entrants of the names, by index
};

// Errors: invalid, beginning with the option.
Result<Lineup> line_up(const LineupOptions& options, const ReplaySettings& settings);

// Whose limits pictures show, at most so many entrants by index, with the first margin: ours first,
// then hold, then the others; static or an oracle only where there is nobody else.
std::vector<std::size_t> pictured(const Lineup& lineup, std::size_t most);

}  // namespace cgphase
