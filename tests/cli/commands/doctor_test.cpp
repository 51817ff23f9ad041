#include "cli/commands/doctor.h"

#include <nlohmann/json.hpp>

#include "base/units.h"
#include "tests/cli/fake_host.h"

using namespace cgphase;
using namespace cgphase::test;

TEST_CASE("a unified host has no warnings") {
  const FakeHost host;
  CHECK(worst(host.examine()) == Level::ok);
  CHECK(host.of("kernel") == "ok: Linux 6.1.0-28-amd64\n");
  CHECK(host.of("controllers") == "ok: cpu, memory, io and pids controllers\n");
  CHECK(host.of("bandwidth") == "ok: cpu.max is there\n");
}

TEST_CASE("swap areas are counted") {
  const FakeHost host;
  CHECK(host.of("swap").starts_with("ok: none"));
  host.write("proc/swaps", "Filename Type\n/dev/sda2 partition 1 0 -2\n/swap file 1 0 -3\n");
  CHECK(host.of("swap") == "ok: 2 areas\n");
}

TEST_CASE("disk space is judged at its bounds") {
  CHECK(judge_disk("/v", 512 * kMiB).level == Level::ok);
  CHECK(judge_disk("/v", 512 * kMiB - 1).level == Level::warn);
  CHECK(judge_disk("/v", 64 * kMiB).level == Level::warn);
  CHECK(judge_disk("/v", 64 * kMiB - 1).level == Level::fail);
}

TEST_CASE("doctor names other managers of limits and OOM killers") {
  const FakeHost host;
  host.write("proc/812/comm", "kubelet\n");
  host.write("proc/813/comm", "systemd-oomd\n");
  host.write("proc/self/comm", "earlyoom\n");
  CHECK(host.of("neighbours") ==
        "warn: the kubelet manages limits here\nwarn: systemd-oomd kills on memory pressure\n");
}

TEST_CASE("doctor reports a second daemon") {
  const FakeHost host;
  host.write("proc/10/comm", "cgphased\n");
  CHECK(host.of("neighbours") == "ok: a cgphase daemon runs\n");
  host.write("proc/11/comm", "cgphased\n");
  CHECK(host.of("neighbours").ends_with("warn: 2 cgphase daemons run\n"));
}

TEST_CASE("a host without readable files still has findings") {
  const auto findings = examine({.cgroup = "/nonexistent/a",
                                 .proc = "/nonexistent/b",
                                 .sys = "/nonexistent/c",
                                 .run = "/nonexistent/e",
                                 .state = "/nonexistent/d"});
  CHECK(worst(findings) == Level::fail);
  for (const Finding& finding : findings) CHECK_FALSE(finding.text.empty());
}

TEST_CASE("every finding that is not ok has a way out") {
  const FakeHost host;
  host.remove("cgroup");
  host.remove("proc");
  host.write("proc/5/comm", "nomad\n");
  for (const Finding& finding : host.examine())
    if (finding.level != Level::ok && finding.name != "kernel")
      CHECK_MESSAGE(!finding.way_out.empty(), finding.text);
}

TEST_CASE("a hostile kernel release is escaped") {
  const FakeHost host;
  host.write("proc/sys/kernel/osrelease", "6\x1b[2J");
  CHECK(host.of("kernel") == "ok: Linux 6\\x1b[2J\n");
}

TEST_CASE("the reply of doctor names the worst finding") {
  const auto body = doctor_reply({{Level::ok, "a", "t", ""}, {Level::fail, "b", "t", "w"}});
  CHECK(body["schema"] == 2);
  CHECK(body["worst"] == "fail");
  CHECK(body["findings"][1]["way_out"] == "w");
}

namespace {

std::string script(const FakeHost& host, const std::string& name, const std::string& text) {
  host.write(name, "#!/bin/sh\n" + text + "\n");
  std::filesystem::permissions(host.path(name), std::filesystem::perms::owner_all);
  return host.path(name);
}

}  // namespace

TEST_CASE("cgphased is run for its version and its libraries") {
  const FakeHost host;
  const std::string daemon =
      script(host, "cgphased", "[ $1 = --version ] && printf 'a 1\\nb 2\\n'");
  CHECK(examine_programs(daemon, "").text == "a 1, b 2");
  const std::string systemctl = script(host, "systemctl", "printf 'systemd 252 (x)\\n+PAM\\n'");
  const Finding fine = examine_programs(daemon, systemctl);
  CHECK(fine.level == Level::ok);
  CHECK(fine.text == "a 1, b 2, systemd 252 (x)");
}

TEST_CASE("a cgphased that is missing or does not run is reported with a way out") {
  const FakeHost host;
  const std::string unlinked = script(host, "cgphased", "echo no library >&2; exit 127");
  const Finding broken = examine_programs(unlinked, "");
  CHECK(broken.level == Level::fail);
  CHECK(broken.text == unlinked + " does not run here: no library");
  CHECK_FALSE(broken.way_out.empty());
  host.write("text", "no program");
  CHECK(examine_programs(host.path("text"), "").level == Level::fail);
  const Finding missing = examine_programs("", "");
  CHECK(missing.level == Level::warn);
  CHECK_FALSE(missing.way_out.empty());
}

TEST_CASE("the clock is judged") { CHECK(examine_clock().name == "clock"); }
