#include "cli/commands/degradations.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <map>

#include "tests/cli/fake_host.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

void without_cgroup_v2(const FakeHost& host) { host.remove("cgroup"); }

void without_controller(const FakeHost& host, const char* rest) {
  host.write("cgroup/cgroup.controllers", rest);
  host.write("cgroup/cgroup.subtree_control", rest);
}

// Makes a host lack what a row is about, and nothing else.
using Loss = void (*)(const FakeHost&);
const std::map<std::string_view, Loss> kLosses = {
    {"no cgroup file system", without_cgroup_v2},
    {"cgroup v1 only",
     [](const FakeHost& host) {
       without_cgroup_v2(host);
       host.write("cgroup/memory/memory.limit_in_bytes", "0\n");
     }},
    {"hybrid: limits are on cgroup v1, only the rest is on v2",
     [](const FakeHost& host) {
       without_cgroup_v2(host);
       host.write("cgroup/memory/memory.limit_in_bytes", "0\n");
       host.write("cgroup/unified/cgroup.controllers", "\n");
     }},
    {"the memory controller is switched off",
     [](const FakeHost& host) {
       without_controller(host, "cpu io pids\n");
       host.write("proc/cmdline", "coherent_pool=1M cgroup_disable=memory quiet\n");
     }},
    {"the cpu controller is switched off",
     [](const FakeHost& host) {
       without_controller(host, "memory io pids\n");
       host.write("proc/cgroups", "#name h n enabled\nmemory 0 9 1\ncpu 0 9 0\n");
     }},
    {"no memory controller in cgroup v2",
     [](const FakeHost& host) { without_controller(host, "cpu io pids\n"); }},
    {"no cpu controller in cgroup v2",
     [](const FakeHost& host) { without_controller(host, "cpuset memory io pids\n"); }},
    {"the root cgroup does not enable the memory controller",
     [](const FakeHost& host) { host.write("cgroup/cgroup.subtree_control", "cpu io pids\n"); }},
    {"the root cgroup does not enable the cpu controller",
     [](const FakeHost& host) { host.write("cgroup/cgroup.subtree_control", "memory io pids\n"); }},
    {"no io controller in cgroup v2",
     [](const FakeHost& host) { without_controller(host, "cpu memory pids\n"); }},
    {"the root cgroup does not enable the io controller",
     [](const FakeHost& host) {
       host.write("cgroup/cgroup.subtree_control", "cpu memory pids\n");
     }},
    {"no pids controller in cgroup v2",
     [](const FakeHost& host) { without_controller(host, "cpu memory io\n"); }},
    {"the root cgroup does not enable the pids controller",
     [](const FakeHost& host) { host.write("cgroup/cgroup.subtree_control", "cpu memory io\n"); }},
    {"no cpu.max beside cpu.weight",
     [](const FakeHost& host) {
       host.remove("cgroup/system.slice/cpu.max");
       host.remove("cgroup/system.slice/cpu.max.burst");
     }},
    {"no cpu.max.burst beside cpu.max",
     [](const FakeHost& host) { host.remove("cgroup/system.slice/cpu.max.burst"); }},
    {"no memory.reclaim beside memory.max",
     [](const FakeHost& host) { host.remove("cgroup/system.slice/memory.reclaim"); }},
    {"no pressure stall information",
     [](const FakeHost& host) { host.remove("proc/pressure"); }},
    {"no bpf system call",
     [](const FakeHost& host) { host.remove("proc/sys/kernel/unprivileged_bpf_disabled"); }},
    {"no kernel type information (BTF)",
     [](const FakeHost& host) { host.remove("sys/kernel/btf"); }},
    {"the kernel is locked down (confidentiality)",
     [](const FakeHost& host) {
       host.write("sys/kernel/security/lockdown", "none integrity [confidentiality]\n");
     }},
    {"systemd does not manage this machine",
     [](const FakeHost& host) { host.remove("run/systemd"); }},
};

std::vector<Finding> not_ok(const FakeHost& host) {
  std::vector<Finding> found = host.examine();
  std::erase_if(found, [](const Finding& finding) { return finding.level == Level::ok; });
  return found;
}

}  // namespace

TEST_CASE("every degradation is found, alone, on a host that lacks it, with cost and way out") {
  CHECK(kLosses.size() == degradations().size());
  for (const Degradation& row : degradations()) {
    CAPTURE(row.missing);
    REQUIRE(kLosses.contains(row.missing));
    const FakeHost host;
    CHECK(not_ok(host).empty());
    kLosses.at(row.missing)(host);
    const std::vector<Finding> found = not_ok(host);
    REQUIRE(found.size() == 1);
    CHECK(found[0].level == row.level);
    CHECK(found[0].name == row.check);
    CHECK(found[0].text == fmt::format("{}: {}", row.missing, row.cost));
    CHECK(found[0].way_out == row.way_out);
    CHECK_FALSE(row.cost.empty());
    CHECK_FALSE(row.way_out.empty());
  }
}

TEST_CASE("an unreadable PSI file means that PSI is off, as on Linux 5.10 with psi=0") {
  const FakeHost host;
  host.write("proc/pressure/memory", "");
  CHECK(host.of("psi").starts_with("warn: no pressure stall information: "));
}

TEST_CASE("a controller is switched off only if the kernel command line names it") {
  const FakeHost host;
  without_controller(host, "cpu io pids\n");
  host.write("proc/cmdline", "cgroup_disable=cpu,hugetlb xcgroup_disable=memory\n");
  CHECK(host.of("controllers").starts_with("fail: no memory controller in cgroup v2: "));
  host.write("proc/cmdline", "cgroup_disable=cpu,memory\n");
  CHECK(host.of("controllers").starts_with("fail: the memory controller is switched off: "));
}

TEST_CASE("without cgroup v2 there are no findings on controllers and their files") {
  const FakeHost host;
  host.remove("cgroup/system.slice");
  CHECK(host.of("bandwidth").empty());
  CHECK(host.of("reclaim").empty());
  CHECK(not_ok(host).empty());
  host.remove("cgroup");
  CHECK(host.of("controllers").empty());
}
