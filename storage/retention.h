// Maximum age and resolution of each tier of the history (docs/internals/storage.md, "Tiers").
#pragma once

#include <chrono>
#include <string>

namespace cgphase {

struct Retention {
  std::chrono::seconds raw_for = std::chrono::hours(24);
  std::chrono::seconds medium_step{15}, medium_for = std::chrono::hours(24 * 7);
  std::chrono::seconds coarse_step{60}, coarse_for = std::chrono::hours(24 * 30);
  friend bool operator==(const Retention&, const Retention&) = default;
};

// Why these numbers are not valid tiers; empty if they are.
inline std::string wrong_retention(const Retention& retention) {
  if (retention.medium_step.count() <= 0) return "medium_step is not above 0";
  if (retention.coarse_step <= retention.medium_step ||
      retention.coarse_step % retention.medium_step != std::chrono::seconds(0))
    return "coarse_step is not a multiple of medium_step";
  if (retention.raw_for > retention.medium_for)
    return "medium_for is shorter than raw_for";
  if (retention.medium_for > retention.coarse_for)
    return "coarse_for is shorter than medium_for";
  return {};
}

}  // namespace cgphase
