#include "agent/earlier_runs.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "policy/safety/rails_memory_json.h"

namespace cgphase {

Result<EarlierRuns> load_earlier_runs(Store& store) {
  EarlierRuns earlier;
  const Result<nlohmann::json> stored = store.load_learned(kRailsMemoryName);
  if (store.detached()) return std::unexpected(stored.error());
  Result<RailsMemory> rails =
      stored ? rails_memory_from_json(*stored) : std::unexpected(stored.error());
  if (rails) earlier.rails = *std::move(rails);
  else if (rails.error().kind != ErrorKind::not_found)
    earlier.damage = "what OOMs taught is forgotten, and quarantines: " + rails.error().text;
  earlier.last_written = store.last_written().value_or(std::nullopt);
  return earlier;
}

}  // namespace cgphase
