#include "protocol/report.h"

#include <doctest/doctest.h>

#include "collectors/cgroup_tree.h"
#include "collectors/node_sampler.h"
#include "protocol/protocol.h"
#include "tests/cli/reports.h"

using namespace cgphase;
using nlohmann::json;
using std::chrono::seconds;

namespace {

Limits limits(std::uint64_t quota_usec, std::uint64_t bytes) {
  Limits out;
  out.cpu_max = CpuMax{Microseconds{quota_usec}, Microseconds{100'000}};
  out.memory_max = MemoryLimit{Bytes{bytes}};
  return out;
}

ContainerReport report_of(Mode mode, const Limits& original, const Limits& now) {
  ContainerReport report;
  report.container.name = "web-1";
  report.mode = mode;
  report.original = original;
  report.limits = now;
  set_savings(report, {});
  return report;
}

const std::string kHostile = std::string("\x1b[31m<script>\"\n\xff") + "\u202e";

// A report without absent values.
ContainerReport full_report() {
  ContainerReport report = test::web();
  report.next.assign(kMostNext, {.phase = 31, .probability = 1.0 / 3, .in_seconds = 86'400});
  report.container.engine_id = std::string(64, 'a');
  report.container.path = "/system.slice/docker-" + report.container.engine_id + ".scope";
  return report;
}

}  // namespace

TEST_CASE("a saving counts from the owner's memory.high if that is below memory.max") {
  Limits original, lowered;
  original.memory_max = lowered.memory_max = MemoryLimit{Bytes{1000 << 20}};
  original.memory_high = MemoryLimit{Bytes{900 << 20}};
  lowered.memory_high = MemoryLimit{Bytes{600 << 20}};
  CHECK(saving(original, lowered).memory_bytes == std::uint64_t{300} << 20);
  CHECK(saving(original, original).memory_bytes == 0);
}

TEST_CASE("a list of the most containers that the daemon reads fits into a reply") {
  const auto list_bytes = [](const ContainerReport& report, std::size_t count) {
    return encode_reply_frame(to_json(ListReply{std::vector(count, report)})).size();
  };
  // All of them at once would be a slow test.
  const auto most_bytes = [&](const ContainerReport& report) {
    const std::size_t one = list_bytes(report, 1), two = list_bytes(report, 2);
    return one + (kMaxContainers - 1) * (two - one);
  };
  ContainerReport report = full_report();
  report.last_wake.reset();
  CHECK(most_bytes(report) < kReplyLimitBytes);
  // The longest path: a backslash is two where it is printed, and four in JSON.
  report.container.path.assign(kMaxCgroupPathBytes / 2, '\\');
  CHECK(most_bytes(report) < kReplyLimitBytes);
}

TEST_CASE("a limit of max and a missing file are null, and differ in the raw knobs") {
  Limits max;
  max.cpu_max = CpuMax{};
  max.memory_max = MemoryLimit{};
  CHECK(to_json(max) == json{{"cpu_cores", nullptr},
                             {"memory_bytes", nullptr},
                             {"cpu_max", {{"quota_usec", nullptr}, {"period_usec", 100000}}},
                             {"memory_max_bytes", nullptr}});
  CHECK(to_json(Limits{}) == json{{"cpu_cores", nullptr}, {"memory_bytes", nullptr}});
}

TEST_CASE("limits are in cores and bytes") {
  const json out = to_json(limits(150'000, 4096));
  CHECK(out["cpu_cores"] == 1.5);
  CHECK(out["memory_bytes"] == 4096);
}

TEST_CASE("phases have letters, also beyond Z") {
  CHECK(phase_letter(0) == "A");
  CHECK(phase_letter(25) == "Z");
  CHECK(phase_letter(26) == "AA");
  CHECK(phase_letter(701) == "ZZ");
  CHECK(phase_letter(702) == "AAA");
  CHECK(phase_letter(-1) == "-");
}

TEST_CASE("an unknown phase has a mark, and its nearest centroid as index") {
  const Phase phase{.state = PhaseState::unknown, .index = 3, .distance = 9, .margin = 1};
  CHECK(to_json(phase) == json{{"state", "unknown"},
                               {"index", 3},
                               {"letter", "?"},
                               {"distance", 9.0},
                               {"margin", 1.0},
                               {"confidence", 0.0}});
}

TEST_CASE("without history there is no index") {
  CHECK(to_json(Phase{})["index"] == nullptr);
  CHECK(to_json(Phase{})["letter"] == "-");
}

TEST_CASE("confidence is one on a centroid and zero halfway between two") {
  const auto confidence = [](double distance, double margin) {
    return phase_confidence({PhaseState::known, 0, distance, margin});
  };
  CHECK(confidence(0, 4) == 1);
  CHECK(confidence(4, 0) == 0);
  CHECK(confidence(1, 2) == 0.5);
  CHECK(confidence(0, 0) == 0);
}

TEST_CASE("saving is original less limit in force, never negative") {
  const Saving saved = saving(limits(200'000, 8192), limits(50'000, 4096));
  CHECK(saved.cpu_cores == 1.5);
  CHECK(saved.memory_bytes == 4096);
  CHECK(saving(limits(50'000, 4096), limits(200'000, 8192)).memory_bytes == 0);
  CHECK(saving(limits(50'000, 4096), limits(200'000, 8192)).cpu_cores == 0);
}

TEST_CASE("a container without a limit never counts as saved") {
  CHECK(saving(Limits{}, limits(50'000, 4096)).cpu_cores == 0);
  CHECK(saving(Limits{}, limits(50'000, 4096)).memory_bytes == 0);
  CHECK(saving(limits(50'000, 4096), Limits{}).memory_bytes == 0);
}

TEST_CASE("a share that the slice never granted does not count as saved") {
  const AncestorLimits ancestor_limits{.cpu_cores = 1, .memory_bytes = 5000};
  const Saving saved = saving(limits(200'000, 8192), limits(50'000, 4096), ancestor_limits);
  CHECK(saved.cpu_cores == 0.5);
  CHECK(saved.memory_bytes == 904);
  CHECK(saving(limits(200'000, 8192), limits(150'000, 6000), ancestor_limits).cpu_cores == 0);
  CHECK(saving(limits(200'000, 8192), limits(150'000, 6000), ancestor_limits).memory_bytes == 0);
}

TEST_CASE("status sums its containers") {
  StatusReport status;
  status.containers_observe = 99;
  const std::vector<ContainerReport> reports = {
      report_of(Mode::observe, limits(100'000, 100), limits(100'000, 100)),
      report_of(Mode::enforce, limits(200'000, 300), limits(100'000, 100)),
      report_of(Mode::enforce, limits(200'000, 300), limits(150'000, 200)),
  };
  sum_up(status, reports);
  CHECK(status.containers_observe == 1);
  CHECK(status.containers_enforce == 2);
  CHECK(status.saved_now.cpu_cores == 1.5);
  CHECK(status.saved_now.memory_bytes == 300);
}

TEST_CASE("status counts a saving once if one container contains another") {
  ContainerReport inner = report_of(Mode::enforce, limits(200'000, 300), limits(100'000, 100));
  const ContainerReport outer = inner;
  inner.cpu_limit_around = true;
  StatusReport status;
  sum_up(status, std::vector{outer, inner});
  CHECK(status.containers_enforce == 2);
  CHECK(status.saved_now.cpu_cores == 1);
  CHECK(status.saved_now.memory_bytes == 400);  // the outer one has no limit of it
  inner.memory_limit_around = true;
  sum_up(status, std::vector{outer, inner});
  CHECK(status.saved_now.memory_bytes == 200);
}

TEST_CASE("a report has the most probable next phases, and nothing but phases") {
  Forecast forecast;
  const auto add = [&](int phase) {
    forecast.next.push_back({.phase = phase, .probability = 0.2, .in = seconds(40)});
  };
  add(5);
  add(-1);
  for (std::size_t i = 1; i < kMostNext; ++i) add(static_cast<int>(i));
  CHECK(next_phases(forecast).size() == kMostNext);
  CHECK(next_phases(forecast)[0].phase == 5);
  CHECK(next_phases(forecast)[1].phase == 1);
  add(9);
  CHECK(next_phases(forecast).size() == kMostNext);
  CHECK(next_phases(forecast).back().phase == static_cast<int>(kMostNext) - 1);
}

TEST_CASE("the time of a next phase is null if it is unknown") {
  ContainerReport report;
  report.next = {{.phase = 1, .probability = 0.5, .in_seconds = 40}};
  CHECK(to_json(report)["next"][0] ==
        json{{"phase", 1}, {"letter", "B"}, {"probability", 0.5}, {"in_seconds", 40}});
  Forecast forecast;
  forecast.next = {{.phase = 1, .probability = 0.5, .in = seconds(0)}};
  report.next = next_phases(forecast);
  CHECK(to_json(report)["next"][0]["in_seconds"].is_null());
}

TEST_CASE("a container's report has null for each value that was not measured") {
  const json out = to_json(ContainerReport{});
  for (const char* path :
       {"/usage/cpu_cores", "/usage/memory_need_bytes", "/seconds_in_phase", "/recommendation",
        "/recommended_saving", "/throttled_usec", "/oom_kills", "/memory_delay_usec",
        "/gpu/utilisation_ratio", "/gpu/memory_bytes", "/run_queue/waits", "/run_queue/histogram",
        "/network/receive_bytes", "/network/tcp_retransmits", "/block/requests", "/blocked_by/cpu",
        "/limits/cpu_cores", "/original/memory_bytes"})
    CHECK_MESSAGE(out.at(json::json_pointer(path)).is_null(), path);
  for (const char* key : {"asleep_bytes", "last_wake"}) CHECK_FALSE(out.contains(key));
}

TEST_CASE("a phase that was seen has its letter and steps") {
  ContainerReport report;
  report.phases_seen = {{1, 12}};
  CHECK(to_json(report)["phases_seen"] ==
        json::array({{{"phase", 1}, {"letter", "B"}, {"steps", 12}}}));
}

TEST_CASE("a report has the terms of a container that has any") {
  ContainerReport report;
  CHECK(to_json(report)["terms"].is_null());
  report.terms = Terms{.service_class = ServiceClass::batch, .cpu_min = Cores{0.5},
                       .memory_max = Bytes{kGiB}, .freeze_longest = std::chrono::seconds(30)};
  const json out = to_json(report);
  CHECK(out["terms"] ==
        json{{"class", "batch"}, {"cpu_min_cores", 0.5}, {"memory_min_bytes", nullptr},
             {"cpu_max_cores", nullptr}, {"memory_max_bytes", kGiB}, {"sleep", nullptr},
             {"freeze_seconds", 30}});
  CHECK(read_reply<ContainerReport>(out)->terms == report.terms);
}

TEST_CASE("a reply that is read and written again is the same") {
  const auto same = [](const json& body, const auto& reply) {
    REQUIRE_MESSAGE(reply, reply.error().text);
    CHECK(to_json(*reply).dump() == body.dump());
  };
  const json shown = to_json(full_report());
  const json list = to_json(ListReply{{test::web(), test::fresh()}});
  const json status = to_json(test::status()), explained = to_json(test::explain());
  const json action = to_json(ActionReport{"a", "b", {"c"}, {"d"}});
  same(shown, read_reply<ContainerReport>(shown));
  same(list, read_reply<ListReply>(list));
  same(status, read_reply<StatusReport>(status));
  same(explained, read_reply<ExplainReply>(explained));
  same(action, read_reply<ActionReport>(action));
  // A time with microseconds: paging asks for what comes after the last one.
  const WallTime time(std::chrono::microseconds(1'773'585'000'123'457));
  HistoryReply run{.container = test::web().container, .record = 7, .first_seen = time};
  HistoryReply history = run;
  history.points = {{.time = time, .phase = test::web().phase, .cpu_cores = 0.5,
                     .memory_need_bytes = 4096, .memory_current_bytes = {},
                     .limits = test::web().limits}};
  const json by_record = to_json(history);
  history.gone = true;
  history.earlier = {run};
  const json by_name = to_json(history);
  same(by_record, read_reply<HistoryReply>(by_record));
  same(by_name, read_reply<HistoryReply>(by_name));
  CHECK_FALSE(by_record.contains("gone"));
  CHECK(by_name["earlier"][0].contains("record"));
  CHECK_FALSE(by_name["earlier"][0].contains("points"));
  const json events = to_json(EventsReply{{by_record}, "1-2-3"}), last = to_json(EventsReply{});
  same(events, read_reply<EventsReply>(events));
  same(last, read_reply<EventsReply>(last));
  CHECK(last["earlier"].is_null());
}

TEST_CASE("an unknown word leaves the default, or is absent, and the rest of a reply is read") {
  json body = to_json(test::status());
  body["mode"] = "turbo";
  const auto status = read_reply<StatusReport>(body);
  REQUIRE(status);
  CHECK(status->mode == Mode::observe);
  CHECK(status->version == test::status().version);
  body = to_json(test::web());
  body["engine"] = body["phase"]["state"] = body["blocked_by"]["cpu"] = "made later";
  const auto shown = read_reply<ContainerReport>(body);
  REQUIRE(shown);
  CHECK(shown->container.engine == ContainerInfo{}.engine);
  CHECK(shown->phase.state == PhaseState::not_enough_history);
  CHECK_FALSE(shown->cpu_blocked_by);
  CHECK(shown->memory_blocked_by == Verdict::trial_running);
}

TEST_CASE("a reply with an unknown type is refused, and the key is named") {
  json body = to_json(test::status());
  body["mode"] = 7;
  CHECK(read_reply<StatusReport>(body).error().text ==
        "unknown reply: 'mode' has an unknown value; are command and daemon of the same version?");
  body["mode"] = "observe";
  body["store"]["size_bytes"] = -1;
  CHECK(read_reply<StatusReport>(body).error().text.starts_with("unknown reply: 'size_bytes'"));
  CHECK(read_reply<StatusReport>(json::array()).error().kind == ErrorKind::invalid);
}

TEST_CASE("a reply without a key has the default, and an unknown key is ignored") {
  const auto read = read_reply<StatusReport>({{"version", "1"}, {"new", 1}, {"mode", nullptr}});
  REQUIRE(read);
  CHECK(read->version == "1");
  CHECK(read->mode == Mode::observe);
}

TEST_CASE("a decision carries the noun's names") {
  Decision decision;
  decision.decision_id = 5;
  decision.container = {1, 2};
  decision.verdict = Verdict::cool_down;
  const json out = to_json(decision, WallTime(std::chrono::milliseconds(1500)));
  CHECK(out["decision_id"] == 5);
  CHECK(out["time"] == 1.5);
  CHECK(out["container"] == json{{"device", 1}, {"inode", 2}});
  CHECK(out["reason"] == "phase_statistics");
  CHECK(out["verdict"] == "cool_down");
  for (const char* key : {"resource", "direction", "old_limits", "new_limits", "phase", "usage",
                          "statistic", "sample_count"})
    CHECK_MESSAGE(out.contains(key), key);
}

TEST_CASE("explain begins with the sentence of the newest decision") {
  ExplainReport report;
  report.now.container.name = "web-1";
  report.now.mode = Mode::enforce;
  report.decisions.resize(2);
  report.decisions[0].decision.decision.decision_id = 2;
  report.decisions[0].end = JournalOutcome{};
  report.decisions[1].decision.decision.decision_id = 1;
  const json out = to_json(report);
  CHECK(out["sentence"] == out["decisions"][0]["sentence"]);
  CHECK(out["decisions"][0]["outcome"]["kind"] == "trial_passed");
  CHECK(out["decisions"][1]["outcome"] == nullptr);
  CHECK(out["at"] == nullptr);
}

TEST_CASE("explain has the facts of a decision, the value read back, and whether it is gone") {
  ExplainReport report;
  report.now.container.name = "web-1";
  report.gone = true;
  CHECK(to_json(report)["sentence"] ==
        "web-1: gone, and no decision about it is kept from that time.");
  Decision decision;
  decision.evidence[Fact::memory_need_bytes] = 7;
  const Outcome written{.kind = OutcomeKind::written, .detail = "memory.max reads 8192"};
  report.decisions = {{.decision = {.decision = decision}, .written = JournalOutcome{{}, written}}};
  const json live = to_json(report);
  CHECK(live["sentence"].get<std::string>().ends_with(" The container is gone."));
  report.stopped = true;
  const json stored = to_json(report);
  CHECK(stored["gone"] == true);
  CHECK(stored["sentence"].get<std::string>().ends_with(", its trial is not over."));
  report.gone = report.stopped = false;
  const json out = to_json(report);
  CHECK(out["gone"] == false);
  const json& one = out["decisions"][0];
  CHECK(one["decision"]["facts"]["memory_need_bytes"] == 7);
  CHECK(one["decision"]["facts"]["cpu_cores"] == nullptr);
  CHECK(one["decision"]["facts"].size() == kFactCount);
  CHECK(one["written"]["detail"] == "memory.max reads 8192");
  CHECK(one["outcome"] == nullptr);
  CHECK(one["sentence"].get<std::string>().ends_with(
      "; it was written (memory.max reads 8192), its trial is not over."));
}

TEST_CASE("explain and events name the other writer, or null if it is unknown") {
  const std::string writer = "runc (pid 7) wrote cpu.max max";
  Decision decision;
  decision.verdict = Verdict::standing_down;
  ExplainReport report;
  report.now.mode = Mode::enforce;
  report.decisions = {{.decision = {.decision = decision, .writer = writer}},
                      {.decision = {.decision = decision}}};
  const json out = to_json(report);
  CHECK(out["decisions"][0]["writer"] == writer);
  CHECK(out["sentence"].get<std::string>().ends_with(": " + writer + "."));
  CHECK(out["decisions"][1]["writer"] == nullptr);
  const EventReport event{.name = "web-1", .decision = decision, .writer = writer};
  CHECK(to_json(event)["writer"] == writer);
  CHECK(to_json(event)["sentence"].get<std::string>().ends_with(": " + writer + "."));
  CHECK(to_json(EventReport{.decision = decision})["writer"] == nullptr);
}

TEST_CASE("explain adds the present state if it differs from the decision") {
  ExplainReport report;
  report.now.mode = Mode::enforce;
  report.now.cpu_blocked_by = Verdict::cool_down;
  report.now.memory_blocked_by = Verdict::memory_growing;
  Decision decision;
  decision.verdict = Verdict::cool_down;
  report.decisions = {{.decision = {.decision = decision}}};
  const auto now = [&] {
    const std::string sentence = to_json(report)["sentence"];
    const std::size_t clause = sentence.find(" Now: ");
    return clause == std::string::npos ? "" : sentence.substr(clause + 1);
  };
  CHECK(now() == "");
  report.now.cpu_blocked_by = Verdict::too_small;
  CHECK(now() == "Now: the difference is not worth a write.");
  report.now.cpu_blocked_by = Verdict::allowed;
  CHECK(now() == "Now: no safety rule blocks it.");
  report.decisions[0].decision.decision.verdict = Verdict::allowed;
  report.now.cpu_blocked_by = Verdict::trial_running;
  CHECK(now() == "");
  report.now.mode = Mode::observe;
  CHECK(now() == "Now: the mode is observe.");
  report.now.paused = true;
  CHECK(now() == "Now: it is paused.");
  report.unwritable = "the companion ended";
  CHECK(now() == "Now: nothing is written, for the companion ended.");
  report.kill_switch = true;
  CHECK(now() == "Now: nothing is written while the kill switch is there.");
  report.now.container.hands_off = "managed by Slurm";
  CHECK(now() == "Now: it is only observed, managed by Slurm.");
  report.at = WallTime{};
  CHECK(now() == "");
  report.at.reset();
  report.gone = true;
  CHECK(now() == "");
}

TEST_CASE("explain leaves out the oldest decisions if a reply has no room for them") {
  ExplainReport report;
  const Outcome wordy{.kind = OutcomeKind::written, .detail = std::string(1024, '\n')};
  for (std::uint64_t id = 20; id > 0; --id) {
    Decision decision;
    decision.decision_id = id;
    report.decisions.push_back({.decision = {.decision = decision,
                                             .writer = std::string(1024, '\n')},
                                .written = JournalOutcome{{}, wordy},
                                .end = JournalOutcome{{}, wordy}});
  }
  const json out = to_json(report);
  CHECK(out.dump().size() < 60 * 1024);
  REQUIRE(out["decisions"].size() >= 1);
  CHECK(out["decisions"].size() < 20);
  CHECK(out["decisions"][0]["decision"]["decision_id"] == 20);
}

TEST_CASE("explain without a decision says why there is none") {
  ExplainReport report;
  report.now.container.name = "web-1";
  const std::string sentence = to_json(report)["sentence"];
  CHECK(sentence.find("no decision yet") != std::string::npos);
  report.unwritable = "the companion ended";
  CHECK(to_json(report)["sentence"] ==
        sentence + " Now: nothing is written, for the companion ended.");
}

TEST_CASE("events are decisions and outcomes with a sentence each") {
  std::vector<EventReport> events(2);
  events[0].decision = Decision{};
  events[1].outcome = Outcome{};
  const json out = test::events_reply(events);
  CHECK(out["events"][0]["event"] == "decision");
  CHECK(out["events"][1]["event"] == "outcome");
  CHECK(out["events"][1].contains("sentence"));
}

TEST_CASE("an undo command is quoted for the shell") {
  CHECK(shell_command({"cgphase", "mode", "observe", "web-1"}) == "cgphase mode observe web-1");
  CHECK(shell_command({"cgphase", "resume", "a b'c"}) == "cgphase resume 'a b'\\''c'");
  CHECK(shell_command({"x", ""}) == "x ''");
  CHECK(shell_command({"x", "a\\x1b$(rm)"}) == "x 'a\\x1b$(rm)'");
}

TEST_CASE("every reply carries the schema") {
  CHECK(to_json(ListReply{})["schema"] == 2);
  CHECK(to_json(StatusReport{})["schema"] == 2);
  CHECK(to_json(ExplainReport{})["schema"] == 2);
  CHECK(test::events_reply({})["schema"] == 2);
  CHECK(test::history_reply({}, {})["schema"] == 2);
  CHECK(to_json(ActionReport{})["schema"] == 2);
}

// rule: SEC-03
TEST_CASE("hostile names leave as printable UTF-8 in every report") {
  ContainerReport container;
  container.container.name = container.container.path = container.container.image = kHostile;
  container.container.engine_id = container.container.hands_off = kHostile;
  StatusReport status;
  status.degraded = {kHostile};
  status.model.path = status.store.state = status.store.quarantined = kHostile;
  status.sources = {{"PSI", false, kHostile}};
  ExplainReport explain{.now = container, .at = {}, .decisions = {}, .unwritable = kHostile};
  Decision held;
  held.verdict = Verdict::standing_down;
  explain.decisions.push_back({.decision = {.decision = held, .writer = kHostile}});
  EventReport event{.name = kHostile, .time = {}, .decision = held, .outcome = {},
                    .writer = kHostile};
  const ActionReport action{kHostile, kHostile, {kHostile}, {kHostile}};
  for (const json& out :
       {to_json(ListReply{{container}}), to_json(status), to_json(explain),
        test::events_reply(std::vector{event}), test::history_reply(container.container, {}),
        to_json(action)}) {
    const std::string text = out.dump();  // throws on malformed UTF-8
    CHECK(text.find('\x1b') == std::string::npos);
    CHECK(text.find("\\u001b") == std::string::npos);
    CHECK(text.find("\u202e") == std::string::npos);
  }
}
