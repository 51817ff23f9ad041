#include "policy/safety/trial.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <fmt/format.h>
#include <limits>
#include <utility>

namespace cgphase {
namespace {

constexpr int kLongestTrial = 3;  // times its length, if too few ticks were measured
// Less CPU time is a sign of harm only if the container was busy.
constexpr double kBusyCores = 0.05;
// A GPU that waits for its host loses more than this share of its time.
constexpr double kGpuPoints = 0.05;
constexpr std::size_t kMiddle = 2, kLowest = 20;  // one value in this many is below

std::optional<double> value_of(const Measures& tick, Measure measure) {
  return tick[static_cast<std::size_t>(measure)];
}
std::optional<double> value_of(const std::array<float, kMeasureCount>& tick, Measure measure) {
  const double value = static_cast<double>(tick[static_cast<std::size_t>(measure)]);
  return std::isnan(value) ? std::nullopt : std::optional(value);
}

template <class Ticks>
std::optional<double> value_above_one_in(std::size_t part, const Ticks& ticks, Measure measure,
                                         std::size_t fewest) {
  std::vector<double> values;
  values.reserve(ticks.size());
  for (const auto& tick : ticks)
    if (const auto value = value_of(tick, measure)) values.push_back(*value);
  if (values.size() < fewest) return std::nullopt;
  const auto place = values.begin() + static_cast<std::ptrdiff_t>(values.size() / part);
  std::nth_element(values.begin(), place, values.end());
  return *place;
}

double allowance(Measure measure, const SafetyConfig& config) {
  switch (measure) {
    case Measure::cpu_stall: return config.quiet_cpu_some_avg10;
    case Measure::memory_stall: return config.trial_stall_allowance;
    case Measure::io_stall: return config.trial_stall_allowance;
    case Measure::refaults: return config.trial_faults_allowance;
    case Measure::major_faults: return config.trial_faults_allowance;
    case Measure::throttled: return config.throttled_ratio;
    case Measure::cpu_cores: return 0;
    case Measure::gpu_utilisation: return 0;
  }
  return 0;
}

std::vector<Measure> measures_of(Resource resource) {
  if (resource == Resource::cpu) return {Measure::cpu_stall, Measure::throttled};
  return {Measure::memory_stall, Measure::io_stall, Measure::refaults, Measure::major_faults};
}

}  // namespace

void Baselines::add(const Phase& phase, const Measures& measures) {
  if (!phase.known()) return;
  if (!ticks_.contains(phase.index) && ticks_.size() >= kPhases) return;
  std::array<float, kMeasureCount> tick;
  std::ranges::transform(measures, tick.begin(), [](const std::optional<double>& value) {
    return value ? static_cast<float>(*value) : std::numeric_limits<float>::quiet_NaN();
  });
  Ticks& ticks = ticks_[phase.index];
  if (ticks.ring.size() == ticks.ring.capacity() && ticks.ring.size() < kTicks)
    ticks.ring.reserve(std::clamp(2 * ticks.ring.size(), std::size_t{4}, kTicks));
  if (ticks.ring.size() < kTicks) ticks.ring.push_back(tick);
  else ticks.ring[ticks.next] = tick;
  ticks.next = (ticks.next + 1) % kTicks;
}

std::optional<double> Baselines::median(const Phase& phase, Measure measure) const {
  const auto found = ticks_.find(phase.index);
  return found == ticks_.end() ? std::nullopt
                               : value_above_one_in(kMiddle, found->second.ring, measure, kFewest);
}

std::optional<double> Baselines::low(const Phase& phase, Measure measure) const {
  const auto found = ticks_.find(phase.index);
  return found == ticks_.end()
             ? std::nullopt
             : value_above_one_in(kLowest, found->second.ring, measure, kFewestOfSpread);
}

Trial::Trial(const Decision& decision, MonotonicTime begin, std::chrono::nanoseconds length)
    : decision_(decision), begin_(begin), length_(length) {}

void Trial::add(const Phase& phase, const Measures& measures) {
  const bool same = phase_known_ && phase.known() && phase.index == decision_.phase.index;
  std::vector<Measures>& ticks = same ? ticks_ : elsewhere_;
  if (ticks.size() < kMostTicks) ticks.push_back(measures);
}

void Trial::forget_phase() {
  phase_known_ = false;
  for (const Measures& tick : std::exchange(ticks_, {}))
    if (elsewhere_.size() < kMostTicks) elsewhere_.push_back(tick);
}

bool Trial::over(MonotonicTime now) const {
  const auto age = now - begin_;
  return age >= length_ && (measured() || age >= kLongestTrial * length_);
}

std::optional<double> Trial::median(Measure measure) const {
  return value_above_one_in(kMiddle, stayed() ? ticks_ : elsewhere_, measure, 1);
}

Trial::Judgement Trial::judge(const Baselines& baselines, const SafetyConfig& config) const {
  Judgement judgement;
  bool held_back = false;
  for (const Measure measure : measures_of(decision_.resource)) {
    const auto now = median(measure);
    if (!now) continue;
    held_back = held_back || *now > 0;
    const double before =
        stayed() ? baselines.median(decision_.phase, measure).value_or(0) : 0;
    const double most = std::max(before * (1 + config.trial_tolerance_ratio),
                                 allowance(measure, config));
    if (*now <= most) continue;
    judgement.worse = true;
    judgement.detail = fmt::format("{} {:.4g}, before {:.4g}", to_string(measure), *now, before);
    return judgement;
  }
  const auto cores = median(Measure::cpu_cores);
  const auto before = baselines.median(decision_.phase, Measure::cpu_cores);
  // If nothing delayed the tasks, compares with the quiet times of the phase instead of the median.
  const auto usual = held_back ? before : baselines.low(decision_.phase, Measure::cpu_cores);
  if (stayed() && usual && cores && before && *before > kBusyCores &&
      *cores < *usual * (1 - config.trial_tolerance_ratio)) {
    judgement.worse = true;
    judgement.detail = fmt::format("cpu progress {:.4g} cores, before {:.4g}{}", *cores, *usual,
                                   held_back ? "" : " in all but one tick in twenty");
    return judgement;
  }
  const auto gpu = median(Measure::gpu_utilisation);
  const auto gpu_before = baselines.median(decision_.phase, Measure::gpu_utilisation);
  if (stayed() && gpu && gpu_before && *gpu < *gpu_before - kGpuPoints) {
    judgement.worse = true;
    judgement.detail = fmt::format("gpu utilisation {:.4g}, before {:.4g}", *gpu, *gpu_before);
    return judgement;
  }
  judgement.detail = fmt::format("{} ticks, nothing worse than before",
                                 stayed() ? ticks_.size() : elsewhere_.size());
  return judgement;
}

}  // namespace cgphase
