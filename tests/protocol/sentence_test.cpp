#include "protocol/sentence.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

Limits memory_limit(std::uint64_t bytes) {
  Limits limits;
  limits.memory_max = MemoryLimit{Bytes{bytes}};
  return limits;
}

Limits cpu_limit(std::uint64_t quota_usec) {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{quota_usec}, Microseconds{100'000}};
  return limits;
}

Decision lowering() {
  Decision decision;
  decision.decision_id = 7;
  decision.resource = Resource::memory;
  decision.old_limits = memory_limit(2 * kGiB);
  decision.new_limits = memory_limit(3 * kGiB / 2);
  decision.phase = {.state = PhaseState::known, .index = 1, .distance = 1, .margin = 2};
  decision.statistic = static_cast<double>(kGiB);
  decision.sample_count = 142;
  return decision;
}

}  // namespace

TEST_CASE("a lowering says from, to, phase, samples and the trial") {
  const Outcome outcome{.decision_id = 7, .time = {}, .container = {},
                        .kind = OutcomeKind::trial_passed, .detail = ""};
  CHECK(explain_sentence("web-1", lowering(), &outcome) ==
        "web-1: memory limit lowered from 2.0 GiB to 1.5 GiB because phase B needs 1.0 GiB "
        "(142 samples); the trial passed.");
}

TEST_CASE("a decision without an outcome says so") {
  CHECK(explain_sentence("web-1", lowering(), nullptr).ends_with("; not answered yet."));
}

TEST_CASE("a failed trial says what was measured") {
  const Outcome outcome{.decision_id = 7, .time = {}, .container = {},
                        .kind = OutcomeKind::trial_reverted, .detail = "refaults 2 -> 90 per s"};
  CHECK(explain_sentence("web-1", lowering(), &outcome)
            .ends_with("; the trial failed and it was reverted (refaults 2 -> 90 per s)."));
}

TEST_CASE("advice says what would be done and why it was not") {
  Decision decision = lowering();
  decision.verdict = Verdict::advise_mode;
  CHECK(explain_sentence("web-1", decision, nullptr) ==
        "web-1: memory limit would be lowered from 2.0 GiB to 1.5 GiB because phase B needs "
        "1.0 GiB (142 samples); not written, the mode is advise.");
}

TEST_CASE("what the budget grants says who leaves the room") {
  Decision decision;
  decision.resource = Resource::cpu;
  decision.direction = Direction::raise;
  decision.reason = Reason::budget;
  decision.usage = 1.9;
  decision.old_limits.cpu_max = CpuMax{Microseconds{200'000}, Microseconds{100'000}};
  decision.new_limits.cpu_max = CpuMax{Microseconds{300'000}, Microseconds{100'000}};
  const Outcome written{.kind = OutcomeKind::written};
  CHECK(explain_sentence("web-1", decision, &written, "train (3.0 of 4.0 cores)") ==
        "web-1: cpu limit raised from 2.00 cores to 3.00 cores because of the host's budget at "
        "1.90 cores in use; it was written; others leave room: train (3.0 of 4.0 cores).");
  std::swap(decision.old_limits, decision.new_limits);
  decision.direction = Direction::lower;
  CHECK(explain_sentence("web-1", decision, &written) ==
        "web-1: cpu limit lowered from 3.00 cores to 2.00 cores because of the host's budget at "
        "1.90 cores in use; it was written.");
}

TEST_CASE("a weight says from, to and the class, and has no trial") {
  Decision decision;
  decision.resource = Resource::cpu_weight;
  decision.direction = Direction::raise;
  decision.reason = Reason::service_class;
  decision.old_limits.cpu_weight = 100;
  decision.new_limits.cpu_weight = 999;
  const Outcome written{.kind = OutcomeKind::written};
  CHECK(explain_sentence("web-1", decision, &written) ==
        "web-1: cpu weight raised from 100 to 999 because its class is critical; it was written.");
  decision.direction = Direction::lower;
  decision.new_limits.cpu_weight = 11;
  CHECK(explain_sentence("web-1", decision, &written) ==
        "web-1: cpu weight lowered from 100 to 11 because its class is batch; it was written.");
  decision.verdict = Verdict::advise_mode;
  CHECK(explain_sentence("web-1", decision, nullptr) ==
        "web-1: cpu weight would be lowered from 100 to 11 because its class is batch; not "
        "written, the mode is advise.");
}

TEST_CASE("a freeze says for how long and what is missing, a thaw says why") {
  Decision decision;
  decision.resource = Resource::freeze;
  decision.direction = Direction::lower;
  decision.reason = Reason::memory_short;
  decision.new_limits.frozen = true;
  decision.statistic = 120.0 * kMiB;
  decision.evidence[Fact::freeze_seconds] = 30;
  const Outcome written{.kind = OutcomeKind::written};
  CHECK(explain_sentence("train", decision, &written) ==
        "train: frozen for at most 30 s because the host is short of memory by 120 MiB and its "
        "class is batch; it was written.");
  decision.verdict = Verdict::advise_mode;
  CHECK(explain_sentence("train", decision, nullptr) ==
        "train: would be frozen for at most 30 s because the host is short of memory by 120 MiB "
        "and its class is batch; not written, the mode is advise.");
  decision.verdict = Verdict::allowed;
  decision.direction = Direction::raise;
  for (const auto& [reason, why] :
       {std::pair(Reason::memory_fits, "the host is no longer short of memory"),
        std::pair(Reason::freeze_over, "its owner allows no longer freeze at once"),
        std::pair(Reason::restored, "the original limit was to be restored")}) {
    decision.reason = reason;
    CHECK(explain_sentence("train", decision, &written) ==
          std::string("train: thawed because ") + why + "; it was written.");
  }
}

TEST_CASE("a refusal says which limit stays and which rail held it") {
  Decision decision = lowering();
  decision.verdict = Verdict::cool_down;
  CHECK(explain_sentence("web-1", decision, nullptr) ==
        "web-1: memory limit stays at 2.0 GiB instead of 1.5 GiB because an event is too recent "
        "(cool-down).");
  decision.new_limits = decision.old_limits;
  CHECK(explain_sentence("web-1", decision, nullptr) ==
        "web-1: memory limit stays at 2.0 GiB because an event is too recent (cool-down).");
}

TEST_CASE("a hold for somebody else's change names the writer where it is known") {
  Decision decision = lowering();
  decision.verdict = Verdict::standing_down;
  CHECK(explain_sentence("web-1", decision, nullptr,
                         "systemd (pid 1, init.scope) wrote memory.max 2147483648") ==
        "web-1: memory limit stays at 2.0 GiB instead of 1.5 GiB because somebody else changed the "
        "limit a short while ago: systemd (pid 1, init.scope) wrote memory.max 2147483648.");
  CHECK(explain_sentence("web-1", decision, nullptr).ends_with("a short while ago."));
}

TEST_CASE("a raise of the CPU limit says what it was throttled at") {
  Decision decision;
  decision.resource = Resource::cpu;
  decision.direction = Direction::raise;
  decision.reason = Reason::throttled;
  decision.old_limits = cpu_limit(50'000);
  decision.new_limits = cpu_limit(60'000);
  decision.usage = 0.5;
  CHECK(explain_sentence("web-1", decision, nullptr) ==
        "web-1: cpu limit raised from 0.50 cores to 0.60 cores because it was throttled at "
        "0.50 cores; not answered yet.");
}

TEST_CASE("an absent limit reads as no limit") {
  Decision decision = lowering();
  decision.old_limits = {};
  CHECK(explain_sentence("w", decision, nullptr).find("from no limit to") != std::string::npos);
}

TEST_CASE("every verdict but allowed has a reason for people") {
  for (int i = 1; i <= static_cast<int>(Verdict::shared_by_weight); ++i)
    CHECK(because(static_cast<Verdict>(i)) != to_string(static_cast<Verdict>(i)));
  CHECK(because(Verdict::allowed).empty());
}

TEST_CASE("without a decision the sentence says what is seen and waited for") {
  ContainerReport report;
  report.container.name = "web-1";
  report.phase = {.state = PhaseState::known, .index = 0, .distance = 0, .margin = 1};
  report.seconds_in_phase = 30;
  report.cpu_cores = 0.25;
  report.limits = cpu_limit(200'000);
  report.cpu_blocked_by = Verdict::not_enough_samples;
  CHECK(blocked_by_sentence(report) ==
        "web-1: in phase A for 30 s, using 0.25 cores (limit: 2.00 cores); no decision yet: there "
        "are not enough samples of its phase yet.");
}

TEST_CASE("if different rules block CPU and memory, both are named") {
  ContainerReport report;
  report.container.name = "trainer";
  report.cpu_blocked_by = Verdict::gpu_container;
  report.memory_blocked_by = Verdict::not_enough_samples;
  CHECK(blocked_by_sentence(report) ==
        "trainer: not enough history for a phase yet; no decision yet: of its CPU because it has a "
        "GPU, or that cannot be ruled out (lower_gpu_quota); of its memory because there are "
        "not enough samples of its phase yet.");
  report.memory_blocked_by = Verdict::gpu_container;
  CHECK(blocked_by_sentence(report).ends_with(
      "no decision yet: it has a GPU, or that cannot be ruled "
      "out (lower_gpu_quota)."));
}

TEST_CASE("the owner's memory.high is named if it is the limit") {
  Limits original;
  CHECK(soft_limit_text(original).empty());
  original.memory_max = MemoryLimit{Bytes{std::uint64_t{1} << 30}};
  CHECK(soft_limit_text(original).empty());
  original.memory_high = MemoryLimit{};
  CHECK(soft_limit_text(original).empty());
  original.memory_high = original.memory_max;
  CHECK(soft_limit_text(original).empty());
  original.memory_high = MemoryLimit{Bytes{std::uint64_t{1 << 20} * 1024 * 9 / 10}};
  CHECK(soft_limit_text(original) == "memory.high, 90 % of memory.max (1.0 GiB)");
}

TEST_CASE("a container that is another's says whose") {
  ContainerReport report;
  report.container.name = "pod";
  report.container.hands_off = "managed by the kubelet";
  CHECK(blocked_by_sentence(report) == "pod: observed only, managed by the kubelet.");
}

// rule: SEC-03
TEST_CASE("a hostile name cannot break out of the sentence") {
  const std::string text = explain_sentence("a\n\x1b[2J\xff", lowering(), nullptr);
  CHECK(text.starts_with("a\\x0a\\x1b[2J\\xff: memory"));
}
