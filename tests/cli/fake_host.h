// A host made of files for `cgphase doctor`.
#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "cli/commands/doctor.h"
#include "tests/agent/temporary_directory.h"

namespace cgphase::test {

// Files of a Debian 12 with unified cgroups; tests remove some.
class FakeHost {
 public:
  FakeHost() {
    write("cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
    write("cgroup/cgroup.subtree_control", "cpu io memory pids\n");
    write("cgroup/system.slice/cpu.max", "max 100000\n");
    write("cgroup/system.slice/cpu.max.burst", "0\n");
    write("cgroup/system.slice/cpu.weight", "100\n");
    write("cgroup/system.slice/memory.max", "max\n");
    write("cgroup/system.slice/memory.reclaim", "");
    write("proc/sys/kernel/osrelease", "6.1.0-28-amd64\n");
    write("proc/sys/kernel/unprivileged_bpf_disabled", "2\n");
    write("proc/cmdline", "quiet\n");
    write("proc/pressure/memory", "some avg10=0.00\n");
    write("proc/swaps", "Filename\tType\tSize\tUsed\tPriority\n");
    write("proc/1/comm", "systemd\n");
    write("proc/cgroups", "#subsys_name hierarchy num_cgroups enabled\ncpu 0 9 1\nmemory 0 9 1\n");
    write("sys/kernel/btf/vmlinux", "btf");
    std::filesystem::create_directories(tmp_ / "run/systemd/system");
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
                             .run = tmp_ / "run",
                             .state = tmp_ / "var/lib/cgphase"});
  }
  // Returns the findings of one name, one per line: "warn: text".
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

}  // namespace cgphase::test
