#include "agent/earlier_runs.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "policy/safety/safety_memory_json.h"

namespace cgphase {

Result<EarlierRuns> load_earlier_runs(Store& store) {
  EarlierRuns earlier;
  const Result<nlohmann::json> stored = store.load_learned(kSafetyMemoryName);
  if (store.detached()) return std::unexpected(stored.error());
  Result<SafetyMemory> safety =
      stored ? safety_memory_from_json(*stored) : std::unexpected(stored.error());
  if (safety) earlier.safety = *std::move(safety);
  else if (safety.error().kind != ErrorKind::not_found)
    earlier.damage = "what OOMs taught is forgotten, and quarantines: " + safety.error().text;
  earlier.last_written = store.last_written().value_or(std::nullopt);
  return earlier;
}

}  // namespace cgphase
