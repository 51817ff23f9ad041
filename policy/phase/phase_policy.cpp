#include "policy/phase/phase_policy.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

// Fewer samples of a phase, or of a run, are not used.
constexpr double kFewSamples = 10;
constexpr double kClearlyMore = 1.1;
// The limit rises in advance if it will be needed one time in twenty. CPU that comes too late costs
// throttled milliseconds, so it needs some samples first. Too little memory kills.
constexpr double kUsual = 0.05;
constexpr double kLeastGuard = 0.5;
// A less likely phase is not reported.
constexpr double kLeastProbability = 0.01;

Bytes whole_bytes(double bytes) {
  return Bytes{static_cast<std::uint64_t>(std::min(bytes, 9e18) + 0.999)};
}

int slot_of(const Phase& phase) {
  const bool usable = phase.known() && phase.index >= 0 && phase.index < kUnknownSlot;
  return usable ? phase.index : kUnknownSlot;
}

PolicyEnvironment checked(PolicyEnvironment environment) {
  const double risk = environment.risk;
  environment.risk = std::isfinite(risk) ? std::clamp(risk, kLeastRisk, kMostRisk) : kLeastRisk;
  const double factor = environment.cpu_risk_factor;
  environment.cpu_risk_factor = std::isfinite(factor) ? std::max(factor, 0.0) : 1;
  const double threshold = environment.guard_threshold;
  environment.guard_threshold =
      std::isfinite(threshold) ? std::clamp(threshold, kLeastGuard, 1.0) : 1.0;
  return environment;
}

LearnedPhases phases_of(const LearnedState& prior) {
  const auto* phases = std::get_if<LearnedPhases>(&prior);
  return phases != nullptr && check(*phases) ? *phases : LearnedPhases{};
}

double cpu_risk(const PolicyEnvironment& environment) {
  return std::clamp(environment.risk * environment.cpu_risk_factor, kLeastRisk, kMostRisk);
}

// The peak, or a lower value if `risk` allows for the samples above it.
EarlierPeak earlier_cpu(const LearnedPhases& earlier, double risk) {
  const RunPeak highest = highest_of(earlier.runs);
  EarlierPeak peak{static_cast<double>(earlier.runs.size()), highest.samples, highest.cpu_cores, 0};
  if (highest.samples * risk < 1) return peak;
  PhaseRecord all;
  for (const auto& [slot, record] : earlier.records) all.cpu_cores.merge(record.cpu_cores, 1);
  peak.peak = std::min(peak.peak, all.cpu_cores.quantile(1 - risk).value_or(peak.peak));
  return peak;
}

EarlierPeak earlier_memory(const RunPeaks& runs) {
  const RunPeak highest = highest_of(runs);
  return {static_cast<double>(runs.size()), highest.samples, highest.memory_bytes,
          highest.memory_rise_bytes_per_sec};
}

// Absent if it was not measured or is not a valid number.
std::optional<double> sane(std::optional<double> value) {
  return value && std::isfinite(*value) && *value >= 0 ? value : std::nullopt;
}

// A throttled sample only shows that demand was at least the limit.
std::optional<double> demanded_cores(const Observation& observation) {
  const auto used = sane(observation.cpu_cores);
  if (!used || !observation.cpu_censored) return used;
  return std::max(*used, sane(observation.cpu_limit_cores).value_or(0));
}

struct Needs {
  std::optional<double> cores, bytes;
};

// The highest need of all slots that are visited with a probability above the risk.
Needs needs_of(const std::map<int, Needs>& by_slot,
               const std::array<double, kPhaseSlots>& visited, double risk) {
  Needs most;
  for (const auto& [slot, needs] : by_slot) {
    if (visited[static_cast<std::size_t>(slot)] <= risk) continue;
    most.cores = std::max(most.cores, needs.cores);
    most.bytes = std::max(most.bytes, needs.bytes);
  }
  return most;
}

}  // namespace

PhasePolicy::PhasePolicy(const LearnedState& prior, const PolicyEnvironment& environment,
                         Foresight foresight)
    : PhasePolicy(phases_of(prior), checked(environment), foresight) {}

PhasePolicy::PhasePolicy(const LearnedPhases& earlier, const PolicyEnvironment& environment,
                         Foresight foresight)
    : surroundings_(environment), foresight_(foresight), with_earlier_(earlier.records),
      earlier_peaks_(earlier.peaks),
      peaks_(environment.cpu_horizon_seconds, environment.memory_horizon_seconds),
      cpu_(cpu_risk(environment), environment.guard_threshold, false,
           earlier_cpu(earlier, cpu_risk(environment)), environment.risk),
      memory_(environment.risk, environment.guard_threshold, true,
              earlier_memory(earlier.runs), environment.risk) {
  for (const auto& [slot, record] : with_earlier_) earlier_runs_[slot] = record.runs;
}

void PhasePolicy::enter(int slot, double time) {
  const auto left = [&](PhaseRecord& record) {
    if (whole_visit_) record.dwell_seconds.add(time - entered_, 1, time);
    record.next[static_cast<std::size_t>(slot)] += 1;
  };
  if (slot_) {
    left(own_[*slot_]);
    if (!with_earlier_.empty()) left(with_earlier_[*slot_]);
  }
  whole_visit_ = slot_.has_value();
  visit_cores_ = visit_bytes_ = 0;
  slot_ = slot;
  entered_ = time;
}

void PhasePolicy::record(PhaseRecord& record, const Observation& observation,
                         double time) const {
  const double weight = observation.interval_seconds > 0 ? observation.interval_seconds : 1;
  if (const auto cores = demanded_cores(observation)) record.cpu_cores.add(*cores, weight, time);
  if (observation.memory_need_bytes)
    record.memory_bytes.add(*observation.memory_need_bytes, weight, time);
}

PhasePolicy::Ahead PhasePolicy::ahead_of(const PhaseMoment& moment) const {
  Ahead ahead;
  if (const auto own = peaks_.peaks().find(moment)) {
    ahead.peak = *own;
    ahead.own_moments = own->moments;
  }
  if (const auto earlier = earlier_peaks_.find(moment); earlier != earlier_peaks_.end())
    add_peak(ahead.peak, earlier->second);
  return ahead;
}

PhasePolicy::Ahead PhasePolicy::ahead_now() const {
  PhaseMoment moment = peaks_.now();
  if (foresight_ == Foresight::proactive) {
    const Ahead ahead = ahead_of(moment);
    if (ahead.peak.moments >= kFewSamples) return ahead;
  }
  moment.previous = PhaseMoment::kAny;
  return ahead_of(moment);
}

MomentPeak PhasePolicy::cpu_ahead() const {
  const auto& [peak, own] = ahead_;
  const bool usual = peak.cpu_jumps >= kFewSamples && peak.cpu_jumps >= kUsual * peak.moments;
  return {own, peak.moments - own, peak.visits, peak.cpu_cores,
          usual ? peak.cpu_jump_cores / peak.cpu_jumps : 0, 0};
}

// What follows a phase that never ended, or an unknown phase, is not known. But the longer it
// lasts, the less likely is an end soon: after time t, within h, it is h / (t + h) by Laplace's
// rule of succession. Below the risk there is no reason to reserve what other phases needed.
double PhasePolicy::memory_kept() const {
  const auto here = known().find(*slot_);
  const bool ends =
      *slot_ != kUnknownSlot && here != known().end() && here->second.departed();
  const double horizon = surroundings_.memory_horizon_seconds;
  const double lasts = now_ - entered_;
  if (ends || horizon <= surroundings_.risk * (lasts + horizon)) return 0;
  return run_peak_bytes();
}

void PhasePolicy::resume(double memory_peak_bytes) {
  resumed_bytes_ = std::max(resumed_bytes_, memory_peak_bytes);
}

double PhasePolicy::run_peak_bytes() const {
  return std::max(memory_.own().peak(), resumed_bytes_);
}

MomentPeak PhasePolicy::memory_ahead() const {
  const auto& [peak, own] = ahead_;
  const bool usual = peak.memory_jumps > 0 && peak.memory_jumps >= kUsual * peak.moments;
  const bool few = own * surroundings_.risk < 1;
  return {own, peak.moments - own, peak.visits, peak.memory_bytes,
          usual && few ? peak.memory_bytes : 0, memory_kept()};
}

void PhasePolicy::observe(const Observation& observation) {
  const double time = seconds_of(observation.time);
  const int slot = slot_of(observation.phase);
  const bool follows = slot_ && observation.interval_seconds > 0;
  if (!follows) {  // first sample, or after a gap: no visit spans it
    slot_.reset();
    whole_visit_ = false;
  }
  if (slot_ != slot) enter(slot, time);
  now_ = time;
  record(own_[slot], observation, time);
  if (!with_earlier_.empty()) record(with_earlier_[slot], observation, time);
  const auto cores = demanded_cores(observation);
  const auto bytes = sane(observation.memory_need_bytes);
  visit_cores_ = std::max(visit_cores_, cores.value_or(0));
  visit_bytes_ = std::max(visit_bytes_, bytes.value_or(0));
  peaks_.add(slot, follows ? observation.interval_seconds : 0, {cores, bytes});
  ahead_ = ahead_now();
  if (cores)
    cpu_.add(*cores, observation.interval_seconds, cpu_ahead());
  if (bytes)
    memory_.add(*bytes, observation.interval_seconds, memory_ahead());
}

// Whether the usual next demand is clearly above that of this visit so far.
bool PhasePolicy::room_made() const {
  return ahead_.peak.cpu_cores > kClearlyMore * visit_cores_ ||
         ahead_.peak.memory_bytes > kClearlyMore * visit_bytes_;
}

Recommendation PhasePolicy::allocate(const Limits& original, const HostCapacity& host) const {
  Recommendation allocation;
  if (!slot_) return allocation;
  if (cpu_.level()) allocation.cpu = capped_cores(*cpu_.level(), original, host);
  if (memory_.level()) allocation.memory = capped_bytes(*memory_.level(), original, host);
  const bool entered = now_ - entered_ <= surroundings_.cpu_horizon_seconds;
  allocation.reason = entered || room_made() ? Reason::phase_changed : Reason::phase_statistics;
  if (const auto own = own_.find(*slot_); own != own_.end()) {
    allocation.cpu_sample_count = own->second.cpu_cores.count();
    allocation.memory_sample_count = own->second.memory_bytes.count();
  }
  const auto runs = earlier_runs_.find(*slot_);
  allocation.earlier_runs = runs == earlier_runs_.end() ? 0 : runs->second;
  return allocation;
}

LearnedState PhasePolicy::learned() const {
  LearnedPhases learned;
  for (const auto& [slot, record] : own_) {
    const double seen = std::max(record.cpu_cores.count(), record.memory_bytes.count());
    if (seen < kFewSamples) continue;
    learned.records.emplace(slot, without_times(record)).first->second.runs = 1;
  }
  learned.peaks = peaks_.of_whole_run();
  const double samples =
      static_cast<double>(std::max(cpu_.own().count(), memory_.own().count()));
  if (samples >= kFewSamples)
    learned.runs.push_back({samples, cpu_.own().peak(), run_peak_bytes(),
                            memory_.own().rise_per_second()});
  return learned;
}

std::optional<Forecast> PhasePolicy::forecast(std::chrono::seconds horizon) const {
  if (!slot_ || (!cpu_.coming() && !memory_.coming())) return std::nullopt;
  const double seconds = std::chrono::duration<double>(horizon).count();
  const double age = now_ - entered_, risk = surroundings_.risk;
  std::map<int, Needs> by_slot;
  for (const auto& [slot, record] : known())
    by_slot[slot] = {record.cpu_cores.quantile(1 - risk), record.memory_bytes.quantile(1 - risk)};
  auto visited = visit_probabilities(known(), *slot_, age, seconds);
  visited[static_cast<std::size_t>(*slot_)] = 0;  // the bounds of this visit are more precise
  const Needs later = needs_of(by_slot, visited, risk);
  Forecast forecast{.horizon = horizon, .risk = risk};
  if (const auto cores = cpu_.coming())
    forecast.cpu_peak = Cores{std::max(*cores, later.cores.value_or(0))};
  if (const auto bytes = memory_.coming())
    forecast.memory_peak = whole_bytes(std::max(*bytes, later.bytes.value_or(0)));
  const auto here = known().find(*slot_);
  if (here == known().end()) return forecast;
  const auto rest = usual_rest(here->second, age);
  const std::chrono::seconds in(static_cast<std::int64_t>(std::ceil(rest.value_or(0))));
  // Without the records of other phases the chain ends after one change.
  const auto follows = visit_probabilities({*here}, *slot_, age, seconds);
  for (const auto& [slot, needs] : by_slot) {
    const double probability = follows[static_cast<std::size_t>(slot)];
    if (slot == *slot_ || probability < kLeastProbability) continue;
    const Needs then = needs_of(by_slot, visit_probabilities(known(), slot, 0, seconds), risk);
    Forecast::Next& next = forecast.next.emplace_back(slot == kUnknownSlot ? -1 : slot,
                                                      probability, in);
    if (then.cores) next.cpu_peak = Cores{*then.cores};
    if (then.bytes) next.memory_peak = whole_bytes(*then.bytes);
  }
  std::stable_sort(forecast.next.begin(), forecast.next.end(),
                   [](const auto& a, const auto& b) { return a.probability > b.probability; });
  return forecast;
}

}  // namespace cgphase
