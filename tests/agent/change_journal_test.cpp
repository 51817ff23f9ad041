// What is in the journal: writes, their failures, and whose writes hold something back.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "tests/agent/agent_world.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("a write that fails is in the journal with its reason, and nothing counts as lowered") {
  AgentWorld world;
  const Error denied{ErrorKind::denied, "cpu.max: Permission denied (EACCES)"};
  world.writer->recording.fail_next(1000, denied);
  for (int i = 0; i < 300 && world.agent->totals().writes_failed == 0; ++i) world.tick();
  CHECK(world.agent->totals().writes_failed > 0);
  CHECK(world.agent->totals().writes_down == 0);
  const auto& outcomes = world.agent->journal().recent_outcomes();
  REQUIRE_FALSE(outcomes.empty());
  CHECK(outcomes.front().outcome.kind == OutcomeKind::write_failed);
  CHECK(outcomes.front().outcome.detail.find("EACCES") != std::string::npos);
}

TEST_CASE("what was written is in the journal as it was read back") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  const auto& decisions = world.agent->journal().recent_decisions();
  const auto& outcomes = world.agent->journal().recent_outcomes();
  REQUIRE_FALSE(outcomes.empty());
  const Outcome& written = outcomes.front().outcome;
  CHECK(written.kind == OutcomeKind::written);
  CHECK(written.detail.find(" reads ") != std::string::npos);
  const auto decided = std::ranges::find_if(decisions, [&](const JournalDecision& entry) {
    return entry.decision.decision_id == written.decision_id;
  });
  REQUIRE(decided != decisions.end());
  CHECK(decided->decision.verdict == Verdict::allowed);
  CHECK(decided->decision.evidence[Fact::floor]);
}

TEST_CASE("a limit that could not be put back is not journaled as raised, and is ours still") {
  AgentWorld world;
  const auto lowered = [&] {
    const ContainerView& view = world.container();
    return view.in_force.cpu_max != view.original.cpu_max &&
           view.in_force.memory_high != view.original.memory_high;
  };
  world.run(1);
  for (int i = 0; i < 600 && !lowered(); ++i) world.tick();
  REQUIRE(lowered());
  const CgroupId id = world.container().info.id;
  const auto raised = [&](Resource resource) {
    const auto is_it = [&](const JournalDecision& entry) {
      return entry.decision.reason == Reason::restored && entry.decision.resource == resource;
    };
    return std::ranges::count_if(world.agent->journal().recent_decisions(), is_it);
  };
  world.writer->stuck = Knob::memory_high;
  CHECK(world.agent->restore(id).failures.size() == 1);
  CHECK(raised(Resource::cpu) == 1);
  CHECK(raised(Resource::memory) == 0);
  CHECK(world.container().in_force.cpu_max == world.container().original.cpu_max);
  CHECK(world.container().in_force.memory_high != world.container().original.memory_high);
  world.agent->set_paused(id, true);
  REQUIRE(world.agent->degraded().size() == 1);
  CHECK(world.agent->degraded()[0] ==
        "limits that could not be put back yet, and are tried again: test-a");
  world.writer->stuck.reset();
  world.run(2);
  CHECK(world.original());
  CHECK(world.agent->degraded().empty());
}

TEST_CASE("where nothing may be lowered any more what is lowered goes back all the same") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.writer->stuck = Knob::memory_high;
  world.agent->set_writable(false);
  CHECK_FALSE(world.original());
  const auto failed = world.agent->totals().writes_failed;
  world.writer->stuck.reset();
  world.run(3);
  CHECK(world.original());
  CHECK(world.agent->totals().writes_failed == failed);
}

TEST_CASE("a hold for somebody else's change is journaled with the writer of it") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.probes->writes.push_back({.time = world.clock.monotonic_now(),
                                  .directory = world.container().info.id.inode,
                                  .file = "memory.max",
                                  .value = "805306368",
                                  .pid = 1,
                                  .command = "systemd",
                                  .writer_path = "/init.scope"});
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  world.write_process(812, "kubelet");  // what it holds back is not for that write
  world.run(60);
  bool stood_down = false, hands_off = false;
  for (const JournalDecision& entry : world.agent->journal().recent_decisions()) {
    const bool held = entry.decision.verdict == Verdict::standing_down;
    stood_down = stood_down || held;
    hands_off = hands_off || entry.decision.verdict == Verdict::hands_off;
    CHECK(entry.writer == (held ? "systemd (pid 1, init.scope) wrote memory.max 805306368" : ""));
  }
  CHECK(stood_down);
  CHECK(hands_off);
}

TEST_CASE("a change of which the kernel did not tell has no writer in the journal") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  const auto& journal = world.agent->journal().recent_decisions();
  CHECK(std::ranges::any_of(journal, [](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::standing_down && entry.writer.empty();
  }));
}

TEST_CASE("the writer is named while lowering waits, not when lowering begins again") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(1);
  world.probes->writes.push_back({.time = world.clock.monotonic_now(),
                                  .directory = world.container().info.id.inode,
                                  .file = "memory.max",
                                  .value = "805306368",
                                  .pid = 812,
                                  .command = "sh"});
  world.tree.write("/test-a/memory.max", "805306368\n");
  world.run(10);
  const auto lowered_from_it = [](const JournalDecision& entry) {
    const auto& before = entry.decision.old_limits.memory_max;
    return entry.decision.verdict == Verdict::allowed && before &&
           before->bytes == Bytes{805306368};
  };
  const auto& journal = world.agent->journal().recent_decisions();
  for (int i = 0; i < 1200 && std::ranges::none_of(journal, lowered_from_it); ++i) world.tick();
  const auto lowered = std::ranges::find_if(journal, lowered_from_it);
  REQUIRE(lowered != journal.end());
  CHECK(lowered->writer.empty());
  CHECK(std::ranges::any_of(journal, [](const JournalDecision& entry) {
    return entry.decision.verdict == Verdict::standing_down && !entry.writer.empty();
  }));
}

TEST_CASE("programs are wanted in the kernel only while something is not just observed") {
  AgentWorld world;
  CHECK_FALSE(world.probes->wanted);
  world.run(2);
  CHECK(world.probes->wanted);
  (void)world.agent->set_mode(Mode::advise);
  world.tick();
  CHECK(world.probes->wanted);
  (void)world.agent->set_mode(Mode::observe);
  world.tick();
  CHECK_FALSE(world.probes->wanted);
  (void)world.agent->set_mode(world.container().info.id, Mode::enforce);
  (void)world.agent->set_mode(Mode::advise);
  world.tick();
  CHECK(world.probes->wanted);
}

TEST_CASE("what the kernel's probes count is in the samples, also where all is only observed") {
  AgentWorld world;
  world.probes->received_bytes = 4711;
  (void)world.agent->set_mode(Mode::observe);
  world.run(2);
  CHECK(world.container().sample.network.receive_bytes == 4711);
  CHECK_FALSE(world.container().sample.run_queue.waits);
}

TEST_CASE("what the kernel's probes can tell is among the sources") {
  AgentWorld world;
  CHECK(std::ranges::any_of(world.agent->sources(), [](const Source& source) {
    return source.name == "eBPF: told" && !source.present && source.detail == "by a test";
  }));
}

// Only root can give a directory away.
TEST_CASE("a user whose containers come and go leaves the journal to others" *
          doctest::skip(::geteuid() != 0)) {
  AgentWorld world;
  world.config.include.push_back("/user/test-*");
  world.config.enforce.cgroups.push_back("/user/test-*");
  world.tree.write("/user/cgroup.events", "populated 1\nfrozen 0\n");
  REQUIRE(::chown((world.tree.root() + "/user").c_str(), 1000, 1000) == 0);
  world.start();
  const auto refused_since = [&](std::uint64_t id, CgroupId other) {
    const auto& decisions = world.agent->journal().recent_decisions();
    return std::ranges::count_if(decisions, [&](const JournalDecision& one) {
      return one.decision.decision_id > id && one.decision.container != other &&
             one.decision.verdict != Verdict::allowed;
    });
  };
  world.run(3);
  const CgroupId rooted = world.container().info.id;
  constexpr int kAtATime = 10, kRounds = 40, kTicks = 20;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kAtATime; ++i) {
      const std::string path = "/user/test-" + std::to_string(i);
      world.tree.write(path + "/cpu.max", kCpuMax);
      world.tree.write(path + "/memory.max", kMemoryMax);
      world.tree.write(path + "/memory.high", kMemoryHigh);
      world.tree.write(path + "/memory.current", "104857600\n");
      world.tree.write(path + "/memory.stat", "anon 104857600\nfile 0\nshmem 0\n");
      world.tree.write(path + "/cgroup.events", "populated 1\nfrozen 0\n");
      world.tree.write(path + "/cpu.stat", "usage_usec 1\nnr_periods 1\n");
    }
    world.run(kTicks);
    for (int i = 0; i < kAtATime; ++i) world.tree.remove("/user/test-" + std::to_string(i));
    world.run(1);
  }
  const auto of_user = refused_since(0, rooted);
  CHECK(of_user >= JournalShare::kAtOnce);
  constexpr double kMinutes = kRounds * (kTicks + 1) / 60.0;
  CHECK(of_user <= JournalShare::kAtOnce + JournalShare::kPerMinute * kMinutes + 1);
  CHECK(world.agent->journal().left_out() > 0);
  // Refusals of other users are still journaled.
  const std::uint64_t last = world.agent->journal().recent_decisions().back().decision.decision_id;
  world.restart_container();
  world.run(kTicks);
  CHECK(refused_since(last, {}) > 0);
}
