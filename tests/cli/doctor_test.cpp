#include "cli/doctor.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/units.h"
#include "tests/agent/temporary_directory.h"

using namespace cgphase;

namespace {

// A host of files: as a unified Debian 12 has them, until a test takes some away.
class Host {
 public:
  Host() {
    write("cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    write("cgroup/cgroup.subtree_control", "cpu memory pids\n");
    write("cgroup/system.slice/cpu.max", "max 100000\n");
    write("cgroup/system.slice/cpu.weight", "100\n");
    write("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    write("proc/pressure/memory", "some avg10=0.00\n");
    write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    write("proc/1/comm", "systemd\n");
    write("proc/cgroups", "#subsys_name hierarchy num_cgroups enabled\ncpu 0 9 1\nmemory 0 9 1\n");
    write("sys/kernel/btf/vmlinux", "btf");
  }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path full = tmp_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  void remove(const std::string& path) const { std::filesystem::remove_all(tmp_ / path); }

  std::vector<Finding> examine() const {
    return cgphase::examine({.cgroup = tmp_ / "cgroup",
                             .proc = tmp_ / "proc",
                             .sys = tmp_ / "sys",
                             .state = tmp_ / "var/lib/cgphase"});
  }
  // The findings of one name, one per line: "warn: text".
  std::string of(const std::string& name) const {
    static constexpr const char* kLevels[] = {"ok", "warn", "fail"};
    std::string text;
    for (const Finding& finding : examine())
      if (finding.name == name)
        text += std::string(kLevels[static_cast<int>(finding.level)]) + ": " + finding.text + "\n";
    return text;
  }
  std::string path(const std::string& below) const { return tmp_ / below; }

 private:
  TemporaryDirectory tmp_;
};

std::string way_out(const std::vector<Finding>& findings, const std::string& name, Level level) {
  for (const Finding& finding : findings)
    if (finding.name == name && finding.level == level) return finding.way_out;
  return "(none)";
}

}  // namespace

TEST_CASE("a unified host is found fit") {
  const Host host;
  CHECK(worst(host.examine()) == Level::ok);
  CHECK(host.of("kernel") == "ok: Linux 6.1.0-28-amd64\n");
  CHECK(host.of("controllers") == "ok: cpu controller\nok: memory controller\n");
  CHECK(host.of("bandwidth") == "ok: cpu.max is there\n");
}

TEST_CASE("a hybrid host fails and is told how to unify") {
  const Host host;
  host.remove("cgroup");
  host.write("cgroup/unified/cgroup.controllers", "\n");
  CHECK(host.of("cgroup") == "fail: hybrid: limits are on cgroup v1, only the rest on v2\n");
  CHECK(way_out(host.examine(), "cgroup", Level::fail).find("unified_cgroup_hierarchy=1") !=
        std::string::npos);
}

TEST_CASE("a cgroup v1 host and one without cgroups fail") {
  const Host host;
  host.remove("cgroup");
  CHECK(host.of("cgroup") == "fail: no cgroup hierarchy at " + host.path("cgroup") + "\n");
  host.write("cgroup/memory/memory.limit_in_bytes", "0\n");
  CHECK(host.of("cgroup") == "fail: cgroup v1 only\n");
}

TEST_CASE("a controller that the kernel was booted without names the boot option") {
  const Host host;
  host.write("cgroup/cgroup.controllers", "cpu io\n");
  host.write("proc/cgroups", "#name h n enabled\nmemory 0 9 0\n");
  CHECK(way_out(host.examine(), "controllers", Level::fail) == "boot with cgroup_enable=memory");
}

TEST_CASE("a controller whose name only contains another's is not that one") {
  const Host host;
  host.write("cgroup/cgroup.controllers", "cpuset memory\n");
  CHECK(host.of("controllers").starts_with("fail: no cpu controller in cgroup v2\n"));
}

TEST_CASE("a controller that is not passed on is a warning") {
  const Host host;
  host.write("cgroup/cgroup.subtree_control", "memory\n");
  CHECK(host.of("controllers").starts_with("warn: cpu is there and not passed on"));
}

TEST_CASE("a kernel without bandwidth control fails for cpu.max") {
  const Host host;
  host.remove("cgroup/system.slice/cpu.max");
  CHECK(host.of("bandwidth") == "fail: children have cpu.weight and no cpu.max\n");
}

TEST_CASE("missing PSI and BTF are warnings") {
  const Host host;
  host.remove("proc/pressure");
  host.remove("sys/kernel/btf");
  CHECK(host.of("psi").starts_with("warn: "));
  CHECK(host.of("btf").starts_with("warn: "));
  CHECK(host.of("btf").contains("network traffic only"));
  CHECK(worst(host.examine()) == Level::warn);
}

TEST_CASE("swap areas are counted") {
  const Host host;
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

TEST_CASE("other writers of limits and killers on pressure are named") {
  const Host host;
  host.write("proc/812/comm", "kubelet\n");
  host.write("proc/813/comm", "systemd-oomd\n");
  host.write("proc/self/comm", "earlyoom\n");
  CHECK(host.of("neighbours") ==
        "warn: the kubelet manages limits here\nwarn: systemd-oomd kills on memory pressure\n");
}

TEST_CASE("a second daemon is named") {
  const Host host;
  host.write("proc/10/comm", "cgphased\n");
  CHECK(host.of("neighbours") == "ok: a cgphase daemon runs\n");
  host.write("proc/11/comm", "cgphased\n");
  CHECK(host.of("neighbours").ends_with("warn: 2 cgphase daemons run\n"));
}

TEST_CASE("a host without anything readable still gets its findings") {
  const auto findings = examine({.cgroup = "/nonexistent/a",
                                 .proc = "/nonexistent/b",
                                 .sys = "/nonexistent/c",
                                 .state = "/nonexistent/d"});
  CHECK(worst(findings) == Level::fail);
  for (const Finding& finding : findings) CHECK_FALSE(finding.text.empty());
}

TEST_CASE("every finding that is not ok has a way out") {
  const Host host;
  host.remove("cgroup");
  host.remove("proc");
  host.write("proc/5/comm", "nomad\n");
  for (const Finding& finding : host.examine())
    if (finding.level != Level::ok && finding.name != "kernel")
      CHECK_MESSAGE(!finding.way_out.empty(), finding.text);
}

TEST_CASE("a hostile kernel release is escaped") {
  const Host host;
  host.write("proc/sys/kernel/osrelease", "6\x1b[2J");
  CHECK(host.of("kernel") == "ok: Linux 6\\x1b[2J\n");
}

TEST_CASE("the reply of doctor names the worst finding") {
  const auto body = doctor_reply({{Level::ok, "a", "t", ""}, {Level::fail, "b", "t", "w"}});
  CHECK(body["schema"] == 1);
  CHECK(body["worst"] == "fail");
  CHECK(body["findings"][1]["way_out"] == "w");
}

TEST_CASE("the clock is judged") { CHECK(examine_clock().name == "clock"); }
