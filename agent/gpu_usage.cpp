#include "agent/gpu_usage.h"

#include <algorithm>
#include <string_view>
#include <type_traits>

namespace cgphase {
namespace {

template <class T>
void add_told(std::optional<T>& sum, const std::optional<T>& more) {
  if (!more) return;
  if constexpr (std::is_same_v<T, Bytes>) sum = Bytes{sum.value_or(T{}).value + more->value};
  else sum = sum.value_or(T{}) + *more;
}

}  // namespace

void GpuUsage::follow(const NodeSample& tick) {
  for (const CgroupId& id : tick.vanished)
    if (const auto gone = paths_.extract(id); gone)
      if (const auto at = containers_.find(gone.mapped());
          at != containers_.end() && at->second == id)
        containers_.erase(at);
  for (const ContainerInfo& info : tick.appeared) {
    paths_[info.id] = info.path;
    containers_[info.path] = info.id;
  }
  if (tick.vanished.empty() && tick.appeared.empty()) return;
  std::vector<CgroupPath> paths;
  for (const auto& [path, id] : containers_) paths.push_back(path);
  source_->set_containers(std::move(paths));
}

std::optional<CgroupId> GpuUsage::container_of(const CgroupPath& cgroup) const {
  for (std::string_view path = cgroup; path.starts_with('/');
       path = path.substr(0, path.rfind('/'))) {
    const auto found = containers_.find(CgroupPath(path));
    if (found != containers_.end()) return found->second;
  }
  return std::nullopt;
}

void GpuUsage::add_up(const GpuReading& reading) {
  uses_.clear();
  std::map<CgroupId, std::vector<std::size_t>> devices;
  for (const GpuClient& client : reading.clients) {
    const std::optional<CgroupId> id = container_of(client.cgroup);
    if (!id) continue;
    GpuStat& sum = uses_[*id].sum;
    add_told(sum.utilisation_ratio, client.use.utilisation_ratio);
    add_told(sum.memory_utilisation_ratio, client.use.memory_utilisation_ratio);
    add_told(sum.memory_bytes, client.use.memory_bytes);
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
  follow(tick);
  std::shared_ptr<const GpuReading> latest = source_->latest();
  if (latest && tick.time - latest->time > GpuSource::kStale) latest = nullptr;
  reading_ = std::move(latest);
  uses_.clear();
  if (reading_) add_up(*reading_);
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
