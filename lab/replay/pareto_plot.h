// What policies allocate at how many samples over the limit, as a picture. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace cgphase {

struct ParetoMark {
  double over = 0;       // share of samples
  double allocated = 0;  // of the original limit
};

// One policy over a sweep of its settings.
struct ParetoCurve {
  std::string name;  // not escaped
  std::vector<ParetoMark> marks;        // in any order
  std::optional<std::size_t> shipped;   // the setting that is shipped, by index
};

// Curves have a colour and a letter each, in their order.
inline constexpr std::size_t kMostParetoCurves = 18;

struct ParetoPlot {
  std::string resource;  // "CPU", "Memory"
  std::string source;    // the traces, not escaped
  std::string subtitle;  // not escaped
  std::optional<double> oracle;  // what oracle-max allocates, of the original limit
  std::vector<ParetoMark> controls;  // every setting of every phase-free control
  std::vector<ParetoCurve> curves;   // at most kMostParetoCurves
};

// The SVG. Of each curve the settings that no other of it beats are joined by a line; what the
// controls reach is grey.
std::string draw_pareto(const ParetoPlot& plot);

}  // namespace cgphase
