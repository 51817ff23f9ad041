// Idle and burst of the network and the GPUs of every container: of its run, and of earlier runs of
// its image (model/burst_history.h). Pure: no clock, no files; the agent keeps the histories.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "collectors/sample.h"
#include "model/burst_history.h"
#include "model/bursts.h"

namespace cgphase {

// Images whose histories are in memory; beyond that the first by name goes.
inline constexpr std::size_t kBurstImages = 256;

// Owned and used by the agent's thread alone.
class BurstWatch {
 public:
  // One tick. Whoever vanished in it was ended before, or is forgotten.
  void observe(const NodeSample& tick);
  // The run of a container is over, or nearly. Absent where it had no burst and no idle time.
  std::optional<RunBursts> end(CgroupId id);
  // A run of the image that ended.
  void add(const std::string& image, const RunBursts& run);

  // What the database has of an image. Ignored where it is damaged or something is known already.
  bool knows(const std::string& image) const { return images_.contains(image); }
  void remember(const std::string& image, const nlohmann::json& stored);

  // {"now":{..}, "next":{..}}: bursts_to_json() of the run so far, each series with `bursting`
  // (null where no cut is claimed) and the means `low` and `high` of its cut; and
  // predictions_to_json() from the image's earlier runs.
  nlohmann::json report(CgroupId id, const std::string& image) const;

 private:
  std::map<CgroupId, BurstMeter> meters_;
  std::map<std::string, BurstHistory> images_;
};

// What the database has of an image, and a run more. A damaged one begins anew.
nlohmann::json merge_bursts(const nlohmann::json& stored, const RunBursts& run);

}  // namespace cgphase
