#include "agent/gpu_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace cgphase {

bool GpuWatch::look_at_host(MonotonicTime now) {
  if (next_host_look_ && now < *next_host_look_) return false;
  next_host_look_ = now + kPeriod;
  const bool before = host_may_have_gpu();
  const Result<HostDevices> found = read_host_devices(proc_root_);
  if (found) host_ = *found;
  error_ = found ? "" : found.error().text;
  return host_may_have_gpu() != before;
}

bool GpuWatch::look(const NodeSample& tick, const NodeSampler& sampler) {
  bool changed = look_at_host(tick.time);
  if (!host_may_have_gpu()) {
    watched_.clear();
    return changed;
  }
  for (const CgroupId& id : tick.vanished) watched_.erase(id);
  std::vector<std::pair<CgroupId, Watched*>> due;
  for (const Sample& sample : tick.containers) {
    if (!sample.populated.value_or(true)) {
      changed = watched_.erase(sample.id) > 0 || changed;
      continue;
    }
    const auto [entry, added] = watched_.try_emplace(sample.id);
    changed = changed || added;
    Watched& watched = entry->second;
    if (watched.use == GpuUse::seen) continue;
    if (!watched.looked || tick.time - *watched.looked >= kPeriod)
      due.emplace_back(sample.id, &watched);
  }
  // Who waits longest, or was never looked at, comes first.
  std::ranges::stable_sort(due, {}, [](const auto& one) { return one.second->looked; });
  std::size_t processes = 0, entries = 0;
  for (const auto& [id, watched] : due) {
    if (processes >= kEnoughProcesses || entries >= kEnoughEntries) break;
    const Result<Fd> directory = sampler.duplicate_directory(id);
    const GpuLook seen = directory ? find_gpu(directory->get(), proc_root_,
                                              host_.value_or(HostDevices{}))
                                   : GpuLook{GpuUse::unknown, 0, 0};
    processes += seen.processes;
    entries += seen.entries;
    watched->looked = tick.time;
    changed = changed || seen.use != watched->use;
    watched->use = seen.use;
  }
  return changed;
}

bool GpuWatch::may_have_gpu(CgroupId id) const {
  if (!host_may_have_gpu()) return false;
  const auto found = watched_.find(id);
  return found != watched_.end() && found->second.use != GpuUse::none;
}

Source GpuWatch::source() const {
  Source source{"GPU", host_ && host_->gpu, error_};
  if (!error_.empty()) return source;
  if (!source.present) {
    source.detail = "no GPU among the devices of this host";
    return source;
  }
  const auto count = [&](GpuUse use) {
    return std::ranges::count_if(watched_, [=](const auto& one) { return one.second.use == use; });
  };
  source.detail = "seen in " + std::to_string(count(GpuUse::seen)) + " containers";
  if (const auto unknown = count(GpuUse::unknown); unknown > 0)
    source.detail += ", not to be ruled out in " + std::to_string(unknown);
  return source;
}

}  // namespace cgphase
