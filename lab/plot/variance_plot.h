// Plot of cohesion and separation of clusters over their number. The elbow suggests the number of
// phases.
#pragma once

#include <string>
#include <vector>

namespace cgphase {

struct VariancePlot {
  std::string source;           // the trace's name, not escaped
  std::string points;           // what was clustered, not escaped
  std::vector<double> within;   // sum of squared distances to the own centroid, for k = 1, 2, ...
  int elbow = 1;                // the k to be marked
};

// Returns the SVG: within (SSW, cohesion) and between (SSB, separation). Their sum is the sum of
// squared distances to the mean of all points, which is `within` for k = 1.
std::string draw_variance(const VariancePlot& plot);

}  // namespace cgphase
