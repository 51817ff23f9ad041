#include "agent/observers/burst_watch.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace cgphase {
namespace {

nlohmann::json run_so_far(const BurstMeter& meter) {
  nlohmann::json now = bursts_to_json(meter.bursts());
  for (std::size_t i = 0; i < kBurstSources; ++i) {
    nlohmann::json& series = now[std::string(burst_source_name(i))];
    if (series.is_null()) continue;
    const BurstCutter& cutter = meter.cutter(static_cast<BurstSource>(i));
    const auto bursting = cutter.bursting();
    const auto cut = cutter.cut();
    series["bursting"] = bursting ? nlohmann::json(*bursting) : nlohmann::json();
    series["low"] = cut ? nlohmann::json(cut->low) : nlohmann::json();
    series["high"] = cut ? nlohmann::json(cut->high) : nlohmann::json();
  }
  return now;
}

}  // namespace

void BurstWatch::observe(const NodeSample& tick) {
  for (const CgroupId& id : tick.vanished) meters_.erase(id);
  for (const Sample& sample : tick.containers) meters_[sample.id].add(sample, tick.time);
}

std::optional<RunBursts> BurstWatch::end(CgroupId id) {
  const auto meter = meters_.extract(id);
  if (meter.empty()) return std::nullopt;
  const RunBursts run = meter.mapped().bursts();
  if (!has_segments(run)) return std::nullopt;
  return run;
}

void BurstWatch::add(const std::string& image, const RunBursts& run) {
  if (images_.size() >= kBurstImages && !images_.contains(image)) images_.erase(images_.begin());
  images_[image].add(run);
}

void BurstWatch::remember(const std::string& image, const nlohmann::json& stored) {
  if (images_.contains(image)) return;
  const Result<BurstHistory> history = BurstHistory::from_json(stored);
  if (!history) return;
  if (images_.size() >= kBurstImages) images_.erase(images_.begin());
  images_.emplace(image, *history);
}

nlohmann::json merge_bursts(const nlohmann::json& stored, const RunBursts& run) {
  const Result<BurstHistory> known = BurstHistory::from_json(stored);
  BurstHistory history = known ? *known : BurstHistory();
  history.add(run);
  return history.to_json();
}

nlohmann::json BurstWatch::report(CgroupId id, const std::string& image) const {
  const auto meter = meters_.find(id);
  const auto history = images_.find(image);
  return {{"now", run_so_far(meter == meters_.end() ? BurstMeter() : meter->second)},
          {"next", predictions_to_json(history == images_.end() ? BurstHistory()
                                                                : history->second)}};
}

}  // namespace cgphase
