#include "agent/observers/gpu_usage.h"

#include <algorithm>
#include <optional>
#include <type_traits>

namespace cgphase {
namespace {

template <class T>
void add_if_known(std::optional<T>& sum, const std::optional<T>& more) {
  if (!more) return;
  if constexpr (std::is_same_v<T, Bytes>) sum = Bytes{sum.value_or(T{}).value + more->value};
  else sum = sum.value_or(T{}) + *more;
}

}  // namespace

void GpuUsage::add_up(const GpuReading& reading) {
  std::map<CgroupId, std::vector<std::size_t>> devices;
  for (const GpuClient& client : reading.clients) {
    const std::optional<CgroupId> id = containers_.nearest(client.cgroup);
    if (!id) continue;
    GpuStat& sum = uses_[*id].sum;
    add_if_known(sum.utilisation_ratio, client.use.utilisation_ratio);
    add_if_known(sum.memory_utilisation_ratio, client.use.memory_utilisation_ratio);
    add_if_known(sum.memory_bytes, client.use.memory_bytes);
    devices[*id].push_back(client.device);
  }
  for (auto& [id, indices] : devices) {
    std::ranges::sort(indices);
    const auto rest = std::ranges::unique(indices);
    indices.erase(rest.begin(), rest.end());
    for (const std::size_t index : indices) uses_[id].gpus.push_back(reading.devices[index].id);
  }
}

void GpuUsage::fill(NodeSample& tick) {
  const bool changed = containers_.follow(tick);
  if (changed) source_->set_containers(containers_.all());
  std::shared_ptr<const GpuReading> latest = source_->latest();
  if (latest && tick.time - latest->time > GpuSource::kStale) latest = nullptr;
  // The drivers are read less often than the files.
  if (changed || latest != reading_) {
    reading_ = std::move(latest);
    uses_.clear();
    if (reading_) add_up(*reading_);
  }
  for (Sample& sample : tick.containers) {
    const auto use = uses_.find(sample.id);
    sample.gpu = use == uses_.end() ? GpuStat{} : use->second.sum;
  }
}

const std::vector<std::string>& GpuUsage::gpus_of(CgroupId id) const {
  static const std::vector<std::string> none;
  const auto use = uses_.find(id);
  return use == uses_.end() ? none : use->second.gpus;
}

const std::vector<GpuDevice>& GpuUsage::devices() const {
  static const std::vector<GpuDevice> none;
  return reading_ ? reading_->devices : none;
}

}  // namespace cgphase
