#include "policy/baselines/control_sweep.h"

#include <algorithm>
#include <initializer_list>

namespace cgphase {
namespace {

using Values = std::initializer_list<double>;

void add_sliding(std::vector<PolicySpec>& specs) {
  for (const double window : {10, 20, 60, 180, 600})
    for (const double deviations : {0, 1, 2, 3, 4})
      for (const double above : {1.0, 1.05, 1.1, 1.2, 1.5})
        specs.push_back(
            {"sliding", {{"window", window}, {"deviations", deviations}, {"above", above}}});
}

void add_hold(std::vector<PolicySpec>& specs, Values windows, Values quantiles, Values margins,
              Values drops, Values holds) {
  for (const double window : windows)
    for (const double quantile : quantiles)
      for (const double margin : margins)
        for (const double drop : drops)
          for (const double hold : holds)
            specs.push_back({"hold",
                             {{"window", window},
                              {"quantile", quantile},
                              {"margin", margin},
                              {"drop", drop},
                              {"hold", hold}}});
}

}  // namespace

std::vector<PolicySpec> control_sweep() {
  std::vector<PolicySpec> specs = {{"sliding", {}}, {"hold", {}}};
  add_sliding(specs);
  // These trade allocation against samples above the limit: window, quantile and margin.
  add_hold(specs, {10, 20, 60, 180, 600}, {0.9, 0.95, 1}, {1, 1.05, 1.1, 1.2, 1.35, 1.5}, {0.1},
           {10});
  // These change the number of writes, and the rest a little.
  add_hold(specs, {10, 60}, {0.95, 1}, {1.05, 1.1, 1.2}, {0.02, 0.3}, {3, 10, 30, 60});
  return specs;
}

}  // namespace cgphase
