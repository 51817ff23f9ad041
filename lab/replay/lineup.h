// Chooses the policies to replay, from the command line. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/replay/contest.h"

namespace cgphase {

struct LineupOptions {
  std::vector<std::string> policies;  // as given, see words.h; or "all"; empty: kDefaultPolicies
  std::vector<double> margins = {0};
  bool bare = false;  // otherwise ours are also replayed with safety rules, with their own margins
  bool rails = false;  // asked for: an error where they are impossible, which else leaves them out
  bool threshold_given = false;        // else the safety rules use the daemon's guard threshold
};

// What the user would save, what could be saved without phases, and what at best.
inline constexpr std::string_view kDefaultPolicies[] = {"phase", "hold", "oracle-max", "static"};

// The policies of a report.
struct Lineup {
  std::vector<PolicySpec> policies;
  bool all = false;                // policies that cannot run are left out
  std::vector<Entrant> entrants;   // each policy with each margin
  // Names for --assert: "hold@5" with a margin of 5 %, "phase+rails@0". Without @ the first margin
  // is meant.
  std::vector<std::string> names;
  std::vector<std::size_t> named;  // entrant of each name, by index
};

// Errors: invalid; the text begins with the option.
Result<Lineup> line_up(const LineupOptions& options, const ReplaySettings& settings);

// Returns the indices of at most `most` entrants for pictures, with the first margin: ours first,
// then hold, then the others. static and oracles are used only if there is nothing else.
std::vector<std::size_t> pictured(const Lineup& lineup, std::size_t most);

}  // namespace cgphase
