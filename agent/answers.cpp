#include "agent/answers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "base/parse.h"
#include "base/text.h"
#include "policy/learned_json.h"
#include "protocol/replies.h"

namespace cgphase {
namespace {

constexpr std::size_t kMostFitsKept = 64;

// The horizon of `next`: the window over which `replay --window` compares policies. A shorter one
// leaves out phases of some minutes. Over hours any phase follows any other.
constexpr std::chrono::minutes kNextHorizon{10};

// The window of `overhead`, with one measurement per step.
constexpr std::chrono::minutes kOverheadWindow{5};
constexpr std::chrono::seconds kOverheadStep{10};

double own_cpu_seconds() {
  struct rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

std::uint64_t own_rss_bytes() {
  std::ifstream statm("/proc/self/statm");
  std::uint64_t total_pages = 0;
  std::uint64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::optional<Limits> recommendation_of(const ContainerView& view) {
  if (!view.recommendation.cpu && !view.recommendation.memory) return std::nullopt;
  Limits limits = view.original;
  if (view.recommendation.cpu && limits.cpu_max)
    limits.cpu_max->quota = Microseconds{static_cast<std::uint64_t>(
        view.recommendation.cpu->value * static_cast<double>(limits.cpu_max->period.value))};
  if (view.recommendation.memory && limits.memory_high)
    limits.memory_high->bytes = view.recommendation.memory;
  return limits;
}

std::vector<const ContainerInfo*> infos_of(std::span<const ContainerView* const> views) {
  std::vector<const ContainerInfo*> infos;
  infos.reserve(views.size());
  for (const ContainerView* view : views) infos.push_back(&view->info);
  return infos;
}

WakeReport wake_report(const Wake& wake, const Clock& clock) {
  WakeReport report{.time = clock.wall_now() - (clock.monotonic_now() - wake.time),
                    .asleep_bytes = wake.asleep.value};
  if (wake.waited) report.waited_usec = static_cast<std::uint64_t>(wake.waited->count());
  return report;
}

}  // namespace

// A container takes about 40 us in a list, at most 20 us more once per tick for its next phases
// (bench_fit), and less than 5 us in a status. `show` searches all containers.
const Answers::Share Answers::kStatusShare = {.containers = 65'536, .fewest = 8, .most = 256};
const Answers::Share Answers::kListShare = {.containers = 8192, .fewest = 4, .most = 128};
const Answers::Share Answers::kShowShare = {.containers = 256, .fewest = 1, .most = 256};
const Answers::Share Answers::kLearnedShare = {.containers = kMostLearned, .fewest = 1, .most = 64};
const Answers::Share Answers::kFitShare = {.containers = 400, .fewest = 1, .most = kMostFits};

Answers::Answers(Agent& agent, const Clock& clock, Agent::Post post, Facts facts)
    : agent_(agent), clock_(clock), post_(std::move(post)), facts_(std::move(facts)) {}

Answers::~Answers() = default;

ContainerReport Answers::report(const ContainerView& view) const {
  ContainerReport report{.container = view.info,
                         .mode = view.mode,
                         .paused = agent_.overrides().paused(view.info),
                         .phase = view.phase,
                         .cpu_cores = view.cpu_cores,
                         .limits = view.sample.limits,
                         .original = view.original,
                         .recommendation = recommendation_of(view),
                         .pinned = view.pin,
                         .cpu_limit_around = view.cpu_limit_around,
                         .memory_limit_around = view.memory_limit_around,
                         .cpu_blocked_by = view.cpu_blocked_by,
                         .memory_blocked_by = view.memory_blocked_by,
                         .throttled_usec = view.sample.cpu.throttled_usec,
                         .oom_kills = view.sample.memory_events.oom_kill,
                         .memory_delay_usec = view.memory_delay_usec};
  if (view.terms != Terms{}) report.terms = view.terms;
  if (const Bytes asleep = view.sleep.asleep(); asleep.value > 0)
    report.asleep_bytes = asleep.value;
  report.container.hands_off = agent_.hands_off(view.info);
  if (!report.container.hands_off.empty()) report.mode = Mode::observe;
  report.seconds_in_phase =
      std::chrono::duration<double>(agent_.last_tick() - view.phase_since).count();
  if (view.memory_need) report.memory_need_bytes = view.memory_need->value;
  if (view.sample.memory_current) report.memory_current_bytes = view.sample.memory_current->value;
  report.run_queue = view.sample.run_queue;
  report.run_queue_histogram = agent_.run_queue_histogram(view.info.id);
  report.network = view.sample.network;
  report.block = view.sample.block;
  report.gpu = view.sample.gpu;
  report.gpu_ids = agent_.gpu_usage().gpus_of(view.info.id);
  if (const PhaseEngine* engine = agent_.engine()) {
    for (const auto& [phase, seconds] : view.seconds_in_phase) {
      const auto steps = static_cast<std::uint64_t>(seconds / engine->model().step_seconds);
      if (phase >= 0 && steps > 0) report.phases_seen.push_back({phase, steps});
    }
  }
  set_savings(report, view.ancestor_limits);
  return report;
}

ContainerReport Answers::report_with_next(const ContainerView& view) {
  ContainerReport full = report(view);
  const std::uint64_t ticks = agent_.totals().ticks;
  if (std::exchange(next_of_ticks_, ticks) != ticks) next_.clear();
  const auto [next, added] = next_.try_emplace(view.info.id);
  if (added)
    if (const auto forecast = agent_.core().forecast(view.info.id, kNextHorizon))
      next->second = next_phases(*forecast);
  full.next = next->second;
  return full;
}

void Answers::measure_overhead() {
  const MonotonicTime now = clock_.monotonic_now();
  while (!cpu_seconds_.empty() && now - cpu_seconds_.front().first > kOverheadWindow)
    cpu_seconds_.pop_front();
  if (cpu_seconds_.empty() || now - cpu_seconds_.back().first >= kOverheadStep)
    cpu_seconds_.emplace_back(now, own_cpu_seconds());
}

std::optional<double> Answers::overhead_cpu_cores() const {
  if (cpu_seconds_.empty()) return std::nullopt;
  const auto& [since, before] = cpu_seconds_.front();
  const MonotonicTime now = clock_.monotonic_now();
  if (now - since < kOverheadStep) return std::nullopt;
  return (own_cpu_seconds() - before) / seconds_between(since, now);
}

std::vector<ContainerReport> Answers::reports() const {
  std::vector<ContainerReport> reports;
  for (const ContainerView* view : agent_.core().containers()) reports.push_back(report(*view));
  return reports;
}

StatusReport Answers::status() const {
  const std::vector<ContainerReport> containers = reports();
  StatusReport status{.version = facts_.version, .mode = agent_.config().mode,
                      .policy = agent_.config().policy};
  status.uptime_seconds =
      std::chrono::duration<double>(clock_.monotonic_now() - facts_.started).count();
  status.started = clock_.wall_now() - (clock_.monotonic_now() - facts_.started);
  status.cpu_seconds = own_cpu_seconds();
  status.overhead_cpu_cores = overhead_cpu_cores();
  status.rss_bytes = own_rss_bytes();
  for (const auto& list : {facts_.host_sources, agent_.sources()})
    for (const Source& source : list)
      status.sources.push_back({source.name, source.present, source.detail});
  for (const GpuDevice& gpu : agent_.gpu_usage().devices())
    status.gpus.push_back({gpu.id, gpu.name, gpu.use,
                           gpu.memory_total ? std::optional(gpu.memory_total->value)
                                            : std::nullopt});
  if (const PhaseEngine* engine = agent_.engine()) {
    const Model& model = engine->model();
    status.model.path = agent_.model().path;
    if (const auto program = model.provenance.find("program"); program != model.provenance.end())
      status.model.provenance = program->second;
    status.model.origin = agent_.model().origin;
    status.model.phases = model.centroids.count;
    status.model.features = model.crbm.n_vis;
    status.model.step_seconds = model.step_seconds;
  }
  status.store.cap_bytes = agent_.config().store.cap.value;
  status.store.left_out = agent_.journal().left_out();
  if (StoreThread* store = agent_.store()) {
    status.store.size_bytes = agent_.store_size_bytes();
    status.store.state = store->degraded().value_or("ok");
    const StoreThread::Counts counts = store->counts();
    status.store.dropped_samples = counts.dropped_points;
    status.store.dropped_entries = counts.dropped_journal;
    status.store.damaged = counts.damaged;
    status.store.quarantined = counts.quarantined;
  } else {
    status.store.state = "off";
  }
  sum_up(status, containers);
  const Core::Totals& totals = agent_.totals();
  status.saved_core_seconds = totals.saved_core_seconds;
  status.saved_byte_seconds = totals.saved_byte_seconds;
  for (const ContainerView* view : agent_.core().containers()) {
    status.saved_core_seconds += view->saved_core_seconds;
    status.saved_byte_seconds += view->saved_byte_seconds;
  }
  status.writes_up = totals.writes_up;
  status.writes_down = totals.writes_down;
  status.trials_reverted = totals.trials_reverted;
  status.impossible_samples = agent_.impossible_samples();
  status.last_written_before = agent_.last_written();
  status.changed_anything =
      totals.writes_up + totals.writes_down > 0 || status.last_written_before;
  status.kill_switch = agent_.kill_switch();
  status.companion_needed = facts_.companion_needed;
  status.companion_alive = facts_.companion_alive && facts_.companion_alive();
  status.standing_down = agent_.standing_down();
  status.degraded = agent_.degraded();
  if (auto more = facts_.complaint ? facts_.complaint() : std::nullopt)
    status.degraded.push_back(*std::move(more));
  return status;
}

Result<const ContainerView*> Answers::container(const std::string& name) const {
  const std::vector<const ContainerView*> views = agent_.core().containers();
  const Result<std::size_t> index = find_container(infos_of(views), name);
  if (!index) return std::unexpected(index.error());
  return views[*index];
}

Result<Answers::Asked> Answers::asked_about(const std::string& name) const {
  const auto view = container(name);
  Asked asked{.text = name};
  if (view) {
    asked.container = (*view)->info;
    asked.subject.id = (*view)->info.id;
  } else {
    if (view.error().kind != ErrorKind::not_found || agent_.store() == nullptr)
      return std::unexpected(view.error());
    asked.absent = view.error();
  }
  for (const ContainerView* other : agent_.core().containers())
    if (asked.gone() || other->info.id != asked.subject.id)
      asked.subject.others.push_back(other->info.id);
  return asked;
}

Status Answers::find_asked(Store& store, Asked& asked) {
  if (asked.gone()) {
    const auto last = store.last_container(asked.text);
    if (!last) return std::unexpected(last.error());
    if (!*last) return std::unexpected(*asked.absent);
    asked.subject.record = (*last)->record;
    asked.container = (*last)->stored.container;
  }
  asked.subject.name = asked.container.name;
  asked.subject.engine = asked.container.engine;
  return {};
}

nlohmann::json Answers::no_store(const char* verb) const {
  const auto off = std::ranges::find(facts_.host_sources, "history", &Source::name);
  return error_reply(Exit::failure,
                     std::string(verb) + ": the store is off (" +
                         (off == facts_.host_sources.end()
                              ? "it was not opened)"
                              : off->detail + "); mend that, then restart the daemon"));
}

// Each user has a limit of its own. A new second begins only after the loop has handled all due
// work, including the heartbeat, so that the time of answers makes no room for more of them.
std::optional<nlohmann::json> Answers::refusal(Verb verb, const Peer& peer, const Share& share,
                                               std::size_t containers) {
  const MonotonicTime now = clock_.monotonic_now();
  if (came_round_ && now - asked_since_ >= std::chrono::seconds(1)) {
    asked_.clear();
    asked_since_ = now;
    came_round_ = false;
    post_([this] { post_([this] { came_round_ = true; }); });
  }
  const std::size_t weight = std::max(containers, share.containers / share.most);
  std::size_t& asked = asked_[{verb, peer.uid}];
  if (asked + weight > std::max(share.containers, share.fewest * weight))
    return error_reply(Exit::failure, std::string(to_string(verb)) +
                                          ": rate limit exceeded for uid " +
                                          std::to_string(peer.uid) + "; retry in 1 s");
  asked += weight;
  return std::nullopt;
}

void Answers::answer(const Request& request, const Peer& peer, const Respond& respond) {
  std::visit([&](const auto& one) { answer(one, peer, respond); }, request);
}

void Answers::answer(const StatusRequest&, const Peer& peer, const Respond& respond) {
  const std::size_t count = agent_.core().containers().size();
  if (auto why = refusal(Verb::status, peer, kStatusShare, count)) return respond(*std::move(why));
  respond(to_json(status()));
}

void Answers::answer(const ListRequest&, const Peer& peer, const Respond& respond) {
  const auto views = agent_.core().containers();
  if (auto why = refusal(Verb::list, peer, kListShare, views.size()))
    return respond(*std::move(why));
  ListReply reply;
  for (const ContainerView* view : views) reply.containers.push_back(report_with_next(*view));
  respond(to_json(reply));
}

void Answers::answer(const ShowRequest& request, const Peer& peer, const Respond& respond) {
  if (auto why = refusal(Verb::show, peer, kShowShare, 1)) return respond(*std::move(why));
  const auto view = container(request.container);
  if (!view) return respond(error_reply(view.error()));
  ContainerReport report = report_with_next(**view);
  if (const auto& wake = (*view)->sleep.last_wake()) report.last_wake = wake_report(*wake, clock_);
  nlohmann::json shown = to_json(report);
  shown["bursts"] = agent_.bursts(**view);
  respond(ok_reply(std::move(shown)));
}

void Answers::answer(const LearnedRequest& request, const Peer& peer, const Respond& respond) {
  const auto reply = [policy = agent_.config().policy, host = agent_.host()](
                         const std::string& name, const LearnedState& known) {
    return to_json(LearnedReply{.name = name, .policy = policy, .host = host,
                                .learned = learned_to_json(known)});
  };
  if (request.image) {
    const std::string name = unescape_name(*request.image);
    const auto live = static_cast<std::size_t>(std::ranges::count_if(
        agent_.core().containers(),
        [&](const ContainerView* view) { return image_of(view->info) == name; }));
    if (live > kMostLearned)
      return respond(error_reply(Exit::failure, "learned: more than " +
                                                    std::to_string(kMostLearned) +
                                                    " containers of the image '" +
                                                    escape_name(name) +
                                                    "' run; name one of them"));
    if (auto why = refusal(Verb::learned, peer, kLearnedShare, live))
      return respond(*std::move(why));
    // A refused query drops `respond`, and the client gets an error.
    (void)agent_.learning().ask_learned(name, [reply, name, respond](const LearnedState& known) {
      if (is_empty(known))
        return respond(error_reply(Exit::no_container, "nothing was learned of an image '" +
                                                           escape_name(name) + "'"));
      respond(reply(name, known));
    });
    return;
  }
  if (auto why = refusal(Verb::learned, peer, kLearnedShare, 1)) return respond(*std::move(why));
  const auto view = container(*request.container);
  if (!view) return respond(error_reply(view.error()));
  respond(reply((*view)->info.name, agent_.learning().learned(**view)));
}

const std::vector<KnownContainer>& Answers::known(std::chrono::seconds duration) {
  const auto [found, added] = known_.try_emplace(duration);
  if (!added) return found->second;
  for (const ContainerView* view : agent_.core().containers()) {
    if (view->inside) continue;  // its need is part of the container around it
    found->second.push_back({.name = view->info.name,
                             .forecast = agent_.core().forecast(view->info.id, duration),
                             .original = view->original,
                             .ancestor_limits = view->ancestor_limits,
                             .highest_cpu_cores = view->highest_cpu_cores,
                             .highest_memory_bytes = view->highest_memory_bytes});
  }
  return found->second;
}

void Answers::answer(const FitRequest& request, const Peer& peer, const Respond& respond) {
  respond(fit(request, peer));
}

nlohmann::json Answers::fit(const FitRequest& request, const Peer& peer) {
  const FitQuestion question{
      .cpu_cores = request.cpus,
      .memory_bytes = request.memory_mib * static_cast<double>(kMiB),
      .duration = std::chrono::seconds(request.seconds),
      .risk = request.risk.value_or(FitQuestion{}.risk)};
  if (question.duration > kLongestFit || question.risk > 1)
    return error_reply(Exit::usage, "fit: at most 30 days, and a risk of at most 1");
  const MonotonicTime tick = agent_.last_tick();
  if (std::exchange(fits_of_, tick) != tick || fits_.size() >= kMostFitsKept) {
    fits_.clear();
    known_.clear();
  }
  const std::string words = encode_arguments(request);
  if (const auto same = fits_.find(words); same != fits_.end()) return same->second;
  if (auto why = refusal(Verb::fit, peer, kFitShare, agent_.core().containers().size()))
    return *std::move(why);
  const FitHost host{.capacity = agent_.host(),
                     .outside_cpu_cores = agent_.outside().cpu_cores(1 - question.risk),
                     .outside_memory_bytes = agent_.outside().memory_bytes(1 - question.risk)};
  return fits_[words] =
             to_json(fit_reply(answer_fit(question, host, [this](std::chrono::seconds duration) {
               return known(duration);
             })));
}

std::string Answers::found_by(const ContainerView& view) const {
  const std::vector<const ContainerView*> views = agent_.core().containers();
  std::string name = escape_name(view.info.name);
  const Result<std::size_t> index = find_container(infos_of(views), name);
  return index && views[*index] == &view ? name : escape_name(view.info.path);
}

// The key is the one of agent/override_table.h.
std::string Answers::others_of_name(const ContainerInfo& info) const {
  const auto count =
      std::ranges::count_if(agent_.core().containers(), [&](const ContainerView* view) {
        return view->info.engine == info.engine && view->info.name == info.name;
      });
  if (count < 2) return "";
  return "; this goes by engine and name, which " + std::to_string(count) + " containers have";
}

}  // namespace cgphase
