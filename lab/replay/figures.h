// The pictures of a replay: `cgphase replay --svg` and `cgphase plot --kind replay`. Pure, but for
// write_figures().
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/plot/trace_plot.h"
#include "lab/replay/comparison.h"
#include "lab/replay/replay.h"

namespace cgphase {

// Pictures of single executions that one call draws at most.
inline constexpr std::size_t kMostExecutionFigures = 32;

struct Figure {
  std::string name;  // of the file, in its directory
  std::string svg;
};

// Demand and original limits of one execution with the limits of the replays, which were kept, and
// its phases. `place` counts ReplayInput::executions; at most kMostPlottedPolicies replays.
PlottedExecution plotted(const ReplayInput& input, std::size_t place,
                         std::span<const ContenderResult* const> results);

// What those pictures have in common. `model` names the file of the engine; "" where there is none.
TracePlot empty_replay_plot(const ReplayInput& input, const std::string& source,
                            const std::string& model,
                            std::span<const ContenderResult* const> results);

// One picture per execution, of the first kMostExecutionFigures.
std::vector<Figure> execution_figures(const ReplayInput& input, const std::string& source,
                                      const std::string& model,
                                      std::span<const ContenderResult* const> results);

// One picture per resource that was measured. `controls` may be null.
std::vector<Figure> pareto_figures(std::span<const Sweep> sweeps, const Sweep* controls,
                                   const std::string& source, const std::string& subtitle);

// Creates the directory where it is not there. All files are written before the first appears; each
// says at its end which file it is. Once all are there, pictures of an earlier call that this one
// has none of are removed: files that say that they are this very file, no others. Those that
// cannot be removed are returned, by their names; errors are those of writing.
Result<std::vector<std::string>> write_figures(const std::string& directory,
                                               std::span<const Figure> figures);

}  // namespace cgphase
