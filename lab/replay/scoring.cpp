#include "lab/replay/scoring.h"

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "lab/replay/oracle.h"

namespace cgphase {
namespace {

// A quota of one microsecond in a period of 100 ms.
constexpr double kQuotasPerCore = 100'000;

// Far below a step, but large enough to advance a time.
constexpr double kRounding = 1e-15;

double rounded(Resource resource, double wanted) {
  if (resource == Resource::cpu) {
    // Rounds up even if the product was rounded down.
    const double quotas = std::ceil(wanted * kQuotasPerCore);
    const double cores = quotas / kQuotasPerCore;
    return cores < wanted ? (quotas + 1) / kQuotasPerCore : cores;
  }
  const double page = static_cast<double>(kPageBytes);
  return std::ceil(wanted / page) * page;
}

constexpr double kGigabyte = 1e9;

// CPU time limited to 64 bits, for rows with impossible values.
constexpr double kMostUsec = 9e18;

double floor_of(Resource resource) {
  return resource == Resource::cpu ? ResourceScore::kCpuFloorCores
                                   : ResourceScore::kMemoryFloorBytes;
}

std::vector<std::optional<double>> oracle_of(std::span<const DemandPoint> points,
                                             Resource resource, double window_seconds) {
  std::vector<double> seconds;
  std::vector<std::optional<double>> values;
  for (const DemandPoint& point : points) {
    seconds.push_back(point.seconds);
    values.push_back(resource == Resource::cpu ? point.cpu_cores : point.memory_bytes);
  }
  return coming_maximum(seconds, values, window_seconds);
}

}  // namespace

bool DecisionGrid::due(double seconds) {
  if (step_ <= 0) return true;
  if (!next_) next_ = seconds;
  if (seconds < *next_ - early_) return false;
  // Jumps over a gap at once, then over the rounding error.
  *next_ += step_ * std::floor((seconds + early_ - *next_) / step_);
  while (*next_ - early_ <= seconds) *next_ += std::max(step_, seconds * kRounding);
  return true;
}

Counter ServedUsage::at(const Counter& asked_usec, double backlog_core_seconds) {
  if (!asked_usec) return asked_usec;
  const auto waiting = static_cast<std::uint64_t>(std::min(backlog_core_seconds * 1e6, kMostUsec));
  if (waiting == 0) return last_ = *asked_usec;  // a restarted counter may fall
  last_ = std::max(last_, *asked_usec - std::min(waiting, *asked_usec));
  return last_;
}

ResourceScore::ResourceScore(const ReplaySettings& settings, Resource resource, double ceiling,
                             std::span<const DemandPoint> points)
    : resource_(resource),
      measured_(ceiling > 0),
      ceiling_(measured_ ? ceiling : floor_of(resource)),
      window_seconds_(settings.window_seconds),
      points_(points),
      oracle_(oracle_of(points, resource, settings.window_seconds)),
      oracle_in_force_(ceiling_),
      loop_(settings.loop, resource, ceiling_),
      working_set_loop_(settings.loop, resource, ceiling_) {}

std::optional<double> ResourceScore::value(const DemandPoint& point) const {
  if (!measured_) return std::nullopt;
  return resource_ == Resource::cpu ? point.cpu_cores : point.memory_bytes;
}

std::optional<LoopInterval> ResourceScore::advance(std::size_t index) {
  const DemandPoint& point = points_[index];
  const std::optional<double> now = value(point);
  if (index == 0 || point.interval_seconds <= 0 || !now) {
    loop_.gap();
    working_set_loop_.gap();
    return std::nullopt;
  }
  const DemandPoint& before = points_[index - 1];
  const double decided = loop_.limit();
  const LoopInterval interval =
      loop_.run(point.interval_seconds, value(before).value_or(*now), *now);
  enter_window(point.seconds);
  if (resource_ == Resource::memory && point.working_set_bytes) {
    const double working_set = *point.working_set_bytes;
    window_.working_set_passed |=
        working_set_loop_
            .run(point.interval_seconds, before.working_set_bytes.value_or(working_set),
                 working_set)
            .passed;
  }
  score(index, *now, interval, decided);
  return interval;
}

void ResourceScore::score(std::size_t index, double now, const LoopInterval& interval,
                          double decided) {
  const DemandPoint& point = points_[index];
  const double seconds = point.interval_seconds;
  const bool over = now > decided;
  sums_.seconds += seconds;
  sums_.allocated += interval.allocated;
  sums_.original += ceiling_ * seconds;
  sums_.oracle += std::min(oracle_in_force_, ceiling_) * seconds;
  sums_.demanded += interval.demanded;
  sums_.slack_seconds += interval.slack_seconds;
  sums_.overrun += interval.overrun;
  sums_.samples += 1;
  sums_.samples_over += over ? 1 : 0;
  const bool censored =
      resource_ == Resource::cpu ? point.cpu_censored : point.memory_censored;
  sums_.samples_censored += censored ? 1 : 0;
  sums_.guard_raises += interval.raises;
  sums_.backlog_core_seconds += interval.waited;
  sums_.throttled_seconds += interval.throttled_seconds;
  sums_.longest_delay_seconds =
      std::max(sums_.longest_delay_seconds, interval.longest_delay_seconds);
  if (interval.passed && !window_.passed && resource_ == Resource::memory)
    failed_ += sums_.allocated;
  window_.over |= over;
  window_.passed |= interval.passed;
}

void ResourceScore::enter_window(double seconds) {
  // An interval belongs to the window in which it ends. The last moment of a window belongs to it.
  const double since = seconds - points_.front().seconds;
  const auto number = static_cast<std::int64_t>(std::ceil(since / window_seconds_)) - 1;
  if (number == window_.number) return;
  close(window_, sums_);
  window_ = {.number = number};
}

void ResourceScore::close(const Window& window, ReplaySums& sums) {
  if (window.number < 0) return;
  sums.windows += 1;
  sums.windows_clean += window.over ? 0 : 1;
  sums.would_oom += window.passed ? 1 : 0;
  sums.would_oom_working_set += window.working_set_passed ? 1 : 0;
}

void ResourceScore::decide(std::size_t index) {
  if (oracle_[index]) oracle_in_force_ = *oracle_[index];
}

void ResourceScore::set(double wanted) {
  const double limit =
      std::min(ceiling_, rounded(resource_, std::max(wanted, floor_of(resource_))));
  sums_.writes_up += limit > loop_.limit() ? 1 : 0;
  sums_.writes_down += limit < loop_.limit() ? 1 : 0;
  loop_.set(limit);
  working_set_loop_.set(limit);
}

ReplaySums ResourceScore::sums() const {
  ReplaySums sums = sums_;
  close(window_, sums);
  if (resource_ == Resource::cpu) sums.would_oom = 0;
  const double unit_hour = 3600 * (resource_ == Resource::cpu ? 1 : kGigabyte);
  sums.wastage = (sums.allocated - sums.demanded + sums.overrun + failed_) / unit_hour;
  return sums;
}

}  // namespace cgphase
