#include "policy/safety/live_runs.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr double kMostRunBytes = 1125899906842624.0;  // 1 PiB

std::unexpected<Error> refuse_runs(const char* why) {
  return failure(ErrorKind::invalid, std::string("peaks of live runs: ") + why);
}

}  // namespace

void LiveRuns::keep(CgroupId id, const std::string& container, double need_bytes) {
  const std::string name = escape_name(container);
  if (!(need_bytes > 0) || need_bytes > kMostRunBytes || name.size() > kMostNameBytes) return;
  if (runs_.size() >= kRuns && !runs_.contains(id)) return;
  Run& run = runs_[id];
  if (run.name != name) run = {.name = name};
  run.need_bytes = std::max(run.need_bytes, need_bytes);
  if (run.need_bytes <= kNewsRatio * run.saved_bytes) return;
  run.saved_bytes = run.need_bytes;
  news_ = true;
}

std::optional<double> LiveRuns::peak_bytes(CgroupId id, const std::string& container) const {
  const auto found = runs_.find(id);
  if (found == runs_.end() || found->second.name != escape_name(container)) return std::nullopt;
  return found->second.need_bytes;
}

bool LiveRuns::take_news() { return std::exchange(news_, false); }

Result<LiveRuns> LiveRuns::from_runs(Runs runs) {
  if (runs.size() > kRuns) return refuse_runs("more than 1024");
  for (const auto& [id, run] : runs) {
    if (run.name.size() > kMostNameBytes) return refuse_runs("a name is too long");
    if (!(run.need_bytes > 0 && run.need_bytes <= kMostRunBytes))
      return refuse_runs("a need is out of range");
  }
  LiveRuns saved;
  saved.runs_ = std::move(runs);
  return saved;
}

}  // namespace cgphase
