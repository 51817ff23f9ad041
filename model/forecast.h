// What a container may need over the coming horizon.
#pragma once

#include <chrono>
#include <optional>
#include <vector>

#include "base/units.h"

namespace cgphase {

struct Forecast {
  struct Next {
    int phase = -1;
    double probability = 0;
    // Expected time until it begins; 0 where this visit is longer than any before it, so that
    // nothing tells.
    std::chrono::seconds in{0};
    std::optional<Cores> cpu_peak = {};     // over the horizon from then on; absent = not measured
    std::optional<Bytes> memory_peak = {};
  };
  std::chrono::seconds horizon{0};
  std::vector<Next> next;             // what may follow at once, most probable first
  std::optional<Cores> cpu_peak;      // over the horizon; absent = no basis for a forecast
  std::optional<Bytes> memory_peak;
  double risk = 0;                    // probability that the demand passes a peak
};

}  // namespace cgphase
