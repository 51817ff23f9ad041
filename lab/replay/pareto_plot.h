// Plot of allocation over samples over the limit, per policy. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lab/replay/pareto.h"

namespace cgphase {

// One policy over a sweep of its settings.
struct ParetoCurve {
  std::string name;  // not escaped
  std::vector<ParetoPoint> marks;       // in any order; cost: share of the original limit
  std::optional<std::size_t> shipped;   // index of the shipped setting
};

// Each curve has a colour and a letter, in order.
inline constexpr std::size_t kMostParetoCurves = 18;

struct ParetoPlot {
  std::string resource;  // "CPU", "Memory"
  std::string source;    // the traces, not escaped
  std::string subtitle;  // not escaped
  std::optional<double> oracle;  // allocation of oracle-max, as a share of the original limit
  std::vector<ParetoPoint> controls;  // every setting of every phase-free control
  std::vector<ParetoCurve> curves;   // at most kMostParetoCurves
};

// Returns the SVG. A line joins the settings of each curve that no other setting of it beats. The
// area that the controls reach is grey.
std::string draw_pareto(const ParetoPlot& plot);

}  // namespace cgphase
