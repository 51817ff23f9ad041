#include "cli/output/render.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "cli/commands/doctor.h"
#include "cli/output/present.h"
#include "tests/cli/reports.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

TextStyle plain() {
  TextStyle style;
  style.utc = true;
  return style;
}

TextStyle wide() {
  TextStyle style = plain();
  style.wide = true;
  return style;
}

const Form* const kForms[] = {&kStatusForm,  &kListForm,   &kShowForm,   &kExplainForm,
                              &kHistoryForm, &kEventsForm, &kActionForm, &kDoctorForm};

// Empty if the reply cannot be read.
std::string text_of(const Form& form, const json& body, const TextStyle& style) {
  return present(form, body, style.wide ? Output::wide : Output::table, style).value_or("");
}

std::vector<EventReport> events_of(const std::string& name) {
  const ExplainReport why = explain();
  const auto& [decision, written, end] = why.decisions[0];
  return {{name, decision.time, decision.decision, std::nullopt},
          {name, end->time, std::nullopt, end->outcome}};
}

}  // namespace

TEST_CASE("list shows phase, usage, limits, saving and the next phase") {
  CHECK(render_list(ListReply{{web(), fresh()}}, plain()) ==
        "NAME   MODE     PHASE         FOR   CPU     CPU LIMIT   MEMORY        MEMORY LIMIT    "
        "RECOMMENDED          SAVED  NEXT\n"
        "web-1  enforce  B 90 %  2 min 5 s  0.25  0.60 of 2.00  900 MiB  1.2 GiB of 2.0 GiB  "
        "0.50, 1.1 GiB  1.40, 819 MiB  C 71 % in 40 s\n"
        "fresh  observe  -               -     -          none        -                none  "
        "            -              -  -\n");
}

TEST_CASE("wide adds GPUs, engine, id, image, blocking rule, throttling, kills and path") {
  const std::string text = render_list(ListReply{{web()}}, wide());
  CHECK(text.find("ENGINE  ID            IMAGE       BLOCKED BY") != std::string::npos);
  CHECK(text.find("0.85    12.0 GiB  GPU-8f1e9a3c, 0000:03:00.0  docker") != std::string::npos);
  CHECK(text.find("docker  4f2a9bc01d22  shop/web:7  cpu too_small, memory trial_running") !=
        std::string::npos);
  CHECK(text.ends_with("1.5 s    0  /system.slice/docker-4f2a9bc01d22.scope\n"));
}

TEST_CASE("list reports that an empty host has no containers") {
  CHECK(render_list(ListReply{}, plain()) == "no containers seen\n");
  TextStyle bare = plain();
  bare.legend = false;
  CHECK(render_list(ListReply{}, bare).empty());
}

TEST_CASE("a paused container and one of another manager show that as their mode") {
  ContainerReport report = web();
  report.memory_blocked_by = Verdict::rival;
  CHECK(mode_text(report) == "rival");
  report.paused = true;
  CHECK(mode_text(report) == "paused");
  report.container.hands_off = "managed by the kubelet";
  CHECK(mode_text(report) == "hands off");
}

TEST_CASE("show and explain name the owner's memory.high if it is the limit") {
  ExplainReply reply{.sentence = "web: no decision yet.", .at = {}, .gone = false,
                     .container = web(), .decisions = {}};
  reply.container.original.memory_max = MemoryLimit{Bytes{std::uint64_t{1} << 30}};
  reply.container.original.memory_high = MemoryLimit{Bytes{std::uint64_t{1} << 29}};
  constexpr const char* kText = "memory.high, 50 % of memory.max (1.0 GiB)";
  CHECK(render_show(reply.container, {}, plain()).find(kText) != std::string::npos);
  CHECK(render_explain(reply, plain()).find(kText) != std::string::npos);
}

TEST_CASE("list and show say that a container's labels are unknown, and why") {
  ContainerReport report = web();
  report.container.labels_unknown = "no file of it below /var/lib/docker";
  CHECK(mode_text(report) == std::string(to_string(report.mode)) + ", labels unknown");
  CHECK(render_show(report, {}, plain()).find("no file of it below") != std::string::npos);
}

TEST_CASE("a long name is cut in its middle, and on a terminal only") {
  ContainerReport report = fresh();
  report.container.name = std::string(40, 'n') + "-1";
  TextStyle tty = plain();
  tty.shorten = true;
  const ListReply body{{report}};
  CHECK(render_list(body, tty).find("\n" + std::string(14, 'n') + "..." + std::string(13, 'n') +
                                    "-1  ") != std::string::npos);
  CHECK(render_list(body, plain()).find(report.container.name) != std::string::npos);
}

TEST_CASE("the next phase has no time if it is unknown, and is a dash without a phase") {
  ContainerReport report = web();
  CHECK(next_text(report) == "C 71 % in 40 s");
  report.next[0].in_seconds.reset();
  CHECK(next_text(report) == "C 71 % in -");
  report.next[0].phase = -1;
  CHECK(next_text(report) == "-");
  report.next.clear();
  CHECK(next_text(report) == "-");
}

TEST_CASE("times below a millisecond are printed in microseconds") {
  const auto reported = [](std::uint64_t latency_usec, std::uint64_t longest_wait_usec) {
    ContainerReport report = web();
    report.block.latency_usec = latency_usec;  // of 256 requests
    report.run_queue.longest_wait_usec = longest_wait_usec;
    return render_show(report, {}, plain());
  };
  CHECK(reported(256 * 85, 3000).find("in 256 requests, 85 us each\n") != std::string::npos);
  CHECK(reported(256 * 85 + 200, 3000).find(", 86 us each\n") != std::string::npos);
  CHECK(reported(256 * 999, 3000).find(", 999 us each\n") != std::string::npos);
  CHECK(reported(256 * 1000 - 1, 3000).find(", 1 ms each\n") != std::string::npos);
  CHECK(reported(0, 3000).find(", 0 s each\n") != std::string::npos);
  CHECK(reported(0, 420).find("recently up to 420 us;") != std::string::npos);
  ContainerReport unmeasured = web();
  unmeasured.block.latency_usec.reset();
  CHECK(render_show(unmeasured, {}, plain()).find("64.0 MiB in 256 requests\n") !=
        std::string::npos);
}

TEST_CASE("show prints one container in full") {
  CHECK(render_show(web(), {}, plain()) ==
        "name         web-1\n"
        "engine       docker\n"
        "id           4f2a9bc01d22e0f14f2a9bc01d22e0f1\n"
        "image        shop/web:7\n"
        "path         /system.slice/docker-4f2a9bc01d22.scope\n"
        "mode         enforce\n"
        "phase        B 90 % (known), for 2 min 5 s\n"
        "next         C 71 % in 40 s\n"
        "phases seen  A 30, B 142 steps\n"
        "cpu          0.25 cores, limit 0.60 of 2.00\n"
        "memory       900 MiB needed, 1000 MiB charged, limit 1.2 GiB of 2.0 GiB\n"
        "gpu          0.85 busy, 12.0 GiB, on GPU-8f1e9a3c-0b52-4c1e-a7d3-5d2f6e9b1c04, "
        "0000:03:00.0\n"
        "run queue    2.5 s waited in 1200 waits, recently up to 3 ms; 1100 voluntary, 90 "
        "involuntary switches\n"
        "network      3.0 MiB received, 5.0 MiB sent, 7 TCP segments retransmitted\n"
        "block        64.0 MiB in 256 requests, 2 ms each\n"
        "recommended  0.50, 1.1 GiB\n"
        "saved        1.40, 819 MiB\n"
        "blocked by   cpu too_small, memory trial_running\n"
        "throttled    1.5 s\n"
        "memory wait  40 ms\n"
        "sleep        3.0 MiB asleep; woke with 9.0 MiB asleep and waited 30 ms\n"
        "oom kills    0\n");
}

TEST_CASE("show has the terms of a container, and its weight beside the original one") {
  ContainerReport report = web();
  report.terms = Terms{ServiceClass::critical, Cores{0.5}, Bytes{512 * kMiB}};
  report.original.cpu_weight = 100;
  report.limits.cpu_weight = 999;
  const std::string text = render_show(report, {}, plain());
  CHECK(text.find("terms        class critical, at least 0.50 cores, at least 512 MiB of "
                  "memory\n") != std::string::npos);
  CHECK(text.find("cpu weight   999 of 100\n") != std::string::npos);
  report.limits.cpu_weight = 100;
  CHECK(render_show(report, {}, plain()).find("cpu weight") == std::string::npos);
}

TEST_CASE("show has a table of bursts if this or an earlier run of the image has bursts") {
  json bursts = {{"now", {{"network_receive", nullptr}}}, {"next", json::object()}};
  CHECK(render_show(web(), bursts, plain()) == render_show(web(), {}, plain()));
  bursts["now"]["network_receive"] = {
      {"idle_seconds", {{"count", 4}, {"mean", 15}, {"sd", 3}}}};
  bursts["next"]["network_transmit"] = {
      {"burst_consumption", {{"value", 5000}, {"deviation", nullptr}, {"relative_error", 0.25}}}};
  const std::string text = render_show(web(), bursts, plain());
  std::string table = text.substr(text.find("\n\n") + 2);
  for (std::size_t at = 0; (at = table.find("  ")) != std::string::npos;) table.erase(at, 1);
  CHECK(table == "BURSTS OF NUMBER NOW SPREAD COUNT NEXT RUN SPREAD ERROR\n"
                 "network_transmit burst_consumption - - - 5000 - 25 %\n"
                 "network_receive idle_seconds 15 s 3 s 4 - - -\n");
}

TEST_CASE("status shows mode, changes, savings, model, store, overhead and sources") {
  CHECK(render_status(status(), plain()) ==
        "cgphase 0.1.0, mode enforce, policy phase, up 3 h 12 min\n"
        "changes     3 up, 12 down, 1 trials reverted since cgphased started at "
        "2026-03-15 11:18:00 UTC\n"
        "containers  2 seen: 1 observe, 0 advise, 1 enforce\n"
        "saved       now 1.40 cores, 819 MiB; since cgphased started 1.20 core-hours, 3.40 "
        "GiB-hours\n"
        "model       /usr/share/cgphase/model.json (5 phases, 6 features, step 5 s)\n"
        "store       12.0 MiB of 256 MiB, ok\n"
        "overhead    0.11 % of one core, 24.0 MiB\n"
        "sources     cgroup v2 ok, /sys/fs/cgroup\n"
        "            eBPF off: no BTF\n"
        "gpus        GPU-8f1e9a3c NVIDIA H200: 90 % busy, 70.0 GiB of 140 GiB\n"
        "            0000:03:00.0: - busy, - of -\n"
        "companion   alive\n");
}

TEST_CASE("status shows what the history lost") {
  StatusReport report = status();
  report.store.dropped_samples = 1200;
  report.store.damaged = 2;
  report.store.quarantined = "/var/lib/cgphase/history.db.corrupt-1";
  CHECK(render_status(report, plain())
            .find("lost        1200 samples dropped because they could not be written; 2 damaged "
                  "blocks or rows; "
                  "the earlier history file, kept as /var/lib/cgphase/history.db.corrupt-1\n") !=
        std::string::npos);
}

TEST_CASE("status says that nothing was changed as long as that is true") {
  StatusReport report = status();
  report.changed_anything = false;
  CHECK(render_status(report, plain())
            .find("changes     nothing has been changed on this host\n") != std::string::npos);
}

TEST_CASE("status says since when it counts if an earlier run changed limits or is unknown") {
  StatusReport report = status();
  report.writes_up = report.writes_down = 0;
  report.last_written_before = WallTime(std::chrono::seconds(1'773'500'000));
  const auto has = [&](const char* words) {
    return render_status(report, plain()).find(words) != std::string::npos;
  };
  CHECK(has("changes     none since cgphased started at 2026-03-15 11:18:00 UTC; the last one "
            "before was at 2026-03-14 14:53:20 UTC\n"));
  report.last_written_before.reset();
  report.changed_anything = false;
  report.store.state = "off";
  CHECK(has("changes     nothing has been changed since cgphased started at "));
}

TEST_CASE("status shows the companion if it is needed, and CPU if it was measured") {
  StatusReport report = status();
  report.companion_alive = report.companion_needed = false;
  report.overhead_cpu_cores.reset();
  const std::string text = render_status(report, plain());
  CHECK(text.find("companion   not needed: no limit can be written on this host\n") !=
        std::string::npos);
  CHECK(text.find("overhead    CPU not measured yet, 24.0 MiB\n") != std::string::npos);
}

TEST_CASE("status shows the kill switch, a dead companion and degradations") {
  StatusReport report = status();
  report.kill_switch = true;
  report.companion_alive = false;
  report.degraded = {"history is kept in memory: disk full"};
  const std::string text = render_status(report, plain());
  CHECK(text.find("kill switch  on: ") != std::string::npos);
  CHECK(text.find("companion    not running: ") != std::string::npos);
  CHECK(text.find("degraded     history is kept in memory: disk full\n") != std::string::npos);
}

TEST_CASE("explain begins with one sentence and then shows the numbers") {
  CHECK(render_explain(explain_reply(explain()), plain()) ==
        "web-1: memory limit lowered from 2.0 GiB to 1.5 GiB because phase B needs 1.0 GiB "
        "(142 samples); the trial passed (refaults 2 -> 2 per s).\n"
        "\n"
        "decision      17 at 2026-03-15 14:30:00 UTC\n"
        "inputs        900 MiB needed, 950 MiB recent peak, 1.1 GiB charged, 3 earlier runs\n"
        "pressure      cpu 1.20 %, memory 0.00 % (full -), io -; 2 refaults/s, - major faults/s\n"
        "phase         B (known), distance 0.5, margin 9\n"
        "statistic     1.0 GiB from 142 samples\n"
        "reason        phase_statistics\n"
        "safety rules  allowed, floor 1.1 GiB\n"
        "limit         2.0 GiB -> 1.5 GiB\n"
        "written       memory.max reads 1610612736 at 2026-03-15 14:30:01 UTC\n"
        "trial         trial_passed, refaults 2 -> 2 per s at 2026-03-15 14:30:30 UTC\n"
        "\n"
        "earlier\n"
        "2026-03-15 14:25:00 UTC  web-1: memory limit stays at 2.0 GiB instead of 1.5 GiB because "
        "there are not enough samples of its phase yet.\n");
}

TEST_CASE("explain without a decision prints one sentence") {
  ExplainReport report;
  report.now = fresh();
  CHECK(render_explain(explain_reply(report), plain()) ==
        "fresh: not enough history for a phase yet; no decision yet.\n");
}

TEST_CASE("events are one line each") {
  CHECK(render_events(test::events_of(events_of("web-1")), plain()).value() ==
        "2026-03-15 14:30:00 UTC  web-1: memory limit lowered from 2.0 GiB to 1.5 GiB because "
        "phase B needs 1.0 GiB (142 samples); not answered yet.\n"
        "2026-03-15 14:30:30 UTC  web-1: decision 17: the trial passed (refaults 2 -> 2 per s).\n");
}

TEST_CASE("history is a table of samples") {
  const std::vector<HistoryRow> rows = {
      {.time = WallTime(std::chrono::seconds(1'773'585'000)),
       .phase = web().phase,
       .cpu_cores = 0.5,
       .memory_need_bytes = 4096,
       .memory_current_bytes = std::nullopt,
       .limits = web().limits}};
  CHECK(render_history({.container = web().container, .points = rows}, plain()) ==
        "TIME                     PHASE   CPU  CPU LIMIT     NEED  CHARGED  MEMORY LIMIT\n"
        "2026-03-15 14:30:00 UTC  B      0.50       0.60  4.0 KiB        -       1.2 GiB\n");
}

TEST_CASE("an action prints what was done and how to undo it") {
  const ActionReport report{"web-1 is in mode enforce", "cgphase mode observe web-1", {}, {}};
  CHECK(render_action(report, plain()) ==
        "web-1 is in mode enforce\nundo: cgphase mode observe web-1\n");
}

TEST_CASE("an action prints each change and each failure") {
  const ActionReport report{"2 containers restored", "", {"a: cpu.max"}, {"b: memory.max: EIO"}};
  CHECK(render_action(report, plain()) ==
        "2 containers restored\n  a: cpu.max\n  failed: b: memory.max: EIO\n");
}

TEST_CASE("a finding of doctor is printed with its way out") {
  const std::vector<Finding> findings = {{Level::ok, "kernel", "Linux 6.1", ""},
                                         {Level::warn, "psi", "none", "boot with psi=1"}};
  CHECK(render_doctor(doctor_reply(findings), plain()) ==
        "ok    kernel  Linux 6.1\n"
        "warn  psi     none\n"
        "              -> boot with psi=1\n");
}

// rule: SEC-03
TEST_CASE("no renderer prints a hostile name unescaped") {
  StatusReport status_report = status();
  status_report.degraded = {kHostileName};
  status_report.policy = status_report.version = kHostileName;
  status_report.sources = {{kHostileName, true, kHostileName}};
  ExplainReport why = explain();
  why.now = hostile();
  why.decisions[0].end->outcome.detail = kHostileName;
  const ActionReport action{kHostileName, kHostileName, {kHostileName}, {kHostileName}};
  const std::vector<Finding> findings = {{Level::warn, kHostileName, kHostileName, kHostileName}};
  const json bodies[] = {to_json(status_report), to_json(ListReply{{hostile()}}),
                         to_json(hostile()), to_json(why), events_reply(events_of(kHostileName)),
                         to_json(action), doctor_reply(findings)};
  for (const json& body : bodies)
    for (const Form* form : kForms)
      for (const TextStyle& style : {plain(), wide()}) {
        const std::string text = text_of(*form, body, style);
        CHECK(text.find_first_of("\x1b\x07\r\xff") == std::string::npos);
        CHECK(text.find("\u202e") == std::string::npos);
      }
}

TEST_CASE("strings that a reply did not escape are escaped by the renderer") {
  const json body = {{"containers", {{{"name", "a\x1b[2Jb\u202e"}}}}};
  const std::string text = text_of(kListForm, body, plain());
  CHECK(text.find("a\\x1b[2Jb\\xe2\\x80\\xae") != std::string::npos);
}

TEST_CASE("every renderer accepts any JSON") {
  constexpr unsigned kSeed = 20260315;
  INFO("seed ", kSeed);
  std::mt19937 random(kSeed);
  const json whole[] = {to_json(status()), to_json(ListReply{{web()}}), to_json(web()),
                        to_json(explain()), events_reply(events_of("x")), 1, "text",
                        json::array({1, nullptr, json::object()}), nullptr};
  const json odd[] = {nullptr, -1, 1e300, "x", json::array({1}), json::object(), true};
  for (int round = 0; round < 3000; ++round) {
    json flat = whole[random() % std::size(whole)].flatten();
    if (flat.is_object() && !flat.empty()) {
      auto victim = flat.begin();
      std::advance(victim, random() % flat.size());
      victim.value() = odd[random() % std::size(odd)];
      if (victim.value().is_structured()) victim.value() = 7;
      flat = flat.unflatten();
    }
    for (const Form* form : kForms) CHECK_NOTHROW(text_of(*form, flat, wide()));
  }
}
