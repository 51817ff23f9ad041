#include "core/core.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"
#include "cgroupfs/knob_file.h"
#include "core/grants.h"
#include "core/reclaim.h"
#include "core/sensing.h"
#include "core/shortage.h"
#include "policy/ceiling.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {

// Interval at which the peaks of managed runs are saved.
constexpr std::chrono::seconds kRunSaveInterval{60};

double seconds(std::chrono::nanoseconds duration) {
  return std::chrono::duration<double>(duration).count();
}

// Replaces the knobs of `limits` that `found` has.
void merge(const Limits& found, Limits& limits) {
  const auto replace = [](const auto& by, auto& value) { value = by ? by : value; };
  replace(found.cpu_max, limits.cpu_max);
  replace(found.cpu_max_burst, limits.cpu_max_burst);
  replace(found.cpu_weight, limits.cpu_weight);
  replace(found.memory_max, limits.memory_max);
  replace(found.memory_high, limits.memory_high);
  replace(found.frozen, limits.frozen);
}

// Whether a value is put back that was above the original: a weight, or what the budget granted.
bool lowers(const Limits& before, const Limits& after) {
  return std::ranges::any_of(
      std::array{Knob::cpu_weight, Knob::cpu_max, Knob::memory_max},
      [&](Knob knob) { return compare_knob(knob, after, before) < 0; });
}

void keep_highest(std::optional<double>& highest, std::optional<double> value) {
  if (value) highest = std::max(*value, highest.value_or(*value));
}

// Sorts "/a", "/a/b", "/a-b": a cgroup comes directly before its descendants.
bool comes_before(const CgroupPath& one, const CgroupPath& other) {
  const auto rank = [](char c) { return c == '/' ? 0 : int{static_cast<unsigned char>(c)}; };
  return std::ranges::lexicographical_compare(one, other, {}, rank, rank);
}

bool lies_in(const CgroupPath& path, const CgroupPath& other) {
  return !other.empty() && path.size() > other.size() && path.starts_with(other) &&
         path[other.size()] == '/';
}

}  // namespace

std::string image_of(const ContainerInfo& info) {
  const std::string& image = info.image.empty() ? info.name : info.image;
  return info.owner.starts_with("uid ") ? info.owner + " " + image : image;
}

struct Core::Container {
  ContainerView view;
  ExternalFacts facts;
  std::optional<FeatureExtractor> extractor;
  std::optional<PhaseTracker> tracker;
  std::unique_ptr<Policy> policy;
  SafetyRules safety;
  std::array<std::optional<MonotonicTime>, 2> quarantined_until;  // as last stored
  bool sent_quarantines = false;
  bool seen = false;  // view.sample is valid: the one before the current
  // Of the current sample: as in Observation, and whether it was throttled.
  bool gap = false, throttled = false;
  double interval_seconds = 0;
  MonotonicTime previous_time;
  // The lowest CPU limit since the previous sample. A throttled container ran against it, even if
  // it was written after that sample and raised again before the next.
  std::optional<double> lowest_cpu_cores;
  std::map<int, double> pinned_samples;  // by phase index, since the pin; -1: no phase
  double resumed_bytes = 0;  // peak of the run before its first sample
  const Container* around = nullptr;  // the innermost container around it
  AncestorLimits ancestor_limits;                    // by the ancestor cgroups

  // Whether an enclosing container had such a limit before cgphase changed anything.
  bool limited_around(auto limit) const {
    for (const Container* one = around; one != nullptr; one = one->around)
      if (std::invoke(limit, one->view.original)) return true;
    return false;
  }

  // Uses this engine for phases from the next sample on.
  void follow(const std::shared_ptr<const PhaseEngine>& engine) {
    extractor.reset();
    tracker.reset();
    if (!engine) return;
    extractor.emplace(engine->model().schema, engine->model().step_seconds);
    tracker.emplace(engine);
  }

  HostCapacity room(const NodeSample& tick) const {
    HostCapacity host = tick.host;
    host.ancestor_limits = ancestor_limits;
    return host;
  }

  // Whether it is at its quota or its memory.max, or grows to that soon, so that it could use more.
  Claimant claimant(const SafetyConfig& config) {
    const auto near = [&](double use, double limit) { return use > config.at_risk_ratio * limit; };
    const auto quota = view.in_force.cpu_cores();
    const auto& hard = view.in_force.memory_max;
    const auto bytes = [](const std::optional<Bytes>& one) {
      return static_cast<double>(one.value_or(Bytes{}).value);
    };
    const double need = bytes(view.memory_need), before = bytes(memory_need(view.sample));
    const double soon = static_cast<double>(config.at_risk_growth.count());
    const double growth =
        interval_seconds > 0 ? std::max(need - before, 0.0) / interval_seconds * soon : 0;
    const auto full = [&](double limit) { return near(need, limit) || need + growth >= limit; };
    return {&view, throttled || (quota && near(view.cpu_cores.value_or(0), quota->value)),
            hard && hard->bytes && full(bytes(hard->bytes))};
  }

  void in_force(const Limits& limits) {
    merge(limits, view.in_force);
    const auto cores = limits.cpu_cores();
    if (cores) lowest_cpu_cores = std::min(cores->value, lowest_cpu_cores.value_or(cores->value));
  }

  Container(const std::shared_ptr<const SafetyConfig>& config, CgroupId id) : safety(config, id) {}
};

Core::Core(const CoreConfig& config, std::shared_ptr<const PhaseEngine> engine)
    : config_(config), safety_(std::make_shared<const SafetyConfig>(config.safety)),
      engine_(std::move(engine)), shortage_rule_(std::make_unique<ShortageRule>()),
      next_decision_id_(config.first_decision_id) {}
Core::Core(Core&&) noexcept = default;
Core& Core::operator=(Core&&) noexcept = default;
Core::~Core() = default;

Result<Core> Core::create(const CoreConfig& config,
                                  std::shared_ptr<const PhaseEngine> engine) {
  const Result<PolicySpec> spec = parse_policy_spec(config.policy);
  if (!spec) return std::unexpected(spec.error());
  Core core(config, std::move(engine));
  core.policy_ = *spec;
  const auto trial = make_policy(*spec, {}, core.environment());
  if (!trial) return std::unexpected(trial.error());
  return core;
}

PolicyEnvironment Core::environment() const {
  const double step_seconds = engine_ ? engine_->model().step_seconds : seconds(config_.interval);
  PolicyEnvironment around;
  around.cpu_horizon_seconds = kReactionSteps * step_seconds;
  around.memory_horizon_seconds = seconds(kMemoryHorizon);
  around.risk = config_.risk;
  around.guard_threshold = config_.safety.at_risk_ratio;
  around.cpu_risk_factor = config_.cpu_risk_factor;
  return around;
}

std::unique_ptr<Core::Container> Core::make_container(const ContainerInfo& info) const {
  auto container = std::make_unique<Container>(safety_, info.id);
  container->view.info = info;
  const auto initial = initial_states_.find(info.id);
  LearnedState prior;
  if (initial != initial_states_.end()) {
    container->view.mode = initial->second.mode;
    container->view.terms = initial->second.terms;
    container->facts = initial->second.facts;
    container->view.original = initial->second.original;
    prior = initial->second.prior;
  }
  set_policy(*container, prior);
  container->follow(engine_);
  return container;
}

void Core::set_policy(Container& container, const LearnedState& prior) const {
  container.policy = make_policy(policy_, prior, environment()).value();
  const double peak =
      std::max(container.resumed_bytes, container.view.highest_memory_bytes.value_or(0));
  if (peak > 0) container.policy->resume(peak);
}

// Its peak so far is what an earlier daemon saved, else memory.peak, which includes cache.
void Core::begin_run(Container& container, const Sample& first, MonotonicTime now) const {
  const Limits leased = std::exchange(container.view.original, first.limits);
  merge(leased, container.view.original);
  container.view.phase_since = now;
  const ContainerInfo& info = container.view.info;
  const auto saved = safety_memory_.runs.peak_bytes(info.id, info.name);
  container.resumed_bytes =
      saved.value_or(static_cast<double>(first.memory_peak.value_or(Bytes{}).value));
  if (container.resumed_bytes > 0) container.policy->resume(container.resumed_bytes);
}

// Saves the peaks of managed runs for the next daemon.
void Core::save_runs(MonotonicTime now) {
  if (now < next_run_save_) return;
  next_run_save_ = now + kRunSaveInterval;
  safety_memory_.runs.retain([this](CgroupId id) { return containers_.contains(id); });
  for (const auto& [id, container] : containers_) {
    const ContainerView& view = container->view;
    if (view.mode == Mode::observe || !view.highest_memory_bytes) continue;
    const auto saved = safety_memory_.runs.peak_bytes(id, view.info.name);
    safety_memory_.runs.keep(id, view.info.name,
                            std::max(*view.highest_memory_bytes, saved.value_or(0)));
  }
  if (safety_memory_.runs.take_news()) safety_news_ = true;
}

void Core::set_engine(std::shared_ptr<const PhaseEngine> engine) {
  engine_ = std::move(engine);
  for (auto& [id, container] : containers_) {
    ContainerView& view = container->view;
    view.phase = {};
    view.phase_since = container->previous_time;
    view.seconds_in_phase.clear();
    container->follow(engine_);
    set_policy(*container, {});
    container->pinned_samples.clear();
    container->safety.forget_phases();
  }
}

void Core::admit(CgroupId id, InitialState initial) {
  const auto found = containers_.find(id);
  if (found == containers_.end()) {
    initial_states_[id] = std::move(initial);
    return;
  }
  found->second->view.mode = initial.mode;
  found->second->view.terms = initial.terms;
  if (!is_empty(initial.prior))
    set_policy(*found->second, initial.prior);
}

void Core::set_mode(CgroupId id, Mode mode) {
  if (const auto found = containers_.find(id); found != containers_.end())
    found->second->view.mode = mode;
}

void Core::set_terms(CgroupId id, const Terms& terms) {
  if (const auto found = containers_.find(id); found != containers_.end())
    found->second->view.terms = terms;
}

void Core::set_pin(CgroupId id, const Pin& pin) {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return;
  found->second->view.pin = pin;
  if (!pin.any()) found->second->pinned_samples.clear();
}

std::vector<Claimant> Core::claimants() const {
  std::vector<Claimant> claimants;
  claimants.reserve(containers_.size());
  for (const auto& [id, container] : containers_)
    claimants.push_back(container->claimant(config_.safety));
  return claimants;
}

void Core::find_nested() {
  std::vector<Container*> by_path;
  by_path.reserve(containers_.size());
  for (const auto& [id, container] : containers_) by_path.push_back(container.get());
  std::ranges::stable_sort(by_path, comes_before, [](const Container* container) -> auto& {
    return container->view.info.path;
  });
  std::vector<Container*> open;  // each contains the next
  for (Container* container : by_path) {
    while (!open.empty() && !lies_in(container->view.info.path, open.back()->view.info.path))
      open.pop_back();
    container->around = open.empty() ? nullptr : open.back();
    container->view.inside = container->around != nullptr;
    container->view.around_others = false;
    if (!open.empty()) open.back()->view.around_others = true;
    open.push_back(container);
  }
}

TickOutput Core::step(const TickInput& input) {
  TickOutput output;
  for (const FinishedWrite& write : input.writes) finish(write, input.now, output);
  for (const FastRaise& raise : input.fast_raises)
    raised(raise.container, raise.resource, raise.reason, raise.before, raise.after, raise.time,
           AppliedChange::Origin::fast_path, output);
  for (const CgroupId& id : input.reclaimed)
    if (const auto found = containers_.find(id); found != containers_.end())
      found->second->view.sleep.reclaimed();
  for (const RestoredLimits& restored : input.restored) put_back(restored, input.now, output);
  if (input.other_manager) other_manager_ = *input.other_manager;
  for (const auto& [id, facts] : input.facts)
    if (const auto found = containers_.find(id); found != containers_.end())
      found->second->facts = facts;
  if (input.sample != nullptr) step_sample(input, output);
  drain_outcomes(input, output);
  return output;
}

void Core::step_sample(const TickInput& input, TickOutput& output) {
  const NodeSample& tick = *input.sample;
  observe_writes(input);
  if (safety_memory_.follow_clock(tick.wall_time)) safety_news_ = true;
  for (const CgroupId& id : tick.vanished) {
    const auto found = containers_.find(id);
    if (found == containers_.end()) continue;
    found->second->safety.vanished(tick.time);
    for (Outcome& outcome : found->second->safety.take_outcomes())
      outcomes_.push_back(std::move(outcome));
    remember(*found->second, tick);
    totals_.saved_core_seconds += found->second->view.saved_core_seconds;
    totals_.saved_byte_seconds += found->second->view.saved_byte_seconds;
    foreign_writes_.forget(id);
    containers_.erase(found);
    std::erase_if(pending_, [&](const auto& entry) { return entry.second.container == id; });
  }
  for (const ContainerInfo& info : tick.appeared) {
    containers_[info.id] = make_container(info);
    initial_states_.erase(info.id);
  }
  if (!tick.vanished.empty() || !tick.appeared.empty()) find_nested();
  for (const auto& [id, ancestor_limits] : tick.ancestor_limits)
    if (const auto found = containers_.find(id); found != containers_.end())
      found->second->ancestor_limits = ancestor_limits;
  // Both ascend, and most containers have a sample, so the search is rarely needed.
  auto at = containers_.begin();
  for (const Sample& sample : tick.containers) {
    if (at == containers_.end() || at->first != sample.id) at = containers_.find(sample.id);
    CHECK_INVARIANT(at != containers_.end());  // the sampler reports a container before its first
                                               // sample
    sense(*at->second, sample, tick);
    ++at;
  }
  const std::vector<Claimant> claimants = this->claimants();
  grant_shares(config_.budget, tick.host, input.outside, claimants);
  if (const auto cold =
          shortage_rule_->step(config_.budget, tick.host, input.outside, claimants))
    output.reclaims.push_back(*cold);
  for (const Sample& sample : tick.containers)
    decide(*containers_.find(sample.id)->second, sample, tick, output.decisions);
  save_runs(tick.time);
  for (const Decision& decision : output.decisions) {
    if (decision.verdict == Verdict::allowed) pending_[decision.decision_id] = decision;
    std::string behind = writer_of(decision);
    if (decision.reason == Reason::budget)
      behind = givers_of(decision.resource, claimants, decision.container);
    if (!behind.empty()) output.writers[decision.decision_id] = std::move(behind);
  }
  reclaim_memory(tick, output);
  totals_.ticks += 1;
}

void Core::observe_writes(const TickInput& input) {
  if (input.limit_writes.empty() && !foreign_writes_.waits()) return;
  std::vector<ForeignWrites::Reading> readings;
  for (const Sample& sample : input.sample->containers)
    if (const ContainerView* view = find(sample.id))
      readings.push_back({sample.id, &view->sample.limits, &sample.limits});
  foreign_writes_.observe(input.limit_writes, readings, input.sample->time);
}

// Who wrote the limit that blocks this decision. A write from before the block can have begun does
// not count.
std::string Core::writer_of(const Decision& decision) const {
  constexpr std::array kBlockedByWrite = {Verdict::standing_down, Verdict::silently_reverted,
                                          Verdict::rival};
  if (std::ranges::find(kBlockedByWrite, decision.verdict) == kBlockedByWrite.end()) return {};
  const auto longest = std::max<std::chrono::nanoseconds>(config_.safety.stand_down,
                                                          config_.safety.rival_pause);
  return foreign_writes_.writer(decision.container, decision.old_limits, decision.time - longest);
}

void Core::reclaim_memory(const NodeSample& tick, TickOutput& output) {
  if (tick.time < next_reclaim_) return;
  next_reclaim_ = tick.time + kReclaimInterval;
  for (const auto& [id, container] : containers_)
    if (const auto reclaim = reclaim_now(container->view, *container->policy, tick,
                                         shortage_rule_->is_short()))
      output.reclaims.push_back(*reclaim);
}

void Core::remember(Container& container, const NodeSample& tick) {
  if (const auto oom = container.safety.take_oom()) {
    safety_memory_.ooms.remember(image_of(container.view.info), *oom, tick.wall_time);
    safety_news_ = true;
  }
  for (const Resource resource : {Resource::cpu, Resource::memory}) {
    const auto until = container.safety.quarantined_until(resource);
    auto& kept = container.quarantined_until[static_cast<std::size_t>(resource)];
    if (until == kept) continue;
    kept = until;
    if (!until || *until <= tick.time) continue;
    safety_memory_.quarantines.keep(container.view.info.name, resource, *until - tick.time,
                                   tick.wall_time);
    safety_news_ = true;
  }
}

void Core::sense(Container& container, const Sample& sample, const NodeSample& tick) {
  ContainerView& view = container.view;
  const bool first = !container.seen;
  const MonotonicTime read = sample.read_time.value_or(tick.time);
  const auto elapsed = read - container.previous_time;
  // What a frozen container does not use says nothing about its phase.
  const bool frozen = sample.frozen == true || view.sample.frozen == true;
  const bool gap = !first && (elapsed <= elapsed.zero() || frozen ||
                              elapsed > kGapIntervals * config_.interval);
  const double interval_seconds = first || gap ? 0 : seconds(elapsed);
  container.gap = gap;
  container.interval_seconds = interval_seconds;
  if (first) begin_run(container, sample, tick.time);
  update_phase(view, container.extractor, container.tracker, sample, tick, gap);
  view.memory_need = memory_need(sample);
  const Observation observation =
      observe(sample, view.sample, container.lowest_cpu_cores, interval_seconds, tick,
              view.phase);
  view.cpu_cores = observation.cpu_cores;
  keep_highest(view.highest_cpu_cores, observation.cpu_cores);
  keep_highest(view.highest_memory_bytes, observation.memory_need_bytes);
  container.policy->observe(observation);
  view.cpu_limit_around = container.limited_around(&Limits::cpu_cores);
  view.memory_limit_around = container.limited_around(&Limits::memory_bytes);
  const HostCapacity room = container.room(tick);
  container.throttled = observation.cpu_censored;
  view.ancestor_limits = within_host(room);
  account(view, sample, interval_seconds);
  view.sleep.add(view.sample, sample, observation.cpu_cores, view.phase.known(), tick.time);
  view.recommendation = container.policy->allocate(view.original, room);
  if (view.pin.any()) {
    const bool measured = observation.cpu_cores && observation.memory_need_bytes;
    double& samples = container.pinned_samples[view.phase.known() ? view.phase.index : -1];
    if (measured) samples += 1;
    view.recommendation =
        view.recommendation.pinned(view.pin, samples, view.highest_memory_bytes.value_or(0));
  }
}

void Core::decide(Container& container, const Sample& sample, const NodeSample& tick,
                  std::vector<Decision>& decisions) {
  ContainerView& view = container.view;
  const bool first = !std::exchange(container.seen, true);
  SafetyInput input{
      .time = tick.time, .interval_seconds = container.interval_seconds, .sample = &sample,
      .previous = first ? nullptr : &view.sample, .gap = container.gap, .phase = view.phase,
      .owner = view.info.owner, .mode = view.mode, .terms = view.terms, .grant = view.grant,
      .shortage = view.shortage,
      .cpu_lever = config_.cpu_lever,
      .hands_off = other_manager_ || !view.info.hands_off.empty(),
      .manage_unlimited = config_.manage_unlimited,
      .larger_margin = container.facts.larger_margin, .gpu = container.facts.gpu,
      .gpu_ruled_out = container.facts.gpu_ruled_out,
      .original = view.original, .host = container.room(tick),
      .model_step_seconds = engine_ ? engine_->model().step_seconds : seconds(config_.interval),
      .sampling_seconds = seconds(config_.interval),
      // In observe mode nothing uses the floor.
      .oom_floor_bytes = view.mode == Mode::observe
          ? 0 : safety_memory_.ooms.floor_bytes(image_of(view.info), tick.wall_time),
      .reload = sample.limits_reset};
  if (!std::exchange(container.sent_quarantines, true))
    for (const Resource resource : {Resource::cpu, Resource::memory})
      input.quarantine_left[static_cast<std::size_t>(resource)] =
          safety_memory_.quarantines.left(view.info.name, resource, tick.wall_time);
  for (Decision& decision :
       container.safety.step(input, view.recommendation, budget_, next_decision_id_))
    decisions.push_back(std::move(decision));
  remember(container, tick);
  view.original = container.safety.original();
  view.cpu_blocked_by = container.safety.blocked_by(Resource::cpu);
  view.memory_blocked_by = container.safety.blocked_by(Resource::memory);
  view.wants_gpu_look = container.safety.wants_gpu_look();
  view.may_freeze = container.safety.may_freeze();
  view.sample = sample;
  container.previous_time = sample.read_time.value_or(tick.time);
  container.lowest_cpu_cores.reset();
  if (!container.safety.predates_write(tick.time)) container.in_force(sample.limits);
}

void Core::finish(const FinishedWrite& write, MonotonicTime now, TickOutput& output) {
  const auto found = pending_.find(write.decision_id);
  const bool known = found != pending_.end();  // else its container was removed meanwhile
  const bool raise = known && found->second.direction == Direction::raise;
  if (write.end == WriteEnd::failed) totals_.writes_failed += 1;
  if (write.end == WriteEnd::done) ++(raise ? totals_.writes_up : totals_.writes_down);
  if (!known) return;
  const Decision decision = std::move(found->second);
  pending_.erase(found);
  const auto container = containers_.find(decision.container);
  if (container == containers_.end()) return;
  if (write.end == WriteEnd::done)
    output.applied.push_back({AppliedChange::Origin::decision, decision, write.in_force});
  Limits found_after = write.in_force;
  // Not judged yet.
  if (decision.resource != Resource::cpu_weight) found_after.cpu_weight.reset();
  if (decision.resource != Resource::freeze) found_after.frozen.reset();
  container->second->in_force(found_after);
  container->second->safety.written(decision, write.end, write.in_force, now);
}

void Core::take_earlier(const SafetyMemory& earlier, WallTime now) {
  safety_memory_.add(earlier, now);
  safety_news_ = true;
  for (auto& [id, container] : containers_) container->sent_quarantines = false;
}

void Core::raised(CgroupId id, Resource resource, Reason reason, const Limits& before,
                      const Limits& after, MonotonicTime time, AppliedChange::Origin origin,
                      TickOutput& output) {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return;
  const ContainerView& view = found->second->view;
  Decision decision{.decision_id = next_decision_id_++, .time = time, .container = id,
                    .resource = resource, .direction = Direction::raise,
                    .old_limits = view.in_force, .new_limits = view.in_force, .reason = reason,
                    .phase = view.phase, .evidence = evidence_of(view.sample)};
  merge(after, decision.new_limits);
  if (lowers(view.in_force, decision.new_limits)) decision.direction = Direction::lower;
  decision.usage = resource == Resource::memory
                       ? static_cast<double>(view.memory_need.value_or(Bytes{}).value)
                       : view.cpu_cores.value_or(0);
  found->second->in_force(decision.new_limits);
  found->second->safety.written(decision, WriteEnd::done, decision.new_limits, time);
  merge(before, decision.old_limits);
  totals_.writes_up += 1;
  output.applied.push_back({origin, decision, decision.new_limits});
}

// One resource after the other, so that each decision says what was in force before.
void Core::put_back(const RestoredLimits& restored, MonotonicTime now, TickOutput& output) {
  const ContainerView* view = find(restored.container);
  if (view == nullptr) return;
  const auto left = [&](Knob knob) {
    return std::ranges::find(restored.left, knob) != restored.left.end();
  };
  for (const auto& [resource, knob] : {std::pair(Resource::cpu, Knob::cpu_max),
                                       std::pair(Resource::memory, Knob::memory_high),
                                       std::pair(Resource::cpu_weight, Knob::cpu_weight),
                                       std::pair(Resource::freeze, Knob::cgroup_freeze)}) {
    if (left(knob)) continue;
    Limits originals = view->in_force;
    for (const Knob one : kKnobs)
      if (resource_of(one) == resource && !left(one)) copy_knob(one, view->original, originals);
    if (originals == view->in_force) continue;
    raised(restored.container, resource, restored.reason, {}, originals, now,
           AppliedChange::Origin::restore, output);
  }
}

// The safety rules conclude that a write failed; the writer knows why.
void Core::drain_outcomes(const TickInput& input, TickOutput& output) {
  output.outcomes = std::exchange(outcomes_, {});
  for (auto& [id, container] : containers_)
    for (Outcome& outcome : container->safety.take_outcomes())
      output.outcomes.push_back(std::move(outcome));
  for (Outcome& outcome : output.outcomes) {
    const auto write =
        std::ranges::find(input.writes, outcome.decision_id, &FinishedWrite::decision_id);
    if (outcome.kind == OutcomeKind::write_failed && write != input.writes.end())
      outcome.detail = write->error;
    if (outcome.kind == OutcomeKind::trial_reverted) totals_.trials_reverted += 1;
  }
}

const ContainerView* Core::find(CgroupId id) const {
  const auto found = containers_.find(id);
  return found == containers_.end() ? nullptr : &found->second->view;
}

std::vector<const ContainerView*> Core::containers() const {
  std::vector<const ContainerView*> views;
  views.reserve(containers_.size());
  for (const auto& [id, container] : containers_) views.push_back(&container->view);
  return views;
}

LearnedState Core::learned(CgroupId id) const {
  const auto found = containers_.find(id);
  return found == containers_.end() ? LearnedState{} : found->second->policy->learned();
}

std::optional<Forecast> Core::forecast(CgroupId id, std::chrono::seconds horizon) const {
  const auto found = containers_.find(id);
  if (found == containers_.end()) return std::nullopt;
  return found->second->policy->forecast(horizon);
}

}  // namespace cgphase
