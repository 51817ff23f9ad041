// The resources that a container may need over the coming horizon.
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
    // Expected time until it begins; 0 if this visit is already longer than any before it, so that
    // there is no basis for an estimate.
    std::chrono::seconds in{0};
    std::optional<Cores> cpu_peak = {};  // over the horizon that begins then; absent = not measured
    std::optional<Bytes> memory_peak = {};
  };
  std::chrono::seconds horizon{0};
  std::vector<Next> next;             // possible next phases, most probable first
  std::optional<Cores> cpu_peak;      // over the horizon; absent = no basis for a forecast
  std::optional<Bytes> memory_peak;
  double risk = 0;  // probability that the demand exceeds a peak
};

}  // namespace cgphase
