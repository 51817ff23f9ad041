// Reports as the daemon sends them, for tests of the rendering.
#pragma once

#include <string>
#include <vector>

#include "protocol/report.h"

namespace cgphase::test {

inline Limits limits_of(double cores, double bytes) {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{static_cast<std::uint64_t>(cores * 100'000)}, {100'000}};
  limits.memory_max = MemoryLimit{Bytes{static_cast<std::uint64_t>(bytes)}};
  return limits;
}

inline constexpr double kMiBs = 1024.0 * 1024.0;

inline ContainerReport web() {
  ContainerReport report;
  report.container = {.id = {41, 1201},
                      .path = "/system.slice/docker-4f2a9bc01d22.scope",
                      .engine = Engine::docker,
                      .engine_id = "4f2a9bc01d22e0f14f2a9bc01d22e0f1",
                      .name = "web-1",
                      .image = "shop/web:7",
                      .labels = {},
                      .systemd_unit = true,
                      .hands_off = ""};
  report.mode = Mode::enforce;
  report.phase = {.state = PhaseState::known, .index = 1, .distance = 0.5, .margin = 9};
  report.seconds_in_phase = 125;
  report.cpu_cores = 0.25;
  report.memory_need_bytes = static_cast<std::uint64_t>(900 * kMiBs);
  report.memory_current_bytes = static_cast<std::uint64_t>(1000 * kMiBs);
  report.limits = limits_of(0.6, 1228.8 * kMiBs);
  report.original = limits_of(2, 2048 * kMiBs);
  report.recommendation = limits_of(0.5, 1126.4 * kMiBs);
  report.next = {{.phase = 2, .probability = 0.71, .in_seconds = 40}};
  report.cpu_blocked_by = Verdict::too_small;
  report.memory_blocked_by = Verdict::trial_running;
  report.throttled_usec = 1'500'000;
  report.oom_kills = 0;
  report.memory_delay_usec = 40'000;
  report.asleep_bytes = 3 * kMiB;
  report.last_wake = WakeReport{.time = WallTime(std::chrono::seconds(1'773'585'000)),
                                .asleep_bytes = 9 * kMiB, .waited_usec = 30'000};
  report.phases_seen = {{0, 30}, {1, 142}};
  report.run_queue = {2'500'000, 1200, 3000, 1100, 90};
  report.run_queue_histogram = RunQueueHistogram{900, 299};
  report.run_queue_histogram->back() = 1;
  report.network = {3 * kMiB, 2100, 5 * kMiB, 3900, 7};
  report.block = {64 * kMiB, 256, 512'000};
  report.gpu = {0.85, 0.5, Bytes{12 * kGiB}};
  report.gpu_ids = {"GPU-8f1e9a3c-0b52-4c1e-a7d3-5d2f6e9b1c04", "0000:03:00.0"};
  set_savings(report, {});
  return report;
}

// A container without measurements and limits.
inline ContainerReport fresh() {
  ContainerReport report;
  report.container.name = "fresh";
  report.container.path = "/fresh";
  return report;
}

inline const std::string kHostileName =
    std::string("\x1b[31m\x1b]0;x\x07<b>\"\r\n\xff") + "\u202e";

inline ContainerReport hostile() {
  ContainerReport report = fresh();
  report.container.name = report.container.path = report.container.image = kHostileName;
  report.container.engine_id = report.container.hands_off = kHostileName;
  report.gpu_ids = {kHostileName};
  return report;
}

inline StatusReport status() {
  StatusReport report;
  report.version = "0.1.0";
  report.mode = Mode::enforce;
  report.policy = "phase";
  report.uptime_seconds = 11'520;
  report.started = WallTime(std::chrono::seconds(1'773'573'480));
  report.cpu_seconds = 12.5;
  report.overhead_cpu_cores = 0.0011;
  report.rss_bytes = 24 * kMiB;
  report.sources = {{"cgroup v2", true, "/sys/fs/cgroup"}, {"eBPF", false, "no BTF"}};
  report.model = {.path = "/usr/share/cgphase/model.json",
                  .provenance = "",
                  .phases = 5,
                  .features = 6,
                  .step_seconds = 5};
  report.gpus = {{"GPU-8f1e9a3c", "NVIDIA H200", {0.9, 0.5, Bytes{70 * kGiB}}, 140 * kGiB},
                 {"0000:03:00.0", "", {}, std::nullopt}};
  report.store = {.size_bytes = 12 * kMiB, .cap_bytes = 256 * kMiB, .state = "ok"};
  report.saved_core_seconds = 4320;
  report.saved_byte_seconds = 3.4 * 3600 * 0x1p30;
  report.writes_up = 3;
  report.writes_down = 12;
  report.trials_reverted = 1;
  report.changed_anything = true;
  report.companion_alive = true;
  const std::vector<ContainerReport> containers = {web(), fresh()};
  sum_up(report, containers);
  return report;
}

inline ExplainReport explain() {
  ExplainReport report;
  report.now = web();
  Decision decision;
  decision.decision_id = 17;
  decision.resource = Resource::memory;
  decision.old_limits = limits_of(2, 2048 * kMiBs);
  decision.new_limits = limits_of(2, 1536 * kMiBs);
  decision.phase = report.now.phase;
  decision.usage = 900 * kMiBs;
  decision.statistic = 1024 * kMiBs;
  decision.sample_count = 142;
  const WallTime time{std::chrono::seconds(1'773'585'000)};
  const Outcome outcome{.decision_id = 17,
                        .time = {},
                        .container = {},
                        .kind = OutcomeKind::trial_passed,
                        .detail = "refaults 2 -> 2 per s"};
  decision.evidence[Fact::memory_peak_need_bytes] = 950 * kMiBs;
  decision.evidence[Fact::memory_current_bytes] = 1100 * kMiBs;
  decision.evidence[Fact::memory_growth_bytes_per_sec] = 0;
  decision.evidence[Fact::cpu_some_avg10] = 0.012;
  decision.evidence[Fact::memory_some_avg10] = 0;
  decision.evidence[Fact::refaults_per_sec] = 2;
  decision.evidence[Fact::floor] = 1156 * kMiBs;
  decision.evidence[Fact::earlier_runs] = 3;
  const Outcome written{.decision_id = 17,
                        .time = {},
                        .container = {},
                        .kind = OutcomeKind::written,
                        .detail = "memory.max reads 1610612736"};
  report.decisions.push_back(
      {{time, decision},
       JournalOutcome{time + std::chrono::seconds(1), written},
       JournalOutcome{time + std::chrono::seconds(30), outcome}});
  decision.decision_id = 11;
  decision.verdict = Verdict::not_enough_samples;
  report.decisions.push_back({.decision = {time - std::chrono::minutes(5), decision}});
  return report;
}

inline EventsReply events_of(const std::vector<EventReport>& reports) {
  EventsReply reply;
  for (const EventReport& report : reports) reply.events.push_back(to_json(report));
  return reply;
}
inline nlohmann::json events_reply(const std::vector<EventReport>& reports) {
  return to_json(events_of(reports));
}
inline nlohmann::json history_reply(const ContainerInfo& container,
                                    const std::vector<HistoryRow>& rows) {
  return to_json(HistoryReply{.container = container, .points = rows});
}

}  // namespace cgphase::test
