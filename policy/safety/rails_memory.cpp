#include "policy/safety/rails_memory.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace cgphase {

void RailsMemory::add(const RailsMemory& earlier, WallTime now) {
  ooms.add(earlier.ooms, now);
  quarantines.add(earlier.quarantines, now);
}

bool RailsMemory::follow_clock(WallTime now) {
  const bool changed = ooms.follow_clock(now);
  return quarantines.follow_clock(now) || changed;
}

nlohmann::json RailsMemory::to_json() const {
  nlohmann::json json = ooms.to_json();
  json["quarantines"] = quarantines.to_json();
  json["runs"] = runs.to_json();
  return json;
}

Result<RailsMemory> RailsMemory::from_json(const nlohmann::json& json) {
  Result<OomMemory> ooms = OomMemory::from_json(json);
  if (!ooms) return std::unexpected(ooms.error());
  RailsMemory memory{*std::move(ooms), {}};
  if (const auto told = json.find("quarantines"); told != json.end()) {
    Result<Quarantines> quarantines = Quarantines::from_json(*told);
    if (!quarantines) return std::unexpected(quarantines.error());
    memory.quarantines = *std::move(quarantines);
  }
  if (const auto told = json.find("runs"); told != json.end()) {
    Result<LiveRuns> runs = LiveRuns::from_json(*told);
    if (!runs) return std::unexpected(runs.error());
    memory.runs = *std::move(runs);
  }
  return memory;
}

}  // namespace cgphase
