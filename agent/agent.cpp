#include "agent/agent.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "base/text.h"
#include "cgroupfs/knob_file.h"
#include "policy/safety/limit_arithmetic.h"

namespace cgphase {
namespace {


// So often what could not be saved of pauses and modes is tried again.
constexpr std::uint64_t kHoldsRetryTicks = 10;

// Since the kill switch was looked for: it is at each beat.
constexpr std::chrono::milliseconds kYoungLook{500};

// For a raise of the guard that is being written; what takes longer looks like somebody else's.
constexpr std::chrono::milliseconds kGuardPatience{20};

// At most this share of what is reclaimable in so long (docs/safety.md).
constexpr double kSqueezeRatio = 0.01;
constexpr std::chrono::seconds kSqueezeInterval{6};
constexpr double kSqueezePressureRatio = 0.001;

// Memory and io pressure are both quiet; a kernel without PSI gives no ground to say no, and the
// rails have already looked at its substitutes.
bool quiet(const Sample& sample) {
  const auto calm = [](const PressureLine& line) {
    return line.avg10_ratio.value_or(0) < kSqueezePressureRatio &&
           line.avg60_ratio.value_or(0) < kSqueezePressureRatio;
  };
  return calm(sample.memory_pressure.some) && calm(sample.io_pressure.some);
}

void add(LimitWriter::RestoreReport& sum, LimitWriter::RestoreReport more) {
  sum.restored += more.restored;
  sum.foreign += more.foreign;
  sum.gone += more.gone;
  sum.left.insert(sum.left.end(), more.left.begin(), more.left.end());
  std::ranges::move(more.failures, std::back_inserter(sum.failures));
}

WriteEnd end_of(const LimitResult& result) {
  if (result.written) return WriteEnd::done;
  if (result.program_started) return WriteEnd::program_started;
  return result.overtaken ? WriteEnd::overtaken : WriteEnd::failed;
}

std::string why(const Decision& decision) {
  return std::string(to_string(decision.reason)) + " #" + std::to_string(decision.decision_id);
}

// That an unknown manager has to itself.
bool rivalled(const ContainerView& view) {
  return view.cpu_holding == Verdict::rival || view.memory_holding == Verdict::rival;
}

// That should have its originals and has not.
bool left_lowered(const ContainerView& view) {
  return view.mode != Mode::enforce &&
         !(is_original(view.in_force, view.original, Resource::cpu) &&
           is_original(view.in_force, view.original, Resource::memory));
}

bool any(const ContainerView&) { return true; }

// Of many the first.
std::string names_of(const std::vector<const ContainerView*>& containers,
                     bool (*wanted)(const ContainerView&)) {
  constexpr int kMostTold = 4;
  std::string names;
  int told = 0;
  for (const ContainerView* view : containers) {
    if (!wanted(*view)) continue;
    if (told++ == kMostTold) return names + ", and more";
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
      model_key_(model_key(parts_.model.engine.get())),
      daemon_(std::to_string(::getpid()) + " " +
              std::to_string(clock_.wall_now().time_since_epoch().count())),
      outside_(config_.cgroup_root, config_.proc_root),
      neighbourhood_(config_.proc_root, config_.cgroup_root),
      gpus_(std::move(parts_.gpu_looks)),
      gpu_usage_(parts_.gpus ? std::move(parts_.gpus) : no_gpu_source("not asked for")) {
  follow_host_mode();
}

void Agent::tick() {
  look_requested_ = false;
  watch_kill_switch_in_tick();
  watch_neighbours();
  parts_.sampler.sample(clock_, tick_);
  gpu_usage_.fill(tick_);
  if (parts_.probes) parts_.probes->fill_counters(tick_);
  // Also where it was the reading that took too long: what was read then is no act of others.
  adopt_after_revocation();
  // What writer and guard did before the files were read must not look like somebody else's intent.
  take_results();
  if (parts_.guard) (void)parts_.guard->settle(kGuardPatience);
  take_guard_actions();
  if (parts_.guard) parts_.guard->close_dropped();
  const auto gpu_look_wanted = [this](CgroupId id) {
    const ContainerView* view = parts_.pipeline.find(id);
    return view != nullptr && view->wants_gpu_look;
  };
  if (gpus_.look(tick_, gpu_look_wanted)) renew_care();
  watch_programs();
  // The kernel tells of a write before it is done: whoever wrote what was read is known here.
  take_limit_writes();
  for (const CgroupId& id : tick_.vanished) farewell(id);
  for (const ContainerInfo& info : tick_.appeared) welcome(info);
  for (const Decision& decision : parts_.pipeline.step(tick_)) {
    remember(decision);
    if (decision.verdict == Verdict::allowed) submit(decision);
  }
  outside_.observe(tick_, parts_.pipeline.containers());
  bursts_.observe(tick_);
  take_results();
  remember_outcomes();
  squeeze_cache();
  take_up_history();
  store_rails_memory(false);
  save_taught(false);
  checkpoint();
  ask_wanted();
  store_tick();
  if (!holds_error_.empty() && totals_.ticks % kHoldsRetryTicks == 0) save_holds();
  totals_.ticks += 1;
}

ProgramWatch::Surroundings Agent::around_programs() const {
  const auto attended = [this](CgroupId id) {
    const ContainerView* view = parts_.pipeline.find(id);
    return view != nullptr && view->mode != Mode::observe;
  };
  const auto directory = [this](CgroupId id) { return parts_.sampler.duplicate_directory(id); };
  return {.probes = parts_.probes.get(), .proc_root = config_.proc_root, .attended = attended,
          .directory = directory, .start_up = config_.rails.start_up};
}

void Agent::watch_programs() {
  programs_.look(tick_, around_programs());
  if (listening_ || !parts_.guard || !parts_.probes) return;
  if (auto starts = parts_.probes->program_starts())
    listening_ = parts_.guard->listen(std::move(starts)).has_value();
}

void Agent::beat() {
  programs_.hear(clock_.monotonic_now(), around_programs());
  watch_kill_switch();
  if (!after_save_.empty()) answer_saved();
  if (parts_.kernel_writer != nullptr) parts_.kernel_writer->heartbeat(clock_.monotonic_now());
}

void Agent::welcome(const ContainerInfo& info) {
  const auto learned = learned_.find(learning_key(info));
  Admission admission{.mode = mode_of(info)};
  if (learned != learned_.end()) admission.prior = learned->second.taught;
  if (parts_.kernel_writer != nullptr)
    admission.original = parts_.kernel_writer->leased_originals(info.id);
  const bool leased = admission.original != Limits{};
  if (parts_.writer && (info.hands_off.empty() || leased)) {
    Result<Fd> directory = parts_.sampler.duplicate_directory(info.id);
    if (directory) (void)parts_.writer->attach(info.id, info.path, std::move(*directory));
  }
  if (leased) admission.original = restore_found(info.id);
  parts_.sampler.attend(info.id, admission.mode != Mode::observe);
  parts_.pipeline.admit(info.id, std::move(admission));
  parts_.pipeline.set_care(info.id, care_of(info));
  if (!parts_.store) return;
  parts_.store->enqueue({.containers = {{info, tick_.wall_time}}});
  want_bursts(info);
  if (learned == learned_.end() || !learned->second.whole) want_prior(info);
}

// A container that was lost from sight, and whose limits could not be put back then. The originals
// of what still cannot be: the rails go on to ask for these. What was read of it in this tick was
// before that, and must not look like a write of somebody else in the next.
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

void Agent::farewell(CgroupId id) {
  std::erase_if(submitted_, [id](const auto& one) { return one.second.container == id; });
  const ContainerView* view = parts_.pipeline.find(id);
  if (view != nullptr) {
    totals_.saved_core_seconds += view->saved_core_seconds;
    totals_.saved_byte_seconds += view->saved_byte_seconds;
    learn(*view, false);
    learn_bursts(view->info);
  }
  if (parts_.writer) {
    // A cgroup that is only no longer a container keeps no limit of ours.
    const auto report = parts_.writer->restore(id);
    if (parts_.log != nullptr) parts_.log->restore_failed(report.failures);
    parts_.writer->detach(id);
  }
  asked_modes_.erase(id);
  for (auto& [key, ids] : wanted_.learned) std::erase(ids, id);
  std::erase_if(wanted_.learned, [](const auto& wanted) { return wanted.second.empty(); });
  foreign_writes_.forget(id);
  if (parts_.log != nullptr) parts_.log->forget(id);
}

// News at once, what the disk refused at the pace of the history, and the last time in any case.
void Agent::store_rails_memory(bool last) {
  const bool news = parts_.pipeline.take_rails_news();
  rails_unsaved_ = rails_unsaved_ || news;
  const bool due = news || last || tick_.time >= next_rails_try_;
  // A history that is locked may have more than this run knows.
  if (!parts_.store || parts_.history_locked || !rails_unsaved_ || !due) return;
  next_rails_try_ = tick_.time + Store::kFlushInterval;
  rails_unsaved_ = !parts_.store->query([this, memory = parts_.pipeline.rails_memory().to_json()](
                                            Store& store) {
    if (!store.save_learned(kRailsMemoryName, memory)) post_([this] { rails_unsaved_ = true; });
  });
}

void Agent::submit(const Decision& decision) {
  const ContainerView* view = parts_.pipeline.find(decision.container);
  if (view == nullptr) return;
  // Without a companion nothing more is lowered, and what is lowered goes back all the same.
  const bool may = parts_.writer && (writable_ || decision.direction == Direction::raise);
  if (!may) {
    parts_.pipeline.written(decision.decision_id, WriteEnd::failed, decision.old_limits,
                            tick_.time);
    return;
  }
  LimitChange change{.decision_id = decision.decision_id, .id = decision.container,
                     .path = view->info.path, .old_limits = decision.old_limits,
                     .new_limits = decision.new_limits,
                     .raise = decision.direction == Direction::raise,
                     .decided = decision.time, .reason = why(decision)};
  const bool lowers_memory =
      decision.resource == Resource::memory && decision.direction == Direction::lower;
  if (const auto bytes = decision.new_limits.memory_bytes(); lowers_memory && bytes)
    change.memory_need_ceiling = Bytes{static_cast<std::uint64_t>(
        static_cast<double>(bytes->value) * config_.rails.at_risk_ratio)};
  submitted_.emplace(decision.decision_id, decision);
  parts_.writer->submit(std::move(change));
}

void Agent::take_results() {
  if (!parts_.writer) return;
  for (const LimitResult& result : parts_.writer->take_results()) {
    if (result.decision_id == 0) continue;  // memory.reclaim: no limit changed
    const WriteEnd end = end_of(result);
    const auto asked = submitted_.extract(result.decision_id);
    if (end == WriteEnd::failed) {
      write_errors_[result.decision_id] = result.error;
      totals_.writes_failed += 1;
    }
    if (end == WriteEnd::done) {
      const bool raise = asked && asked.mapped().direction == Direction::raise;
      ++(raise ? totals_.writes_up : totals_.writes_down);
    }
    if (end == WriteEnd::done && asked) remember_written(asked.mapped(), result.in_force, {});
    parts_.pipeline.written(result.decision_id, end, result.in_force, clock_.monotonic_now());
  }
}

// What the guard raised by itself, between two ticks.
void Agent::take_guard_actions() {
  if (!parts_.guard) return;
  const std::vector<GuardAction> actions = parts_.guard->take_actions();
  // Counted after the guard's wake was taken: one that comes later wakes again.
  const std::uint64_t outside_writes = parts_.guard->outside_writes();
  if (outside_writes != std::exchange(outside_writes_, outside_writes)) look_requested_ = true;
  for (const GuardAction& action : actions) {
    const ContainerView* view = parts_.pipeline.find(action.id);
    if (view == nullptr || !action.written) continue;
    const bool cpu = action.knob == Knob::cpu_max || action.knob == Knob::cpu_max_burst;
    Limits in_force = view->in_force;
    (void)parse_knob(action.knob, action.new_value.view(), in_force);
    totals_.writes_up += 1;
    Decision raise = parts_.pipeline.guard_raised(
        action.id, cpu ? Resource::cpu : Resource::memory, action.reason, in_force, action.time);
    (void)parse_knob(action.knob, action.old_value.view(), raise.old_limits);
    remember(raise);
    remember_written(raise, in_force, "by the guard: ");
  }
}

// If page cache alone keeps memory.high from following need, a little of it is dropped at a time:
// memory.reclaim leaves no state behind (docs/safety.md).
void Agent::squeeze_cache() {
  if (!parts_.writer || tick_.time < next_squeeze_) return;
  next_squeeze_ = tick_.time + kSqueezeInterval;
  for (const ContainerView* view : parts_.pipeline.containers()) {
    if (view->mode != Mode::enforce || view->memory_holding != Verdict::cache_in_way) continue;
    const Counter inactive = view->sample.memory.inactive_file_bytes;
    const auto bytes = static_cast<std::uint64_t>(
        static_cast<double>(inactive.value_or(0)) * kSqueezeRatio) / kPageBytes * kPageBytes;
    if (bytes > 0 && quiet(view->sample))
      parts_.writer->submit_reclaim(view->info.id, Bytes{bytes});
  }
}

LimitWriter::RestoreReport Agent::apply_modes() {
  LimitWriter::RestoreReport report;
  const Reason reason = standing_down().empty() ? Reason::restored : Reason::another_manager;
  for (const ContainerView* view : parts_.pipeline.containers()) {
    const Mode before = view->mode;
    const Mode mode = mode_of(view->info);
    // First the mode: while it is enforce, a restore would look like somebody else's intent.
    parts_.pipeline.set_mode(view->info.id, mode);
    parts_.sampler.attend(view->info.id, mode != Mode::observe);
    if (before == Mode::enforce && mode != Mode::enforce)
      add(report, restore(view->info.id, reason));
  }
  return report;
}

// Where no beat has just looked.
void Agent::watch_kill_switch_in_tick() {
  const MonotonicTime now = clock_.monotonic_now();
  const bool young = kill_switch_time_ && now >= *kill_switch_time_ &&
                     now - *kill_switch_time_ <= kYoungLook;
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

Care Agent::care_of(const ContainerInfo& info) const {
  return {.larger_margin = neighbourhood_.wants_margin(info.path),
          .gpu = gpus_.may_have_gpu(info.id),
          .gpu_ruled_out = gpus_.ruled_out(info.id)};
}

void Agent::renew_care() {
  for (const ContainerView* view : parts_.pipeline.containers())
    parts_.pipeline.set_care(view->info.id, care_of(view->info));
}

void Agent::watch_neighbours() {
  const bool before = standing_down().empty();
  if (neighbourhood_.look(clock_.monotonic_now())) renew_care();
  if (standing_down().empty() == before) return;
  parts_.pipeline.set_hands_off(!standing_down().empty());
  (void)apply_modes();
}

void Agent::set_writable(bool writable) {
  if (writable == writable_) return;
  writable_ = writable;
  (void)apply_modes();
  if (!writable) (void)restore_all();
}

LimitWriter::RestoreReport Agent::set_paused(CgroupId id, bool paused) {
  const ContainerView* view = parts_.pipeline.find(id);
  if (view == nullptr) return {};
  Holds::Hold hold = parts_.holds.of(view->info);
  hold.paused = paused;
  const Status kept = parts_.holds.set(view->info, hold);
  save_holds();
  LimitWriter::RestoreReport report = apply_modes();
  if (!kept) report.failures.push_back(kept.error().text);
  return report;
}

LimitWriter::RestoreReport Agent::restore(CgroupId id, Reason reason) {
  if (!parts_.writer) return {};
  LimitWriter::RestoreReport report = parts_.writer->restore(id);
  take_results();  // of what was written before it
  take_guard_actions();
  const ContainerView* view = parts_.pipeline.find(id);
  if (view != nullptr && report.restored > 0) note_restored(*view, reason, report.left);
  if (parts_.log != nullptr) parts_.log->restore_failed(report.failures);
  return report;
}

LimitWriter::RestoreReport Agent::restore_all() {
  if (!parts_.writer) return {};
  LimitWriter::RestoreReport report;
  for (const ContainerView* view : parts_.pipeline.containers())
    add(report, restore(view->info.id));
  // And what is no longer known as a container; what failed twice is told once.
  LimitWriter::RestoreReport rest = parts_.writer->restore_all();
  std::erase_if(rest.failures, [&](const std::string& failure) {
    return std::ranges::find(report.failures, failure) != report.failures.end();
  });
  if (parts_.log != nullptr) parts_.log->restore_failed(rest.failures);
  add(report, std::move(rest));
  return report;
}

LimitWriter::RestoreReport Agent::stop() {
  if (parts_.guard) parts_.guard->stop();
  return restore_all();
}

Status Agent::store_all() {
  remember_outcomes();
  tick_.containers.clear();  // these samples are stored
  store_tick();
  for (const ContainerView* view : parts_.pipeline.containers()) {
    learn(*view, true);
    learn_bursts(view->info);
  }
  store_rails_memory(true);
  save_taught(true);
  return parts_.store ? parts_.store->flush_and_stop() : Status{};
}

// The companion restored everything because this process was silent for too long: what the pipeline
// believes to be in force is wrong, so every container begins at its original. It has to hear that
// the silence is over before anything is written, or it restores that too.
void Agent::adopt_after_revocation() {
  if (parts_.kernel_writer == nullptr || !parts_.kernel_writer->revoked()) return;
  parts_.kernel_writer->heartbeat(clock_.monotonic_now());
  take_results();
  take_guard_actions();
  parts_.kernel_writer->acknowledge_revocation();
  for (const ContainerView* view : parts_.pipeline.containers())
    note_restored(*view, Reason::silence, parts_.kernel_writer->not_original(view->info.id));
}

int Agent::result_fd() const { return parts_.writer ? parts_.writer->result_fd() : -1; }

int Agent::guard_fd() const { return parts_.guard ? parts_.guard->action_fd() : -1; }

std::vector<std::string> Agent::reload(Config config) {
  std::vector<std::string> kept = keep_until_restart(config_, config);
  if (parts_.writer == nullptr && config.mode != Mode::observe) {
    kept.push_back("mode stays observe: this host cannot be written to");
    config.mode = Mode::observe;
  }
  if (config.rails != config_.rails && !parts_.pipeline.containers().empty())
    kept.push_back("lower_gpu_quota applies to containers that appear from now on");
  config_ = std::move(config);
  // The newer word wins: who edits the mode of the host takes back what a command set before.
  if (std::exchange(configured_mode_, config_.mode) != config_.mode && !parts_.holds.lost()) {
    parts_.holds.set_host({});
    save_holds();
  }
  follow_host_mode();
  parts_.pipeline.set_rails(config_.rails);
  if (parts_.guard) parts_.guard->set_rails(config_.rails);
  neighbourhood_.look_again();
  (void)apply_modes();
  return kept;
}

std::vector<Source> Agent::sources() const {
  std::vector<Source> sources = parts_.sampler.sources();
  sources.push_back(neighbourhood_.source());
  sources.push_back(gpus_.source());
  sources.push_back(gpu_usage_.source(clock_.monotonic_now()));
  if (parts_.probes) std::ranges::move(parts_.probes->sources(), std::back_inserter(sources));
  if (!parts_.guard) return sources;
  const GuardSource pressure = parts_.guard->pressure(), inotify = parts_.guard->inotify();
  sources.push_back({"guard: pressure triggers", pressure.present, pressure.detail});
  sources.push_back({"guard: inotify", inotify.present, inotify.detail});
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
  const std::vector<const ContainerView*> containers = parts_.pipeline.containers();
  if (const std::string names = names_of(containers, left_lowered); !names.empty())
    sentences.push_back("limits that could not be put back yet, and are tried again: " + names);
  if (const std::string names = names_of(containers, rivalled); !names.empty())
    sentences.push_back("only observed, another manager changes their limits again and again: " +
                        names);
  if (const std::string hang = gpus_.degraded(); !hang.empty()) sentences.push_back(hang);
  if (parts_.store)
    if (const auto reason = parts_.store->degraded())
      sentences.push_back("history is kept in memory for now: " + *reason);
  if (!history_damage_.empty()) sentences.push_back(history_damage_);
  if (parts_.guard && parts_.guard->lost_actions() > 0)
    sentences.push_back(std::to_string(parts_.guard->lost_actions()) +
                        " raises by the guard are missing in the journal");
  if (parts_.holds.lost())
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
  if (!holds_error_.empty())
    sentences.push_back("pauses and modes are not saved yet, and end with this process: " +
                        holds_error_);
  return sentences;
}

}  // namespace cgphase
