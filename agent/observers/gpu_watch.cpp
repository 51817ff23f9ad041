#include "agent/observers/gpu_watch.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"
#include "policy/safety/safety_rules.h"

namespace cgphase {

bool GpuWatch::scan(const NodeSample& tick, const std::function<bool(CgroupId)>& wanted) {
  bool changed = follow(tick);
  changed = take(tick.time) || changed;
  if (!scanner_->failed().empty()) return changed;
  if (unanswered_.empty()) ask_host(tick.time);
  changed = take(tick.time) || changed;
  if (unanswered_.empty() && host_may_have_gpu()) ask_containers(tick.time, wanted);
  changed = take(tick.time) || changed;
  return judge_hang(tick.time) || changed;
}

// Updates which containers exist and which have processes.
bool GpuWatch::follow(const NodeSample& tick) {
  for (const CgroupId& id : tick.vanished) watched_.erase(id);
  for (const ContainerInfo& info : tick.appeared)
    watched_[info.id] = {.name = info.name, .path = info.path};
  bool changed = false;
  for (const Sample& sample : tick.containers) {
    const auto found = watched_.find(sample.id);
    if (found == watched_.end()) continue;
    Watched& watched = found->second;
    const bool populated = sample.populated.value_or(true);
    if (populated == watched.populated) continue;
    changed = true;
    watched = {.name = watched.name, .path = watched.path, .populated = populated};
  }
  return changed;
}

void GpuWatch::ask(std::vector<GpuScanRequest> requests, MonotonicTime now) {
  if (requests.empty()) return;
  for (const GpuScanRequest& request : requests) unanswered_.push_back(request.container);
  asked_ = turn_began_ = now;
  scanner_->ask(std::move(requests));
}

void GpuWatch::ask_host(MonotonicTime now) {
  if (next_host_scan_ && now < *next_host_scan_) return;
  next_host_scan_ = now + kPeriod;
  ask({GpuScanRequest{}}, now);
}

void GpuWatch::ask_containers(MonotonicTime now, const std::function<bool(CgroupId)>& wanted) {
  std::vector<GpuScanRequest> requests;
  std::vector<std::pair<MonotonicTime, CgroupId>> waiting;
  for (auto& [id, watched] : watched_) {
    if (!watched.populated || watched.use == GpuUse::seen) continue;
    const bool due = !watched.scanned || now - *watched.scanned >= kPeriod;
    const bool early = !due && now - *watched.scanned > kFreshGpuLook && wanted(id);
    if (early) waiting.emplace_back(*watched.scanned, id);
    if (!due) continue;
    watched.asked = true;
    requests.push_back({id, watched.path, host_.value_or(HostDevices{})});
  }
  std::ranges::sort(waiting);
  if (waiting.size() > kMostWanted) waiting.resize(kMostWanted);
  for (const auto& [scanned, id] : waiting) {
    Watched& watched = watched_.at(id);
    watched.asked = true;
    requests.push_back({id, watched.path, host_.value_or(HostDevices{})});
  }
  ask(std::move(requests), now);
}

bool GpuWatch::take(MonotonicTime now) {
  bool changed = false;
  for (const GpuScanResult& result : scanner_->drain_results()) {
    CHECK_INVARIANT(!unanswered_.empty());
    const std::optional<CgroupId> id = unanswered_.front();
    unanswered_.pop_front();
    turn_began_ = now;
    hung_.clear();
    if (!id) {
      changed = take_host(result.host) || changed;
      continue;
    }
    const auto found = watched_.find(*id);
    // A scan of processes that have ended is ignored.
    if (found == watched_.end() || !std::exchange(found->second.asked, false)) continue;
    found->second.use = result.use;
    found->second.scanned = asked_;
    changed = true;
  }
  return changed;
}

bool GpuWatch::take_host(const Result<HostDevices>& found) {
  const bool before = host_may_have_gpu();
  if (found) host_ = *found;
  error_ = found ? "" : found.error().text;
  return host_may_have_gpu() != before;
}

bool GpuWatch::judge_hang(MonotonicTime now) {
  if (unanswered_.empty() || now - turn_began_ < kHung) return false;
  const auto found = unanswered_.front() ? watched_.find(*unanswered_.front()) : watched_.end();
  if (hung_.empty())
    hung_ = !unanswered_.front()       ? "this host"
            : found == watched_.end() ? "a container that is gone"
                                      : escape_name(found->second.name);
  if (found == watched_.end() || !found->second.asked) return false;
  return std::exchange(found->second.use, GpuUse::unknown) != GpuUse::unknown;
}

const GpuWatch::Watched* GpuWatch::find(CgroupId id) const {
  const auto found = watched_.find(id);
  return found == watched_.end() || !found->second.populated ? nullptr : &found->second;
}

bool GpuWatch::may_have_gpu(CgroupId id) const {
  const Watched* const watched = host_may_have_gpu() ? find(id) : nullptr;
  return watched != nullptr && watched->use != GpuUse::none;
}

std::optional<MonotonicTime> GpuWatch::ruled_out(CgroupId id) const {
  const Watched* const watched = host_may_have_gpu() ? find(id) : nullptr;
  if (watched == nullptr || watched->use != GpuUse::none) return std::nullopt;
  return watched->scanned;
}

Source GpuWatch::source() const {
  if (!scanner_->failed().empty()) return {"GPU", false, scanner_->failed()};
  Source source{"GPU", host_ && host_->gpu, error_};
  if (!error_.empty()) return source;
  if (!source.present) {
    source.detail = host_ ? "no GPU among the devices of this host" : "not scanned yet";
    return source;
  }
  const auto count = [&](GpuUse use) {
    return std::ranges::count_if(watched_, [=](const auto& one) {
      return one.second.populated && one.second.use == use;
    });
  };
  source.detail = "seen in " + std::to_string(count(GpuUse::seen)) + " containers";
  if (const auto unknown = count(GpuUse::unknown); unknown > 0)
    source.detail += ", possible in " + std::to_string(unknown);
  return source;
}

std::string GpuWatch::degraded() const {
  if (hung_.empty()) return {};
  return "the scan for a GPU hangs at " + hung_ +
         ", whose /dev may be on a disk that does not answer: it and newer containers may have a "
         "GPU, and no further CPU quota is lowered from its original";
}

}  // namespace cgphase
