#include "agent/logging/change_log.h"

#include <doctest/doctest.h>

#include "tests/agent/agent_world.h"
#include "tests/agent/logging/told_entries.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

constexpr MonotonicTime kStart{std::chrono::hours(1)};
constexpr CgroupId kId{7, 4711};

ContainerInfo container() {
  return {.id = kId,
          .path = "/machine.slice/libpod-0",
          .engine = Engine::podman,
          .engine_id = std::string(63, 'a') + "b",
          .name = "web"};
}

Decision lowering(MonotonicTime time = kStart) {
  Decision decision{.decision_id = 12, .time = time, .container = kId};
  decision.old_limits.cpu_max = CpuMax{Microseconds{100'000}};
  decision.new_limits.cpu_max = CpuMax{Microseconds{50'000}};
  decision.phase = {.state = PhaseState::known, .index = 1};
  return decision;
}

Decision held_back(Verdict verdict, Resource resource = Resource::cpu) {
  Decision decision = lowering();
  decision.verdict = verdict;
  decision.resource = resource;
  return decision;
}

Outcome outcome(OutcomeKind kind) {
  return {.decision_id = 12, .time = kStart, .container = kId, .kind = kind, .detail = "measured"};
}

}  // namespace

TEST_CASE("a change is logged with cgroup, container, phase, knob, old and new value") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  log.written(container(), lowering(), lowering().new_limits);
  REQUIRE(reported.kinds() == std::vector{Message::limit_lowered});
  CHECK(reported.have_their_fields());
  CHECK(reported.field(0, "CGROUP_PATH") == "/machine.slice/libpod-0");
  CHECK(reported.field(0, "CONTAINER_ID") == "aaaaaaaaaaaa");  // as in the container's own lines
  CHECK(reported.field(0, "CONTAINER_NAME") == "web");
  CHECK(reported.field(0, "DECISION_ID") == "12");
  CHECK(reported.field(0, "PHASE") == "B");
  CHECK(reported.field(0, "REASON") == "phase_statistics");
  CHECK(reported.field(0, "KNOB") == "cpu.max");
  CHECK(reported.field(0, "OLD") == "100000 100000");
  CHECK(reported.field(0, "NEW") == "50000 100000");
  CHECK(reported.text(0).starts_with(
      "web: cpu limit lowered from 1.00 cores to 0.50 cores because "));
  CHECK(reported.text(0).ends_with("[cpu.max: 100000 100000 -> 50000 100000]"));
}

TEST_CASE("each changed file is logged as it was read back") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  Decision decision = lowering();
  decision.old_limits.cpu_max_burst = Microseconds{20'000};
  decision.old_limits.memory_max = MemoryLimit{Bytes{1 << 30}};
  Limits in_force = decision.old_limits;
  in_force.cpu_max = CpuMax{Microseconds{60'000}};
  in_force.cpu_max_burst = Microseconds{0};
  in_force.cpu_weight = 100;                        // not read before
  in_force.memory_max = MemoryLimit{Bytes{1 << 29}};  // another decision's
  log.written(container(), decision, in_force);
  REQUIRE(reported.entries.size() == 2);
  CHECK(reported.field(0, "NEW") == "60000 100000");
  CHECK(reported.field(1, "KNOB") == "cpu.max.burst");
  CHECK(reported.field(1, "OLD") == "20000");
  CHECK(reported.field(1, "NEW") == "0");
}

TEST_CASE("a raise to the original is logged as restored, any other as raised") {
  for (const Reason reason : {Reason::restored, Reason::another_manager, Reason::silence,
                              Reason::gpu_seen, Reason::trial_failed, Reason::program_started,
                              Reason::reads_limits}) {
    ToldEntries reported;
    ChangeLog log(reported.teller());
    Decision decision = lowering();
    std::swap(decision.old_limits, decision.new_limits);
    decision.direction = Direction::raise;
    decision.reason = reason;
    log.written(container(), decision, decision.new_limits);
    decision.reason = Reason::throttled;
    log.written(container(), decision, decision.new_limits);
    CHECK(reported.kinds() == std::vector{Message::limit_restored, Message::limit_raised});
  }
}

TEST_CASE("names are escaped in every field and in the text") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  ContainerInfo info = container();
  info.path = "/evil\x1b[2J\\";
  info.engine_id = info.name = "evil\x1b[2J\xff";
  log.written(info, lowering(), lowering().new_limits);
  log.concluded(info, outcome(OutcomeKind::write_failed));
  log.held(info, held_back(Verdict::standing_down), "sh\x1b[2J wrote it");
  REQUIRE(reported.entries.size() == 3);
  CHECK(reported.field(0, "CGROUP_PATH") == "/evil\\x1b[2J\\\\");
  CHECK(reported.field(0, "CONTAINER_NAME") == "evil\\x1b[2J\\xff");
  CHECK(reported.field(0, "CONTAINER_ID") == "evil\\x1b[2J\\xff");
  for (const LogEntry& entry : reported.entries) {
    CHECK(entry.text.find_first_of("\x1b\xff") == std::string::npos);
    for (const LogField& field : entry.fields)
      CHECK(field.value.find_first_of("\x1b\xff") == std::string::npos);
  }
}

TEST_CASE("reverted trials and failed writes are logged, other outcomes are not") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  for (const OutcomeKind kind : {OutcomeKind::trial_passed, OutcomeKind::written,
                                 OutcomeKind::overtaken, OutcomeKind::trial_reverted,
                                 OutcomeKind::write_failed})
    log.concluded(container(), outcome(kind));
  CHECK(reported.kinds() == std::vector{Message::trial_reverted, Message::write_failed});
  CHECK(reported.have_their_fields());
  CHECK(reported.text(0) == "web: decision 12: the trial failed and it was reverted (measured).");
}

TEST_CASE("a yield to another writer is logged once, not per resource") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  const std::string writer = "systemd (pid 1) wrote cpu.max max";
  log.held(container(), held_back(Verdict::cool_down), "");
  log.held(container(), held_back(Verdict::standing_down), writer);
  log.held(container(), held_back(Verdict::standing_down, Resource::memory), "");
  log.held(container(), held_back(Verdict::standing_down), writer);
  CHECK(reported.entries.size() == 1);
  log.held(container(), held_back(Verdict::rival), "");
  CHECK(reported.entries.size() == 2);
  log.held(container(), held_back(Verdict::cool_down), "");
  log.held(container(), held_back(Verdict::cool_down, Resource::memory), "");
  log.held(container(), held_back(Verdict::standing_down), "");
  CHECK(reported.entries.size() == 3);
  log.written(container(), lowering(), lowering().old_limits);  // nothing reads otherwise
  log.held(container(), held_back(Verdict::standing_down), "");
  CHECK(reported.kinds() == std::vector(3, Message::container_stood_down));
  CHECK(reported.have_their_fields());
  CHECK(reported.text(0).find(writer) != std::string::npos);
}

TEST_CASE("entries of one cgroup are limited per window, and the next counts the rest") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  const auto write_at = [&](MonotonicTime time) {
    log.written(container(), lowering(time), lowering().new_limits);
  };
  for (int i = 0; i < kMostEntries; ++i) write_at(kStart);
  CHECK(reported.entries.size() == kMostEntries);
  write_at(kStart);
  write_at(kStart + kEntryWindow - std::chrono::nanoseconds(1));
  CHECK(reported.entries.size() == kMostEntries);
  ContainerInfo other = container();
  other.id = {7, 4712};
  Decision decision = lowering();
  decision.container = other.id;
  log.written(other, decision, decision.new_limits);
  CHECK(reported.entries.size() == kMostEntries + 1);  // another one's count is its own
  write_at(kStart + kEntryWindow);
  REQUIRE(reported.entries.size() == kMostEntries + 2);
  CHECK(reported.text(kMostEntries + 1).ends_with("(2 before it are only in `cgphase events`)"));
}

TEST_CASE("restores are logged beyond the bound, and a forgotten cgroup begins anew") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  for (int i = 0; i < kMostEntries + 1; ++i)
    log.written(container(), lowering(), lowering().new_limits);
  Decision back = lowering();
  back.reason = Reason::restored;
  log.written(container(), back, back.new_limits);
  CHECK(reported.entries.size() == kMostEntries + 1);
  CHECK(reported.kinds().back() == Message::limit_restored);
  log.forget(kId);
  log.written(container(), lowering(), lowering().new_limits);
  CHECK(reported.entries.size() == kMostEntries + 2);
}

TEST_CASE("the kill switch and failed restores are logged with their fields") {
  ToldEntries reported;
  ChangeLog log(reported.teller());
  log.kill_switch(true, "/etc/cgphase/disabled");
  log.kill_switch(false, "/etc/cgphase/disabled");
  log.restore_failed({"/a: memory.max: EIO", "/b: cpu.max: EIO"});
  CHECK(reported.kinds() == std::vector{Message::kill_switch_on, Message::kill_switch_off,
                                    Message::restore_failed, Message::restore_failed});
  CHECK(reported.have_their_fields());
  CHECK(reported.field(3, "CAUSE") == "/b: cpu.max: EIO");
}

TEST_CASE("the agent logs lowerings, the kill switch, and restores") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const std::size_t lowered = world.reported.entries.size();
  REQUIRE(lowered > 0);
  CHECK(world.reported.kinds() == std::vector(lowered, Message::limit_lowered));
  CHECK(world.reported.field(0, "CGROUP_PATH") == "/test-a");
  world.tree.write("/disabled", "");
  world.run(1);
  REQUIRE(world.reported.entries.size() > lowered + 1);
  CHECK(world.reported.kinds()[lowered] == Message::kill_switch_on);
  for (std::size_t i = lowered + 1; i < world.reported.entries.size(); ++i) {
    CHECK(world.reported.kinds()[i] == Message::limit_restored);
    const bool cpu = world.reported.field(i, "KNOB") == "cpu.max";
    CHECK(world.reported.field(i, "NEW") + "\n" == (cpu ? kCpuMax : kMemoryHigh));
    CHECK(world.reported.text(i).find(cpu ? "cpu limit raised" : "memory limit raised") !=
          std::string::npos);
  }
  CHECK(world.reported.have_their_fields());
}

TEST_CASE("the agent logs a failed write and a change by another program") {
  AgentWorld world;
  const Error denied{ErrorKind::denied, "cpu.max: Permission denied (EACCES)"};
  world.writer->recording.fail_next(1, denied);
  for (int i = 0; i < 300 && world.reported.entries.empty(); ++i) world.tick();
  CHECK(world.reported.kinds() == std::vector{Message::write_failed});
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  CHECK(std::ranges::count(world.reported.kinds(), Message::container_stood_down) == 1);
}
