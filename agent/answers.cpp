#include "agent/answers.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/protocol_history.h"
#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::size_t kExplainDecisions = 20;
constexpr int kMostEvents = 1000;
constexpr int kMostHistoryRows = 7200;
constexpr std::size_t kMostFitContainers = 400;  // in a second, of all questions of one user
constexpr std::size_t kMostFitsKept = 64;

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

std::optional<Limits> proposal_of(const ContainerView& view) {
  if (!view.wish.cpu && !view.wish.memory) return std::nullopt;
  Limits limits = view.original;
  if (view.wish.cpu && limits.cpu_max)
    limits.cpu_max->quota = Microseconds{static_cast<std::uint64_t>(
        view.wish.cpu->value * static_cast<double>(limits.cpu_max->period.value))};
  if (view.wish.memory && limits.memory_max) limits.memory_max->bytes = view.wish.memory;
  return limits;
}

void add_outcome(ExplainReport::Entry& entry, const JournalOutcome& outcome) {
  const bool written = outcome.outcome.kind == OutcomeKind::written;
  (written ? entry.written : entry.outcome) = outcome.outcome;
  (written ? entry.written_time : entry.outcome_time) = outcome.time;
}

ExplainReport::Entry entry_of(const JournalDecision& decision) {
  return {.time = decision.time, .decision = decision.decision, .outcome = {}, .outcome_time = {},
          .writer = decision.writer};
}

ExplainReport::Entry entry_of(const JournalEntry& kept) {
  ExplainReport::Entry entry = entry_of(kept.decision);
  for (const auto* outcome : {&kept.written, &kept.end})
    if (*outcome) add_outcome(entry, **outcome);
  return entry;
}

std::vector<HistoryRow> rows_of(const std::vector<HistoryPoint>& points) {
  std::vector<HistoryRow> rows;
  const HistoryPoint* previous = nullptr;
  for (const HistoryPoint& point : points) {
    HistoryRow row{.time = point.time, .phase = point.phase, .limits = point.sample.limits};
    if (const auto need = memory_need(point.sample)) row.memory_need_bytes = need->value;
    if (point.sample.memory_current) row.memory_current_bytes = point.sample.memory_current->value;
    const Counter now = point.sample.cpu.usage_usec;
    const Counter before = previous != nullptr ? previous->sample.cpu.usage_usec : std::nullopt;
    if (now && before && *now >= *before && point.time > previous->time)
      row.cpu_cores = static_cast<double>(*now - *before) * 1e3 /
                      static_cast<double>((point.time - previous->time).count());
    rows.push_back(std::move(row));
    previous = &point;
  }
  return rows;
}

nlohmann::json no_store(const char* verb) {
  return error_reply(Exit::failure,
                     std::string(verb) + ": the store is off (store.enabled = false)");
}

}  // namespace

Answers::Answers(Agent& agent, const Clock& clock, Agent::Post post, Facts facts)
    : agent_(agent), clock_(clock), post_(std::move(post)), facts_(std::move(facts)) {}

ContainerReport Answers::report(const ContainerView& view) const {
  ContainerReport report{.container = view.info, .mode = view.mode,
                         .paused = agent_.paused(view.info), .phase = view.phase,
                         .cpu_cores = view.cpu_cores, .limits = view.sample.limits,
                         .original = view.original, .proposal = proposal_of(view),
                         .holding_cpu = view.cpu_holding, .holding_memory = view.memory_holding,
                         .throttled_usec = view.sample.cpu.throttled_usec,
                         .oom_kills = view.sample.memory_events.oom_kill};
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
    report.phases_seen.assign(engine->model().phases.size(), 0);
    for (const auto& [phase, seconds] : view.seconds_in_phase)
      if (phase >= 0) report.phases_seen.at(static_cast<std::size_t>(phase)) =
          static_cast<std::uint64_t>(seconds / engine->model().step_seconds);
  }
  return report;
}

std::vector<ContainerReport> Answers::reports() const {
  std::vector<ContainerReport> reports;
  for (const ContainerView* view : agent_.pipeline().containers()) reports.push_back(report(*view));
  return reports;
}

StatusReport Answers::status() const {
  const std::vector<ContainerReport> containers = reports();
  StatusReport status{.version = facts_.version, .mode = agent_.config().mode,
                      .policy = agent_.config().policy};
  status.uptime_seconds =
      std::chrono::duration<double>(clock_.monotonic_now() - facts_.started).count();
  status.cpu_seconds = own_cpu_seconds();
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
    status.model.origin = agent_.model().origin;
    status.model.phases = model.centroids.count;
    status.model.features = model.crbm.n_vis;
    status.model.step_seconds = model.step_seconds;
  }
  status.store.cap_bytes = agent_.config().store.cap.value;
  if (StoreThread* store = agent_.store()) {
    status.store.size_bytes = agent_.store_size_bytes();
    status.store.state = store->degraded().value_or("ok");
  } else {
    status.store.state = "off";
  }
  sum_up(status, containers);
  const Agent::Totals& totals = agent_.totals();
  status.saved_core_seconds = totals.saved_core_seconds;
  status.saved_byte_seconds = totals.saved_byte_seconds;
  for (const ContainerView* view : agent_.pipeline().containers()) {
    status.saved_core_seconds += view->saved_core_seconds;
    status.saved_byte_seconds += view->saved_byte_seconds;
  }
  status.writes_up = totals.writes_up;
  status.writes_down = totals.writes_down;
  status.trials_reverted = totals.trials_reverted;
  status.changed_anything = totals.writes_up + totals.writes_down > 0;
  status.kill_switch = agent_.kill_switch();
  status.companion_alive = facts_.companion_alive && facts_.companion_alive();
  status.standing_down = agent_.standing_down();
  status.degraded = agent_.degraded();
  return status;
}

Result<const ContainerView*> Answers::container(const Request& request) const {
  const std::vector<const ContainerView*> views = agent_.pipeline().containers();
  std::vector<const ContainerInfo*> infos;
  for (const ContainerView* view : views) infos.push_back(&view->info);
  const Result<std::size_t> index = find_container(infos, *request.text("container"));
  if (!index) return std::unexpected(index.error());
  return views[*index];
}

void Answers::answer(const Request& request, const Peer& peer, Respond respond) {
  switch (request.verb) {
    case Verb::status: return respond(ok_reply(to_json(status())));
    case Verb::list: return respond(list_reply(reports()));
    case Verb::show: {
      const auto view = container(request);
      if (!view) return respond(error_reply(view.error()));
      nlohmann::json shown = to_json(report(**view));
      shown["bursts"] = agent_.bursts(**view);
      return respond(ok_reply(std::move(shown)));
    }
    case Verb::explain: return explain(request, std::move(respond));
    case Verb::history: return history(request, std::move(respond));
    case Verb::events: return events(request, std::move(respond));
    case Verb::records: return records(request, std::move(respond));
    case Verb::table: return table(request, std::move(respond));
    case Verb::learned: return learned(request, std::move(respond));
    case Verb::fit: return respond(fit(request, peer));
    case Verb::mode: case Verb::pause: case Verb::resume: case Verb::restore: case Verb::model:
      return respond(act(request, peer));
    case Verb::config: {
      nlohmann::json rows = nlohmann::json::array();
      for (const ConfigValue& row : config_rows(agent_.config()))
        rows.push_back({{"key", row.key}, {"value", row.value}, {"origin", row.origin}});
      return respond(ok_reply({{"config", std::move(rows)}}));
    }
  }
}

void Answers::explain(const Request& request, Respond respond) {
  const auto view = container(request);
  const bool gone = !view && view.error().kind == ErrorKind::not_found;
  if (!view && (!gone || agent_.store() == nullptr)) return respond(error_reply(view.error()));
  ExplainReport explained{.now = {}, .at = request.time("at_seconds"), .gone = gone};
  if (!gone) explained.now = report(**view);
  const WallTime until = explained.at.value_or(clock_.wall_now());
  if (agent_.store() == nullptr) return respond(explain_from_memory(std::move(explained), until));
  const std::string text = *request.text("container");
  Store::Subject subject{.id = explained.now.container.id};
  for (const ContainerView* other : agent_.pipeline().containers())
    if (gone || other->info.id != subject.id) subject.others.push_back(other->info.id);
  // A refused query drops `respond`, and the client is told that there was no answer.
  (void)agent_.store()->query([explained = std::move(explained), until, text,
                               subject = std::move(subject),
                               absent = gone ? error_reply(view.error()) : nlohmann::json(),
                               respond = std::move(respond)](Store& store) mutable {
    if (explained.gone) {
      const auto last = store.last_container(text);
      if (!last) return respond(error_reply(last.error()));
      if (!*last) return respond(std::move(absent));
      subject.record = (*last)->record;
      explained.now.container = (*last)->stored.container;
    }
    subject.name = explained.now.container.name;
    subject.engine = explained.now.container.engine;
    const auto entries = store.entries(subject, until, kExplainDecisions);
    if (!entries) return respond(error_reply(entries.error()));
    for (const JournalEntry& entry : *entries) explained.decisions.push_back(entry_of(entry));
    respond(ok_reply(to_json(explained)));
  });
}

nlohmann::json Answers::explain_from_memory(ExplainReport explained, WallTime until) const {
  const CgroupId id = explained.now.container.id;
  const auto& recent = agent_.recent_decisions();
  for (auto one = recent.rbegin(); one != recent.rend(); ++one) {
    if (one->decision.container != id || one->time > until) continue;
    if (explained.decisions.size() >= kExplainDecisions) break;
    ExplainReport::Entry& entry = explained.decisions.emplace_back(entry_of(*one));
    for (const JournalOutcome& outcome : agent_.recent_outcomes())
      if (outcome.outcome.decision_id == entry.decision.decision_id) add_outcome(entry, outcome);
  }
  return ok_reply(to_json(explained));
}

void Answers::history(const Request& request, Respond respond) {
  const bool by_record = request.args.contains("record");
  const Result<const ContainerView*> view =
      by_record ? Result<const ContainerView*>(nullptr) : container(request);
  if (!view) return respond(error_reply(view.error()));
  if (agent_.store() == nullptr) return respond(no_store("history"));
  if (by_record || request.flag("full"))
    return full_history(request, by_record ? CgroupId{} : (*view)->info.id, std::move(respond));
  const WallTime until = request.time("until_seconds").value_or(clock_.wall_now());
  const WallTime from = request.time("from_seconds").value_or(until - std::chrono::minutes(10));
  const int limit = request.count("limit", 600, kMostHistoryRows);
  // A refused query drops `respond`, and the client is told that there was no answer.
  (void)agent_.store()->query([info = (*view)->info, from, until, limit,
                         respond = std::move(respond)](Store& store) {
    const auto points = store.history(info.id, from, until, limit);
    if (!points) return respond(error_reply(points.error()));
    const std::vector<HistoryRow> rows = rows_of(*points);
    respond(history_reply(info, rows));
  });
}

// A page of one record of any boot, or of a container that lives.
void Answers::full_history(const Request& request, CgroupId id, Respond respond) {
  const WallTime from = request.time("from_seconds").value_or(WallTime{});
  const WallTime until = request.time("until_seconds").value_or(clock_.wall_now());
  const int limit = request.count("limit", kHistoryPagePoints, kHistoryPagePoints);
  const std::optional<double> record = request.number("record");
  (void)agent_.store()->query([record, id, from, until, limit,
                               respond = std::move(respond)](Store& store) {
    const auto points =
        record ? store.history_of(static_cast<std::int64_t>(*record), from, until, limit)
               : store.history(id, from, until, limit);
    respond(points ? ok_reply(history_page(*points)) : error_reply(points.error()));
  });
}

void Answers::records(const Request& request, Respond respond) {
  if (agent_.store() == nullptr) return respond(no_store("records"));
  const auto after = static_cast<std::int64_t>(request.number("after").value_or(0));
  (void)agent_.store()->query([after, respond = std::move(respond)](Store& store) {
    const auto found = store.records(after, kRecordsPage);
    if (!found) return respond(error_reply(found.error()));
    std::vector<RecordEntry> entries;
    for (const StoredRecord& record : *found)
      entries.push_back({record.record, record.stored.container, record.stored.first_seen});
    respond(ok_reply(records_page(entries)));
  });
}

void Answers::table(const Request& request, Respond respond) {
  if (agent_.store() == nullptr) return respond(no_store("table"));
  const auto after = static_cast<std::int64_t>(request.number("after").value_or(0));
  (void)agent_.store()->query([name = *request.text("name"), after,
                               respond = std::move(respond)](Store& store) {
    const auto page = store.table_page(name, after);
    respond(page ? ok_reply(table_reply(*page)) : error_reply(page.error()));
  });
}

void Answers::learned(const Request& request, Respond respond) {
  const auto reply = [policy = agent_.config().policy](const std::string& name,
                                                       nlohmann::json known) {
    return ok_reply({{"name", escape_name(name)}, {"policy", policy},
                     {"learned", std::move(known)}});
  };
  if (const auto image = request.text("image")) {
    const std::string name = unescape_name(*image);
    // A refused query drops `respond`, and the client is told that there was no answer.
    (void)agent_.ask_learned(name, [reply, name, respond = std::move(respond)](
                                       nlohmann::json known) {
      if (known.is_null())
        return respond(error_reply(Exit::no_container, "nothing was learned of an image '" +
                                                           escape_name(name) + "'"));
      respond(reply(name, std::move(known)));
    });
    return;
  }
  const auto view = container(request);
  if (!view) return respond(error_reply(view.error()));
  respond(reply((*view)->info.name, agent_.learned(**view)));
}

const std::vector<KnownContainer>& Answers::known(std::chrono::seconds duration) {
  const auto [found, added] = known_.try_emplace(duration);
  if (!added) return found->second;
  for (const ContainerView* view : agent_.pipeline().containers())
    found->second.push_back({.name = view->info.name,
                             .forecast = agent_.pipeline().forecast(view->info.id, duration),
                             .original = view->original,
                             .highest_cpu_cores = view->highest_cpu_cores,
                             .highest_memory_bytes = view->highest_memory_bytes});
  return found->second;
}

// Nobody can use up what others may ask.
nlohmann::json Answers::fit(const Request& request, const Peer& peer) {
  const FitQuestion question{
      .cpu_cores = *request.number("cpus"),
      .memory_bytes = *request.number("memory_mib") * static_cast<double>(kMiB),
      .duration = std::chrono::seconds(static_cast<std::int64_t>(*request.number("seconds"))),
      .risk = request.number("risk").value_or(FitQuestion{}.risk)};
  if (question.duration > kLongestFit || question.risk > 1)
    return error_reply(Exit::usage, "fit: at most 30 days, and a risk of at most 1");
  const MonotonicTime tick = agent_.last_tick();
  if (std::exchange(fits_of_, tick) != tick || fits_.size() >= kMostFitsKept) {
    fits_.clear();
    known_.clear();
  }
  const std::string words = request.args.dump();
  if (const auto same = fits_.find(words); same != fits_.end()) return same->second;
  const std::size_t containers = std::max<std::size_t>(agent_.pipeline().containers().size(), 1);
  const std::size_t most = std::clamp<std::size_t>(kMostFitContainers / containers, 1, kMostFits);
  if (const MonotonicTime now = clock_.monotonic_now();
      now - asked_since_ >= std::chrono::seconds(1)) {
    asked_.clear();
    asked_since_ = now;
  }
  std::size_t& asked = asked_[peer.uid];
  if (asked >= most)
    return error_reply(Exit::failure, "fit: user " + std::to_string(peer.uid) +
                                          " was answered " + std::to_string(most) +
                                          " questions within a second; ask again in a second");
  asked += 1;
  const FitHost host{.capacity = agent_.host(),
                     .outside_cpu_cores = agent_.outside().cpu_cores(1 - question.risk),
                     .outside_memory_bytes = agent_.outside().memory_bytes(1 - question.risk)};
  return fits_[words] =
             to_json(answer_fit(question, host, [this](std::chrono::seconds duration) {
               return known(duration);
             }));
}

// From memory: the newest decisions and outcomes in the order of their time.
void Answers::events(const Request& request, Respond respond) {
  std::optional<CgroupId> only;
  if (request.text("container")) {
    const auto view = container(request);
    if (!view) return respond(error_reply(view.error()));
    only = (*view)->info.id;
  }
  const WallTime from = request.time("from_seconds").value_or(WallTime{});
  const WallTime until = request.time("until_seconds").value_or(WallTime::max());
  const auto after = static_cast<std::uint64_t>(request.number("after_id").value_or(0));
  std::vector<EventReport> events;
  const auto name = [&](CgroupId id) {
    const ContainerView* view = agent_.pipeline().find(id);
    return view != nullptr ? view->info.name : std::string("(gone)");
  };
  const auto wanted = [&](CgroupId id, WallTime time, std::uint64_t decision_id) {
    return (!only || *only == id) && time >= from && time <= until && decision_id > after;
  };
  for (const auto& [time, decision, writer] : agent_.recent_decisions())
    if (wanted(decision.container, time, decision.decision_id))
      events.push_back({name(decision.container), time, decision, std::nullopt, writer});
  for (const auto& [time, outcome] : agent_.recent_outcomes())
    if (wanted(outcome.container, time, outcome.decision_id))
      events.push_back({name(outcome.container), time, std::nullopt, outcome});
  std::stable_sort(events.begin(), events.end(),
                   [](const EventReport& a, const EventReport& b) { return a.time < b.time; });
  const auto limit = static_cast<std::size_t>(request.count("limit", kMostEvents, kMostEvents));
  if (events.size() > limit)
    events.erase(events.begin(), events.end() - static_cast<std::ptrdiff_t>(limit));
  respond(events_reply(events));
}

nlohmann::json Answers::act(const Request& request, const Peer&) {
  if (request.verb == Verb::mode) return set_mode(request);
  if (request.verb == Verb::restore) return restore(request);
  if (request.verb == Verb::model) {
    const Result<std::string> taken = facts_.take_model();
    if (!taken) return error_reply(taken.error());
    return ok_reply(to_json(ActionReport{.done = *taken, .undo = {}, .changes = {},
                                         .failures = {}}));
  }
  const auto view = container(request);
  if (!view) return error_reply(view.error());
  const bool pause = request.verb == Verb::pause;
  const std::string name = escape_name((*view)->info.name);
  auto restored = agent_.set_paused((*view)->info.id, pause);
  return ok_reply(to_json(ActionReport{
      .done = pause ? name + " is left alone until it is resumed"
                    : name + " is managed again as the configuration says",
      .undo = shell_command({"cgphase", pause ? "resume" : "pause", name}),
      .failures = std::move(restored.failures)}));
}

nlohmann::json Answers::set_mode(const Request& request) {
  const Mode mode = *parse_mode(*request.text("mode"));
  if (mode != Mode::observe && !agent_.may_write())
    return error_reply(Exit::invalid, "mode: this host cannot be written to; `cgphase doctor` says "
                                      "what is missing");
  if (!request.text("container")) {
    const Mode before = agent_.config().mode;
    auto restored = agent_.set_mode(mode);
    return ok_reply(to_json(ActionReport{
        .done = std::string("mode is ") + to_string(mode) +
                (mode == Mode::enforce ? " for the containers that the configuration names" : ""),
        .undo = shell_command({"cgphase", "mode", to_string(before)}),
        .failures = std::move(restored.failures)}));
  }
  const auto view = container(request);
  if (!view) return error_reply(view.error());
  if (const std::string& owner = agent_.hands_off((*view)->info);
      mode == Mode::enforce && !owner.empty())
    return error_reply(Exit::failure, "mode: " + escape_name((*view)->info.name) +
                                          " is never written to: " + owner);
  const Mode before = (*view)->mode;
  const std::string name = escape_name((*view)->info.name);
  auto restored = agent_.set_mode((*view)->info.id, mode);
  return ok_reply(to_json(ActionReport{
      .done = "mode of " + name + " is " + to_string(mode) +
              (agent_.paused((*view)->info) ? " as soon as it is resumed" : ""),
      .undo = shell_command({"cgphase", "mode", to_string(before), name}),
      .failures = std::move(restored.failures)}));
}

nlohmann::json Answers::restore(const Request& request) {
  ActionReport action;
  LimitWriter::RestoreReport restored;
  if (request.flag("all")) {
    restored = agent_.set_mode(Mode::observe);
    const auto rest = agent_.restore_all();
    restored.restored += rest.restored;
    restored.failures = rest.failures;  // the second attempt tells what really failed
    action.done = restored.failures.empty() ? "every limit is as it was; mode is observe"
                                            : "mode is observe; not every limit could be restored";
    action.undo = shell_command({"cgphase", "mode", to_string(Mode::enforce)});
  } else {
    const auto view = container(request);
    if (!view) return error_reply(view.error());
    const std::string name = escape_name((*view)->info.name);
    const CgroupId id = (*view)->info.id;
    restored = agent_.set_paused(id, true);
    const auto rest = agent_.restore(id);
    restored.restored += rest.restored;
    restored.failures = rest.failures;
    action.done = restored.failures.empty() ? name + " has its original limits and is left alone"
                                            : name + " is left alone, but could not be restored";
    action.undo = shell_command({"cgphase", "resume", name});
  }
  action.changes.push_back(std::to_string(restored.restored) + " knobs written back, " +
                           std::to_string(restored.foreign) + " left as somebody else set them, " +
                           std::to_string(restored.gone) + " gone with their cgroups");
  action.failures = std::move(restored.failures);
  return ok_reply(to_json(action));
}

}  // namespace cgphase
