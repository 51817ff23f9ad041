#include "policy/phase_policy.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

// At most one second in a hundred of a phase wants more, and the headroom takes most of those.
constexpr double kCpuQuantile = 0.99;
constexpr double kHeadroom = 1.15;
// A peak of one second is forgotten when it weighs less than this: after six half-lives (twelve
// days), or after nineteen runs of the image that did not see it again.
constexpr double kForgottenWeight = 1.0 / 64;
// A throttled sample tells only that demand passed the limit: it counts as the next raise.
constexpr double kCensoredGrowth = 1.2;
// A CPU that comes too late costs throttled milliseconds, so one time in twenty is accepted.
constexpr double kCpuRisk = 0.05;
// Too little memory kills.
constexpr double kMemoryRisk = 0.01;
// Fewer samples of a phase say nothing about it.
constexpr double kFewSamples = 10;
// Weight of all earlier runs against the newest: half is forgotten after three.
constexpr double kRunDecay = 0.8;

double seconds_of(MonotonicTime time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

int slot_of(const Phase& phase) {
  const bool usable = phase.known() && phase.index >= 0 && phase.index < kUnknownSlot;
  return usable ? phase.index : kUnknownSlot;
}

// Largest need over the slots that are visited with more than `risk`; and whether another slot than
// `slot` asked for it.
struct Covered {
  double value = 0;
  bool ahead = false;
};

double cpu_need(const PhaseRecord& record) {
  return record.cpu_cores.quantile(kCpuQuantile).value_or(0);
}

double memory_need(const PhaseRecord& record) {
  return record.memory_bytes.peak(kForgottenWeight).value_or(0);
}

Covered cover(const PhaseRecords& records, int slot,
              const std::array<double, kPhaseSlots>& visited, double risk,
              double (*need)(const PhaseRecord&)) {
  Covered covered;
  for (const auto& [other, record] : records) {
    if (visited[static_cast<std::size_t>(other)] <= risk && other != slot) continue;
    const double value = need(record);
    if (value <= covered.value) continue;
    covered = {value, other != slot};
  }
  return covered;
}

// A phase that never ended yet: what follows is not known, so everything ever seen is kept ready.
std::array<double, kPhaseSlots> memory_visits(const PhaseRecords& records, int slot, double age,
                                             double horizon_seconds) {
  const auto record = records.find(slot);
  if (record != records.end() && record->second.departures() > 0)
    return visit_probabilities(records, slot, age, horizon_seconds);
  std::array<double, kPhaseSlots> all;
  all.fill(1);
  return all;
}

}  // namespace

PhasePolicy::PhasePolicy(const nlohmann::json& prior, const PolicySurroundings& surroundings)
    : surroundings_(surroundings) {
  auto records = records_from_json(prior);
  if (!records) return;
  known_ = std::move(*records);
  for (const auto& [slot, record] : known_) earlier_runs_[slot] = record.runs;
}

void PhasePolicy::enter(int slot, double time) {
  if (slot_ && whole_visit_) {
    own_[*slot_].dwell_seconds.add(time - entered_, 1, time);
    known_[*slot_].dwell_seconds.add(time - entered_, 1, time);
  }
  if (slot_) {
    own_[*slot_].next[static_cast<std::size_t>(slot)] += 1;
    known_[*slot_].next[static_cast<std::size_t>(slot)] += 1;
  }
  whole_visit_ = slot_.has_value();
  slot_ = slot;
  entered_ = time;
}

void PhasePolicy::record(PhaseRecord& record, const Observation& observation,
                         double time) const {
  const double weight = observation.interval_seconds > 0 ? observation.interval_seconds : 1;
  if (observation.cpu_cores) {
    double cores = *observation.cpu_cores;
    if (observation.cpu_censored)
      cores = kCensoredGrowth * std::max(cores, observation.cpu_limit_cores.value_or(0));
    record.cpu_cores.add(cores, weight, time);
  }
  if (observation.memory_need_bytes)
    record.memory_bytes.add(*observation.memory_need_bytes, weight, time);
}

void PhasePolicy::observe(const Observation& observation) {
  const double time = seconds_of(observation.time);
  const int slot = slot_of(observation.phase);
  if (observation.interval_seconds <= 0) {  // first, or after a gap: no visit spans it
    slot_.reset();
    whole_visit_ = false;
  }
  if (slot_ != slot) enter(slot, time);
  now_ = time;
  record(own_[slot], observation, time);
  record(known_[slot], observation, time);
}

Allocation PhasePolicy::allocate(const Limits& original, const HostCapacity& host) const {
  if (!slot_ || *slot_ == kUnknownSlot) return {};
  const auto found = known_.find(*slot_);
  if (found == known_.end()) return {};
  const auto own = own_.find(*slot_);
  const auto runs = earlier_runs_.find(*slot_);
  const double age = now_ - entered_;
  Allocation allocation;
  bool ahead = false;
  if (found->second.cpu_cores.count() >= kFewSamples) {
    const auto visited =
        visit_probabilities(known_, *slot_, age, surroundings_.cpu_horizon_seconds);
    const Covered cpu = cover(known_, *slot_, visited, kCpuRisk, cpu_need);
    allocation.cpu = capped_cores(cpu.value * kHeadroom, original, host);
    ahead = cpu.ahead;
  }
  if (found->second.memory_bytes.count() >= kFewSamples) {
    const auto visited = memory_visits(known_, *slot_, age, surroundings_.memory_horizon_seconds);
    const Covered memory = cover(known_, *slot_, visited, kMemoryRisk, memory_need);
    allocation.memory = capped_bytes(memory.value * kHeadroom, original, host);
    ahead = ahead || memory.ahead;
  }
  const bool entered = age <= surroundings_.cpu_horizon_seconds;
  allocation.reason = ahead || entered ? Reason::phase_changed : Reason::phase_statistics;
  if (own != own_.end()) {
    allocation.cpu_sample_count = own->second.cpu_cores.count();
    allocation.memory_sample_count = own->second.memory_bytes.count();
  }
  allocation.earlier_runs = runs == earlier_runs_.end() ? 0 : runs->second;
  return allocation;
}

nlohmann::json PhasePolicy::learned() const {
  PhaseRecords records;
  for (const auto& [slot, record] : own_) {
    const double seen = std::max(record.cpu_cores.count(), record.memory_bytes.count());
    if (seen < kFewSamples) continue;
    records.emplace(slot, record).first->second.runs = 1;
  }
  return records_to_json(records);
}

nlohmann::json merge_phase_records(const nlohmann::json& earlier, const nlohmann::json& run) {
  auto added = records_from_json(run);
  if (!added) return earlier;
  PhaseRecords merged;
  if (auto before = records_from_json(earlier)) merge_records(merged, *before, kRunDecay);
  merge_records(merged, *added, 1);
  return records_to_json(merged);
}

}  // namespace cgphase
