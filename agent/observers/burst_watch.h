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

// Maximum number of images in memory. Beyond that, the first by name is dropped.
inline constexpr std::size_t kBurstImages = 256;

// Owned and used by the agent's thread alone.
class BurstWatch {
 public:
  // Adds one tick. Call end() before for containers that vanished in it, else they are forgotten.
  void observe(const NodeSample& tick);
  // Ends the run of a container. Absent if it had no burst and no idle time.
  std::optional<RunBursts> end(CgroupId id);
  // Adds a run that ended to the history of its image.
  void add(const std::string& image, const RunBursts& run);

  // Adds the stored history of an image. Ignored if it is damaged, or if the image is known.
  bool knows(const std::string& image) const { return images_.contains(image); }
  void remember(const std::string& image, const nlohmann::json& stored);

  // {"now":{..}, "next":{..}}: bursts_to_json() of the run so far, each series with `bursting`
  // (null without a cut) and the means `low` and `high` of its cut; and
  // predictions_to_json() from the image's earlier runs.
  nlohmann::json report(CgroupId id, const std::string& image) const;

 private:
  std::map<CgroupId, BurstMeter> meters_;
  std::map<std::string, BurstHistory> images_;
};

// Adds a run to the stored history of an image. A damaged history is replaced.
nlohmann::json merge_bursts(const nlohmann::json& stored, const RunBursts& run);

}  // namespace cgphase
