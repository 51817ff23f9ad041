#include "policy/safety/live_runs.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
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

nlohmann::json LiveRuns::to_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const auto& [id, run] : runs_)
    list.push_back({{"device", id.device},
                    {"inode", id.inode},
                    {"name", run.name},
                    {"need_bytes", run.need_bytes}});
  return list;
}

Result<LiveRuns> LiveRuns::from_json(const nlohmann::json& json) {
  if (!json.is_array() || json.size() > kRuns) return refuse_runs("no list of at most 1024");
  LiveRuns runs;
  for (const auto& entry : json) {
    if (!entry.is_object()) return refuse_runs("an entry is not an object");
    const auto at = [&](const char* key) { return entry.value(key, nlohmann::json()); };
    const nlohmann::json device = at("device"), inode = at("inode"), name = at("name"),
                         need = at("need_bytes");
    if (!device.is_number_unsigned() || !inode.is_number_unsigned() || !name.is_string() ||
        name.get_ref<const std::string&>().size() > kMostNameBytes || !need.is_number() ||
        !(need.get<double>() > 0 && need.get<double>() <= kMostRunBytes))
      return refuse_runs("a number or a name is missing or out of range");
    const double bytes = need.get<double>();
    runs.runs_[{device.get<std::uint64_t>(), inode.get<std::uint64_t>()}] = {
        name.get<std::string>(), bytes, bytes};
  }
  return runs;
}

}  // namespace cgphase
