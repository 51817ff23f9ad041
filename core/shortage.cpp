#include "core/shortage.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/reclaim.h"

namespace cgphase {
namespace {

// Less is no growth, but the batches in which the kernel counts.
constexpr double kLeastGrowth = 1 << 20, kGrowthRatio = 0.01;

// What it needs in memory: without what is in swap. Unknown need counts as all that is charged.
double need_of(const ContainerView& view) {
  if (!view.memory_need) return bytes_of(view.sample.memory_current);
  return std::max(bytes_of(view.memory_need) - bytes_of(view.sample.swap_current), 0.0);
}

bool gives_way(const ContainerView& view) {
  return view.terms.service_class == ServiceClass::batch && view.mode == Mode::enforce &&
         view.info.hands_off.empty();
}

// Without swap only page cache can be dropped.
double reclaimable(const ContainerView& view, const HostCapacity& host) {
  const MemoryStat& memory = view.sample.memory;
  const double anon = has_swap(view.sample, host)
                          ? static_cast<double>(memory.inactive_anon_bytes.value_or(0)) : 0;
  return static_cast<double>(memory.inactive_file_bytes.value_or(0)) + anon;
}

std::optional<CacheReclaim> cold_memory(std::span<const Claimant> claimants,
                                        const HostCapacity& host, double short_bytes) {
  const ContainerView* most = nullptr;
  for (const Claimant& one : claimants)
    if (gives_way(*one.view) && !one.view->inside &&
        (!most || reclaimable(*one.view, host) > reclaimable(*most, host)))
      most = one.view;
  if (!most) return std::nullopt;
  const double bytes = std::min(short_bytes, kShortReclaimRatio * reclaimable(*most, host));
  const Bytes pages{static_cast<std::uint64_t>(bytes) / kPageBytes * kPageBytes};
  if (pages.value == 0) return std::nullopt;
  return CacheReclaim{most->info.id, pages};
}

}  // namespace

// Who grew most since the shortage began, or since it was last frozen: to freeze one that does not
// grow would keep its memory longer. One in mode advise is only reported, so it comes last.
ContainerView* ShortageRule::next_to_freeze(std::span<const Claimant> claimants) const {
  const auto grown = [this](const ContainerView& view) {
    const auto before = before_.find(view.info.id);
    return need_of(view) - (before == before_.end() ? 0 : before->second);
  };
  const auto rank = [&grown](const ContainerView& view) {
    return std::pair(view.mode == Mode::enforce, grown(view));
  };
  ContainerView* first = nullptr;
  for (const Claimant& one : claimants)
    if (one.view->may_freeze && !one.view->around_others &&
        grown(*one.view) > std::max(kLeastGrowth, kGrowthRatio * need_of(*one.view)) &&
        (!first || rank(*one.view) > rank(*first)))
      first = one.view;
  return first;
}

std::optional<CacheReclaim> ShortageRule::step(const BudgetConfig& config,
                                               const HostCapacity& host,
                                               const OutsideShare& outside,
                                               std::span<const Claimant> claimants) {
  const double budget = static_cast<double>(host.memory.value) * config.memory_ratio;
  double short_bytes = outside.memory_now_bytes - budget;
  for (const Claimant& one : claimants)
    if (!one.view->inside) short_bytes += need_of(*one.view);
  const bool is_short = host.memory.value > 0 && short_bytes > 0;
  short_ticks_ = is_short ? short_ticks_ + 1 : 0;
  keep_ = is_short || (keep_ && short_bytes > -kThawMargin * budget);
  if (short_ticks_ == 1) {
    before_.clear();
    for (const Claimant& one : claimants) before_[one.view->info.id] = need_of(*one.view);
  }
  for (const Claimant& one : claimants)
    if (one.view->in_force.frozen == true) before_[one.view->info.id] = need_of(*one.view);
  // What is frozen stays so, until its owner allows no more.
  for (const Claimant& one : claimants)
    one.view->shortage = {keep_ && one.view->in_force.frozen == true, short_bytes};
  if (!is_short) return std::nullopt;
  if (short_ticks_ > kReclaimTicks)
    if (ContainerView* const next = next_to_freeze(claimants)) next->shortage.freeze = true;
  return cold_memory(claimants, host, short_bytes);
}

}  // namespace cgphase
