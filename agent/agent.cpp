#include "agent/agent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "cgroupfs/knob_file.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {


// Ticks between two attempts to save overrides that are not on disk.
constexpr std::uint64_t kSaveRetryTicks = 10;

// Age up to which a check of the kill switch counts; each beat checks it.
constexpr std::chrono::milliseconds kFreshCheck{500};

// The wait for a raise of the fast path that is being written. A raise that takes longer looks like
// a change by somebody else.
constexpr std::chrono::milliseconds kFastPathPatience{20};

void add(LimitWriter::RestoreReport& sum, LimitWriter::RestoreReport more) {
  sum.restored += more.restored;
  sum.foreign += more.foreign;
  sum.gone += more.gone;
  sum.left.insert(sum.left.end(), more.left.begin(), more.left.end());
  std::ranges::move(more.failures, std::back_inserter(sum.failures));
}

LimitWriter::RestoreReport with_failure(const Status& status, LimitWriter::RestoreReport report) {
  if (!status) report.failures.push_back(status.error().text);
  return report;
}

WriteEnd end_of(const LimitResult& result) {
  if (result.written) return WriteEnd::done;
  if (result.program_started) return WriteEnd::program_started;
  return result.overtaken ? WriteEnd::overtaken : WriteEnd::failed;
}

// How a write ended, for the core.
FinishedWrite finished(const LimitResult& result) {
  return {result.decision_id, end_of(result), result.in_force, result.error};
}

FastRaise fast_raise(const FastPathAction& action) {
  FastRaise raise{.container = action.id, .resource = resource_of(action.knob),
                  .reason = action.reason, .before = {}, .after = {}, .time = action.time};
  (void)parse_knob(action.knob, action.old_value.view(), raise.before);
  (void)parse_knob(action.knob, action.new_value.view(), raise.after);
  return raise;
}

// Quantile of the use outside of containers that the budget leaves to it.
constexpr double kOutsideShare = 0.95;

std::string why(const Decision& decision) {
  return std::string(to_string(decision.reason)) + " #" + std::to_string(decision.decision_id);
}

// An unidentified manager keeps overwriting this container's limits.
bool rivalled(const ContainerView& view) {
  return view.cpu_blocked_by == Verdict::rival || view.memory_blocked_by == Verdict::rival;
}

// Not enforced, but its original limits could not be restored yet.
bool left_lowered(const ContainerView& view) {
  return view.mode != Mode::enforce && !all_original(view.in_force, view.original);
}

// No other run of the daemon has this name, also if the process id is used again.
std::string name_of_this_daemon(const Clock& clock) {
  return std::to_string(::getpid()) + " " +
         std::to_string(clock.wall_now().time_since_epoch().count());
}

bool any(const ContainerView&) { return true; }

// Without the patterns of the configuration, which cost more than labels.
bool wrongly_labelled(const ContainerView& view) {
  static const Config none;
  return !view.info.labels.empty() && !terms_for(none, view.info).ignored.empty();
}

// At most kMostNames names; more are abbreviated.
std::string names_of(const std::vector<const ContainerView*>& containers,
                     bool (*wanted)(const ContainerView&)) {
  constexpr int kMostNames = 4;
  std::string names;
  int count = 0;
  for (const ContainerView* view : containers) {
    if (!wanted(*view)) continue;
    if (count++ == kMostNames) return names + ", and more";
    names += (names.empty() ? "" : ", ") + escape_name(view->info.name);
  }
  return names;
}

}  // namespace

Agent::Agent(Config config, Parts parts, const Clock& clock, Post post)
    : config_(std::move(config)),
      configured_mode_(config_.mode),
      clock_(clock),
      post_(std::move(post)),
      parts_(std::move(parts)),
      journal_(parts_.log, tick_),
      overrides_(std::move(parts_.overrides), config_, clock_, parts_.store.get(), post_),
      history_(parts_.store.get()),
      outside_(config_.cgroup_root, config_.proc_root),
      neighbourhood_(config_.proc_root, config_.cgroup_root),
      gpus_(std::move(parts_.gpu_scanner)),
      gpu_usage_(parts_.gpus ? std::move(parts_.gpus) : no_gpu_source("not asked for")),
      learning_({.core = parts_.core, .bursts = bursts_, .store = parts_.store.get(),
                 .tick = tick_},
                {.locked = parts_.history_locked, .last_written = parts_.last_written},
                model_key(parts_.model.engine.get()), name_of_this_daemon(clock_), post_) {
  follow_host_mode();
}

Agent::~Agent() = default;

void Agent::tick() {
  tick_requested_ = false;
  step(collect());
  outside_.observe(tick_, parts_.core.containers());
  bursts_.observe(tick_);
  drain_events();
  learning_.tick();
  history_.add(tick_, parts_.core, journal_);
  if (totals().ticks % kSaveRetryTicks == 0) overrides_.retry_save();
}

// Everything that happened since the last tick, with the sample. The results of the writer and the
// fast path are collected after the files were read: the core applies them first.
TickInput Agent::collect() {
  watch_kill_switch_in_tick();
  bool new_facts = watch_neighbours();
  parts_.sampler.sample(clock_, tick_);
  gpu_usage_.fill(tick_);
  if (parts_.probes) parts_.probes->fill_counters(tick_);
  adopt_after_revocation();
  if (parts_.fast_path) (void)parts_.fast_path->settle(kFastPathPatience);
  TickInput input = collect_events();
  // Events of a container that vanished are journaled while it is still known.
  if (!tick_.vanished.empty()) {
    step(input);
    input = TickInput{.now = input.now};
  }
  if (parts_.fast_path) parts_.fast_path->close_dropped();
  if (parts_.kernel_writer != nullptr) parts_.kernel_writer->settle_thawed();
  const auto gpu_scan_wanted = [this](CgroupId id) {
    const ContainerView* view = parts_.core.find(id);
    return view != nullptr && view->wants_gpu_look;
  };
  new_facts |= gpus_.scan(tick_, gpu_scan_wanted);
  if (new_facts) collect_facts(input);
  watch_programs();
  // BPF reports a write before it is done, so the writer of each value in the sample is known here.
  // The programs that report writes are loaded only if a container is not in observe mode. The loop
  // waits while they load, and nothing is lowered yet.
  if (parts_.probes) {
    parts_.probes->set_wanted(
        std::ranges::any_of(parts_.core.containers(), [](const ContainerView* view) {
          return view->mode != Mode::observe;
        }));
    input.limit_writes = parts_.probes->drain_limit_writes();
  }
  for (const CgroupId& id : tick_.vanished) container_removed(id);
  for (const ContainerInfo& info : tick_.appeared) container_added(info);
  input.outside = outside_.share(kOutsideShare);
  input.sample = &tick_;
  return input;
}

// Results of the writer, and raises of the fast path.
TickInput Agent::collect_events() {
  TickInput input{.now = clock_.monotonic_now()};
  input.writes = std::exchange(refused_, {});
  if (parts_.writer)
    for (const LimitResult& result : parts_.writer->drain_results()) {
      if (result.decision_id != 0) input.writes.push_back(finished(result));
      else if (result.written) input.reclaimed.push_back(result.id);  // a reclaim
    }
  if (!parts_.fast_path) return input;
  const std::vector<FastPathAction> actions = parts_.fast_path->take_actions();
  // The count is read after the fast path's wake was taken, so a later write wakes again.
  const std::uint64_t outside_writes = parts_.fast_path->outside_writes();
  if (outside_writes != std::exchange(outside_writes_, outside_writes)) tick_requested_ = true;
  for (const FastPathAction& action : actions)
    if (action.written) input.fast_raises.push_back(fast_raise(action));
  return input;
}

void Agent::collect_facts(TickInput& input) const {
  for (const ContainerView* view : parts_.core.containers())
    input.facts.emplace_back(view->info.id, facts_of(view->info));
}

void Agent::drain_events() {
  const TickInput input = collect_events();
  if (!input.writes.empty() || !input.fast_raises.empty() || !input.reclaimed.empty()) step(input);
}

void Agent::step(const TickInput& input) {
  const TickOutput output = parts_.core.step(input);
  journal_.record(output, parts_.core, clock_.monotonic_now());
  apply(output);
}

void Agent::apply(const TickOutput& output) {
  for (const Decision& decision : output.decisions)
    if (decision.verdict == Verdict::allowed) submit(decision);
  if (!parts_.writer) return;
  for (const CacheReclaim& reclaim : output.reclaims)
    parts_.writer->submit_reclaim(reclaim.container, reclaim.bytes);
}

ProgramWatch::Environment Agent::around_programs() const {
  const auto attended = [this](CgroupId id) {
    const ContainerView* view = parts_.core.find(id);
    return view != nullptr && view->mode != Mode::observe;
  };
  const auto directory = [this](CgroupId id) { return parts_.sampler.duplicate_directory(id); };
  return {.probes = parts_.probes.get(), .proc_root = config_.proc_root, .attended = attended,
          .directory = directory, .start_up = config_.safety.start_up};
}

void Agent::watch_programs() {
  programs_.observe(tick_, around_programs());
  if (listening_ || !parts_.fast_path || !parts_.probes) return;
  if (auto starts = parts_.probes->program_starts())
    listening_ = parts_.fast_path->listen(std::move(starts)).has_value();
}

void Agent::beat() {
  programs_.drain_events(clock_.monotonic_now(), around_programs());
  watch_kill_switch();
  overrides_.answer_saved();
  if (parts_.kernel_writer != nullptr) parts_.kernel_writer->heartbeat(clock_.monotonic_now());
}

void Agent::container_added(const ContainerInfo& info) {
  InitialState initial{.mode = mode_of(info), .terms = terms_for(config_, info).terms,
                       .prior = learning_.prior(info), .facts = facts_of(info)};
  if (parts_.kernel_writer != nullptr)
    initial.original = parts_.kernel_writer->leased_originals(info.id);
  const bool leased = initial.original != Limits{};
  if (parts_.writer && (info.hands_off.empty() || leased)) {
    Result<Fd> directory = parts_.sampler.duplicate_directory(info.id);
    if (directory) (void)parts_.writer->attach(info.id, info.path, std::move(*directory));
  }
  if (leased) initial.original = restore_found(info.id);
  parts_.sampler.set_detail(info.id, initial.mode != Mode::observe);
  parts_.core.admit(info.id, std::move(initial));
  if (!parts_.store) return;
  parts_.store->enqueue({.containers = {{info, tick_.wall_time}}});
  learning_.request_priors(info);
}

// Restores a container that vanished earlier while its limits could not be restored. Returns the
// originals of knobs that still cannot be restored: the safety rules go on to ask for them. The
// sample of this tick is older than the restore, so it gets the restored limits: otherwise the next
// one would show a write by somebody else.
Limits Agent::restore_found(CgroupId id) {
  const auto report = parts_.writer->restore(id);
  if (parts_.log != nullptr) parts_.log->restore_failed(report.failures);
  const Result<Fd> directory = parts_.sampler.duplicate_directory(id);
  const Result<Limits> now =
      directory ? read_limits(directory->get()) : std::unexpected(directory.error());
  const auto sample = std::ranges::find(tick_.containers, id, &Sample::id);
  if (now && sample != tick_.containers.end())
    for (const Knob knob : kKnobs) copy_knob(knob, *now, sample->limits);
  return parts_.kernel_writer->leased_originals(id);
}

void Agent::container_removed(CgroupId id) {
  if (const ContainerView* view = parts_.core.find(id)) {
    learning_.end_run(*view);
  }
  if (parts_.writer) {
    // A living cgroup that is no longer a container keeps no limit of ours.
    const auto report = parts_.writer->restore(id);
    if (parts_.log != nullptr) parts_.log->restore_failed(report.failures);
    parts_.writer->detach(id);
  }
  overrides_.container_removed(id);
  learning_.forget_requests(id);
  if (parts_.log != nullptr) parts_.log->forget(id);
}

void Agent::submit(const Decision& decision) {
  const ContainerView* view = parts_.core.find(decision.container);
  if (view == nullptr) return;
  // Without a companion nothing more is lowered, but lowered limits are still raised.
  const bool may = parts_.writer && (writable_ || decision.direction == Direction::raise ||
                                     decision.reason == Reason::restored);
  if (!may) {
    refused_.push_back({decision.decision_id, WriteEnd::failed, decision.old_limits, {}});
    return;
  }
  LimitChange change{.decision_id = decision.decision_id, .id = decision.container,
                     .path = view->info.path, .old_limits = decision.old_limits,
                     .new_limits = decision.new_limits,
                     // A raise may start from any value of ours. A weight starts from the one that
                     // was read, whichever way it goes.
                     .raise = decision.direction == Direction::raise &&
                              decision.resource != Resource::cpu_weight,
                     .grant = decision.reason == Reason::budget,
                     .decided = decision.time, .reason = why(decision),
                     .deadline = decision.deadline()};
  const bool lowers_memory =
      decision.resource == Resource::memory && decision.direction == Direction::lower;
  if (const auto bytes = decision.new_limits.memory_bytes(); lowers_memory && bytes)
    change.memory_need_ceiling = Bytes{static_cast<std::uint64_t>(
        static_cast<double>(bytes->value) * config_.safety.at_risk_ratio)};
  parts_.writer->submit(std::move(change));
}

// The kill switch, a pause and an unwritable host allow only observe. Another manager on the host
// allows advise, as for a container that it manages: the journal then shows what blocks it.
Mode Agent::mode_of(const ContainerInfo& info) const {
  if (kill_switch_ || !may_write() || overrides_.paused(info)) return Mode::observe;
  return std::min(overrides_.asked_mode(info),
                  standing_down().empty() ? Mode::enforce : Mode::advise);
}

std::vector<const ContainerView*> Agent::capped() const {
  std::vector<const ContainerView*> capped;
  for (const ContainerView* view : parts_.core.containers())
    if (const auto own = overrides_.own_mode(view->info);
        own && own->mode > overrides_.ceiling())
      capped.push_back(view);
  return capped;
}

// A host that cannot be written to gets at most its configured mode, which was checked.
void Agent::follow_host_mode() {
  const auto& asked = overrides_.table().host().in_force();
  config_.mode = asked ? asked->mode : configured_mode_;
  if (parts_.writer == nullptr) config_.mode = std::min(config_.mode, configured_mode_);
}

LimitWriter::RestoreReport Agent::set_mode(std::optional<Mode> mode, bool until_restart) {
  overrides_.end_loss();
  // The configured mode needs no override.
  if (mode == Mode::enforce && configured_mode_ == Mode::enforce && !until_restart) mode.reset();
  overrides_.set_host_mode(mode, until_restart);
  follow_host_mode();
  return apply_modes();
}

LimitWriter::RestoreReport Agent::set_mode(CgroupId id, std::optional<Mode> mode,
                                           bool until_restart) {
  const ContainerView* view = parts_.core.find(id);
  if (view == nullptr) return {};
  const Status kept = overrides_.set_mode(view->info, mode, until_restart);
  return with_failure(kept, apply_modes());
}

bool Agent::take_model(ChosenModel model) {
  parts_.model = std::move(model);
  const PhaseEngine* engine = parts_.model.engine.get();
  if (!learning_.take_model(model_key(engine), parts_.model.engine)) return false;
  parts_.sampler.set_observed_memory_age(observed_memory_age(engine));
  return true;
}

nlohmann::json Agent::bursts(const ContainerView& view) const {
  return bursts_.report(view.info.id, image_of(view.info));
}

LimitWriter::RestoreReport Agent::apply_modes() {
  LimitWriter::RestoreReport report;
  const Reason reason = standing_down().empty() ? Reason::restored : Reason::another_manager;
  for (const ContainerView* view : parts_.core.containers()) {
    const Mode before = view->mode;
    const Mode mode = mode_of(view->info);
    // The mode first: in enforce mode, a restore would look like a change by somebody else.
    parts_.core.set_mode(view->info.id, mode);
    parts_.sampler.set_detail(view->info.id, mode != Mode::observe);
    if (before == Mode::enforce && mode != Mode::enforce)
      add(report, restore(view->info.id, reason));
  }
  return report;
}

// Unless a beat has just checked.
void Agent::watch_kill_switch_in_tick() {
  const MonotonicTime now = clock_.monotonic_now();
  const bool young = kill_switch_time_ && now >= *kill_switch_time_ &&
                     now - *kill_switch_time_ <= kFreshCheck;
  if (!young) watch_kill_switch();
}

void Agent::watch_kill_switch() {
  kill_switch_time_ = clock_.monotonic_now();
  struct stat status{};  // not access(), for which the kernel makes credentials each time
  const bool present = ::stat(config_.kill_switch.c_str(), &status) == 0;
  if (present == kill_switch_) return;
  kill_switch_ = present;
  if (parts_.log != nullptr) parts_.log->kill_switch(present, config_.kill_switch);
  (void)apply_modes();
  if (present) (void)restore_all();
}

ExternalFacts Agent::facts_of(const ContainerInfo& info) const {
  const bool job = info.labels.contains("com.gitlab.gitlab-runner.managed");
  return {.larger_margin = job || neighbourhood_.wants_margin(info.path),
          .gpu = gpus_.may_have_gpu(info.id),
          .gpu_ruled_out = gpus_.ruled_out(info.id)};
}

bool Agent::watch_neighbours() {
  const bool before = standing_down().empty();
  const bool changed = neighbourhood_.scan(clock_.monotonic_now());
  if (standing_down().empty() != before) {
    TickInput input{.other_manager = !standing_down().empty()};
    step(input);
    (void)apply_modes();
  }
  return changed;
}

void Agent::set_writable(bool writable) {
  if (writable == writable_) return;
  writable_ = writable;
  (void)apply_modes();
  if (!writable) (void)restore_all();
}

LimitWriter::RestoreReport Agent::set_paused(CgroupId id, bool paused) {
  const ContainerView* view = parts_.core.find(id);
  if (view == nullptr) return {};
  const Status kept = overrides_.set_paused(view->info, paused);
  return with_failure(kept, apply_modes());
}

LimitWriter::RestoreReport Agent::restore(CgroupId id, Reason reason) {
  if (!parts_.writer) return {};
  LimitWriter::RestoreReport report = parts_.writer->restore(id);
  TickInput input = collect_events();  // of writes before the restore
  if (report.restored > 0) input.restored.push_back({id, reason, report.left});
  step(input);
  if (parts_.log != nullptr) parts_.log->restore_failed(report.failures);
  return report;
}

LimitWriter::RestoreReport Agent::restore_all() {
  if (!parts_.writer) return {};
  LimitWriter::RestoreReport report;
  for (const ContainerView* view : parts_.core.containers())
    add(report, restore(view->info.id));
  // Then cgroups that are no longer known as containers. A failure is reported once.
  LimitWriter::RestoreReport rest = parts_.writer->restore_all();
  std::erase_if(rest.failures, [&](const std::string& failure) {
    return std::ranges::find(report.failures, failure) != report.failures.end();
  });
  if (parts_.log != nullptr) parts_.log->restore_failed(rest.failures);
  add(report, std::move(rest));
  return report;
}

LimitWriter::RestoreReport Agent::stop() {
  if (parts_.fast_path) parts_.fast_path->stop();
  return restore_all();
}

Status Agent::store_all() {
  drain_events();
  tick_.containers.clear();  // these samples are stored
  history_.add(tick_, parts_.core, journal_);
  learning_.save_at_stop();
  return parts_.store ? parts_.store->flush_and_stop() : Status{};
}

// The companion restored everything because this process was silent for too long. The limits that
// the core believes to be in force are wrong, so every container begins at its original. The
// companion must hear that the silence is over before anything is written, or it restores that too.
// This also applies if the reading of the files took too long.
void Agent::adopt_after_revocation() {
  if (parts_.kernel_writer == nullptr || !parts_.kernel_writer->revoked()) return;
  parts_.kernel_writer->heartbeat(clock_.monotonic_now());
  TickInput input = collect_events();
  parts_.kernel_writer->acknowledge_revocation();
  for (const ContainerView* view : parts_.core.containers())
    input.restored.push_back({view->info.id, Reason::silence,
                              parts_.kernel_writer->not_original(view->info.id)});
  step(input);
}

int Agent::result_fd() const { return parts_.writer ? parts_.writer->result_fd() : -1; }

int Agent::fast_path_fd() const { return parts_.fast_path ? parts_.fast_path->action_fd() : -1; }

std::vector<std::string> Agent::reload(Config config) {
  std::vector<std::string> kept = keep_until_restart(config_, config);
  if (parts_.writer == nullptr && config.mode != Mode::observe) {
    kept.push_back("mode stays observe: this host cannot be written to");
    config.mode = Mode::observe;
  }
  if (config.safety != config_.safety && !parts_.core.containers().empty())
    kept.push_back("lower_gpu_quota applies to containers that appear from now on");
  config_ = std::move(config);
  // The newest setting wins: a new mode in the configuration replaces the one that a command set.
  if (std::exchange(configured_mode_, config_.mode) != config_.mode) overrides_.drop_host_mode();
  follow_host_mode();
  parts_.core.set_safety(config_.safety);
  parts_.core.set_budget(config_.budget);
  parts_.core.set_cpu_lever(config_.enforce.cpu);
  if (parts_.fast_path) parts_.fast_path->set_safety(config_.safety);
  neighbourhood_.request_scan();
  for (const ContainerView* view : parts_.core.containers())
    parts_.core.set_terms(view->info.id, terms_for(config_, view->info).terms);
  (void)apply_modes();
  return kept;
}

std::vector<Source> Agent::sources() const {
  std::vector<Source> sources = parts_.sampler.sources();
  sources.push_back(neighbourhood_.source());
  sources.push_back(gpus_.source());
  sources.push_back(gpu_usage_.source(clock_.monotonic_now()));
  if (parts_.probes) std::ranges::move(parts_.probes->sources(), std::back_inserter(sources));
  if (!parts_.fast_path) return sources;
  const FastPathSource pressure = parts_.fast_path->pressure(),
                       inotify = parts_.fast_path->inotify();
  sources.push_back({"fast path: pressure triggers", pressure.present, pressure.detail});
  sources.push_back({"fast path: inotify", inotify.present, inotify.detail});
  return sources;
}

std::uint64_t Agent::store_size_bytes() const {
  std::uint64_t bytes = 0;
  for (const char* suffix : {"", "-wal"}) {
    std::error_code absent;
    const std::string path = config_.state_dir + "/history.db" + suffix;
    const auto size = std::filesystem::file_size(path, absent);
    if (!absent) bytes += size;
  }
  return bytes;
}

const char* Agent::unwritable() const {
  return parts_.writer == nullptr || writable_
             ? ""
             : "the dead-man companion ended, and none has lasted since";
}

std::vector<std::string> Agent::degraded() const {
  std::vector<std::string> sentences = parts_.model.passed_over;
  if (const std::string why = unwritable(); !why.empty())
    sentences.push_back("only observing, with the original limits: " + why);
  if (!standing_down().empty())
    sentences.push_back("only observing, with the original limits: " + standing_down());
  const std::vector<const ContainerView*> containers = parts_.core.containers();
  if (const std::string names = names_of(containers, left_lowered); !names.empty())
    sentences.push_back("limits that could not be put back yet, and are tried again: " + names);
  if (const std::string names = names_of(containers, rivalled); !names.empty())
    sentences.push_back("only observed, another manager changes their limits again and again: " +
                        names);
  if (const std::string names = names_of(containers, wrongly_labelled); !names.empty())
    sentences.push_back("labels of no known value are ignored (docs/configuration.md): " + names);
  if (const std::string hang = gpus_.degraded(); !hang.empty()) sentences.push_back(hang);
  if (parts_.store)
    if (const auto reason = parts_.store->degraded())
      sentences.push_back("the history is incomplete: " + *reason);
  if (const std::string& damage = learning_.history().damage; !damage.empty())
    sentences.push_back(damage);
  if (parts_.fast_path && parts_.fast_path->lost_actions() > 0)
    sentences.push_back(std::to_string(parts_.fast_path->lost_actions()) +
                        " raises by the fast path are missing in the journal");
  if (overrides_.table().lost())
    sentences.push_back("only observing: the file of pauses and modes was damaged, so a pause may "
                        "be lost; `cgphase mode " +
                        std::string(configured_mode_ == Mode::enforce ? "enforce" : "default") +
                        "` ends that");
  else if (config_.mode < configured_mode_)
    sentences.push_back(std::string("`cgphase mode` set this host to ") +
                        to_string(config_.mode) + ", the configuration says " +
                        to_string(configured_mode_) + "; `cgphase mode " +
                        to_string(configured_mode_) + "` ends that");
  else if (const std::string names = names_of(capped(), any); !names.empty())
    sentences.push_back("`cgphase mode observe` holds containers below their own modes: " + names +
                        "; `cgphase mode default` ends that");
  if (!overrides_.save_error().empty())
    sentences.push_back("pauses and modes are not saved yet, and end with this process: " +
                        overrides_.save_error());
  return sentences;
}

}  // namespace cgphase
