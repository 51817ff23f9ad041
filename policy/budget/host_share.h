// Divides one resource of the host among its containers (docs/concepts.md). Pure.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "policy/terms.h"

namespace cgphase {

// Used outside of containers, in cores and bytes; it is not theirs to divide.
struct OutsideShare {
  double cpu_cores = 0, memory_bytes = 0;  // a high quantile of the last hours
  double memory_now_bytes = 0;
};

// The limits that a container may have now instead of its original ones. Absent: the original.
struct Grant {
  std::optional<double> cpu_cores, memory_bytes;
  friend bool operator==(const Grant&, const Grant&) = default;
};

// What one container asks for, in any unit. The sum of all `least` is granted even above the
// budget.
struct ShareClaim {
  ServiceClass service_class = ServiceClass::standard;
  double least = 0;
  double need = 0;   // at the accepted risk; counts up to `most`
  double most = 0;   // its limit, or what its owner agrees to
  bool wants_more = false;
};

// What each claim gets, in their order: first the minimum of all, then the need of critical,
// standard and batch, then what is left for those who want more, in the same order. Within a class
// it is max-min fair: nobody gets more while another with less still asks.
std::vector<double> share_budget(double budget, std::span<const ShareClaim> claims);

}  // namespace cgphase
