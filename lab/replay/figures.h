// Draws the pictures of a replay: `cgphase replay --svg` and `cgphase plot --kind replay`. Pure,
// except write_figures().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/plot/trace_plot.h"
#include "lab/replay/replay.h"

namespace cgphase {

// Most pictures of single executions per call.
inline constexpr std::size_t kMostExecutionFigures = 32;

struct Figure {
  std::string name;  // name of the file in its directory
  std::string svg;
};

// Draws demand, original limits and phases of one execution, and the limits of the replays, which
// must have kept them. `place` is an index into ReplayInput::executions. At most
// kMostPlottedPolicies replays.
PlottedExecution plotted(const ReplayInput& input, std::size_t place,
                         std::span<const ContenderResult* const> results);

// Common part of those pictures. `model` names the file of the engine; "": no engine.
TracePlot empty_replay_plot(const ReplayInput& input, const std::string& source,
                            const std::string& model,
                            std::span<const ContenderResult* const> results);

// Returns one picture for each of the first kMostExecutionFigures executions.
std::vector<Figure> execution_figures(const ReplayInput& input, const std::string& source,
                                      const std::string& model,
                                      std::span<const ContenderResult* const> results);

// Creates the directory if it is missing. All files are written before the first appears; each
// contains its own file name. Then pictures of an earlier call that this call does not have are
// removed: only files that contain their own name. Returns the names of those that cannot be
// removed. Errors: those of writing.
Result<std::vector<std::string>> write_figures(const std::string& directory,
                                               std::span<const Figure> figures);

}  // namespace cgphase
