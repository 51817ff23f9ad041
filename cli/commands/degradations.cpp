#include "cli/commands/degradations.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostTextBytes = 64 * 1024;

bool is_there(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string text_of(const std::string& path) {
  const Result<std::string> text = read_file(path, kMostTextBytes);
  return text ? *text : "";
}

bool has_word(std::string_view text, std::string_view wanted) {
  std::string_view word;
  while (next_word(text, word))
    if (word == wanted) return true;
  return false;
}

bool hybrid(const DoctorRoots& roots) {
  return !unified(roots) && is_there(roots.cgroup + "/unified/cgroup.controllers");
}

bool v1_only(const DoctorRoots& roots) {
  return !unified(roots) && !hybrid(roots) &&
         (is_there(roots.cgroup + "/memory") || is_there(roots.cgroup + "/cpu"));
}

bool no_cgroups(const DoctorRoots& roots) {
  return !unified(roots) && !hybrid(roots) && !v1_only(roots);
}

bool offered(const DoctorRoots& roots, std::string_view controller) {
  return has_word(text_of(roots.cgroup + "/cgroup.controllers"), controller);
}

// cgroup_disable=cpu,memory on the kernel command line. The firmware of a Raspberry Pi adds it by
// itself.
bool disabled_at_boot(const DoctorRoots& roots, std::string_view controller) {
  constexpr std::string_view kOption = "cgroup_disable=";
  const std::string line = text_of(roots.proc + "/cmdline");
  std::string_view rest = line, word;
  while (next_word(rest, word)) {
    if (!word.starts_with(kOption)) continue;
    std::string names(word.substr(kOption.size()));
    std::ranges::replace(names, ',', ' ');
    if (has_word(names, controller)) return true;
  }
  return false;
}

// The last column of a row in /proc/cgroups says whether the controller is enabled. Newer kernels
// list only controllers of cgroup v1 there.
bool disabled_in_table(const DoctorRoots& roots, std::string_view controller) {
  const std::string table = text_of(roots.proc + "/cgroups");
  std::string_view rest = table, line;
  while (next_line(rest, line)) {
    std::string_view words = line, name;
    if (next_word(words, name) && name == controller) return trim(line).ends_with("0");
  }
  return false;
}

bool switched_off(const DoctorRoots& roots, std::string_view controller) {
  return unified(roots) && !offered(roots, controller) &&
         (disabled_at_boot(roots, controller) || disabled_in_table(roots, controller));
}

bool not_there(const DoctorRoots& roots, std::string_view controller) {
  return unified(roots) && !offered(roots, controller) && !switched_off(roots, controller);
}

bool not_passed_on(const DoctorRoots& roots, std::string_view controller) {
  return offered(roots, controller) &&
         !has_word(text_of(roots.cgroup + "/cgroup.subtree_control"), controller);
}

// True if the kernel has the file `beside` of a controller, but not `file`.
bool children_lack(const DoctorRoots& roots, std::string_view file, std::string_view beside) {
  return child_has(roots, beside) && !child_has(roots, file);
}

constexpr std::string_view kUnify =
    "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all on the kernel command line";
constexpr std::string_view kOnlyObserved =
    "containers are only observed; in advise or enforce the daemon exits with status 6";
constexpr std::string_view kAnotherKernel =
    "see the finding cgroup, or use a kernel that was built with it";
constexpr std::string_view kNoTraffic =
    "disk reads and writes of containers are not measured; phases depend on CPU and memory alone";
constexpr std::string_view kNoProcesses = "the number of processes of a container is not measured";

const std::array kRows = {
    Degradation{"cgroup", Level::fail, "no cgroup file system",
                "no container is seen; in advise or enforce the daemon exits with status 6",
                "mount it: mount -t cgroup2 none /sys/fs/cgroup", no_cgroups},
    Degradation{"cgroup", Level::fail, "cgroup v1 only",
                "no container is seen; in advise or enforce the daemon exits with status 6", kUnify,
                v1_only},
    Degradation{"cgroup", Level::fail, "hybrid: limits are on cgroup v1, only the rest is on v2",
                kOnlyObserved, kUnify, hybrid},
    Degradation{"controllers", Level::fail, "the memory controller is switched off", kOnlyObserved,
                "boot with cgroup_enable=memory and without cgroup_disable=memory (Raspberry Pi "
                "OS: /boot/firmware/cmdline.txt)",
                [](const DoctorRoots& roots) { return switched_off(roots, "memory"); }},
    Degradation{"controllers", Level::fail, "the cpu controller is switched off", kOnlyObserved,
                "boot without cgroup_disable=cpu",
                [](const DoctorRoots& roots) { return switched_off(roots, "cpu"); }},
    Degradation{"controllers", Level::fail, "no memory controller in cgroup v2", kOnlyObserved,
                kAnotherKernel,
                [](const DoctorRoots& roots) { return not_there(roots, "memory"); }},
    Degradation{"controllers", Level::fail, "no cpu controller in cgroup v2", kOnlyObserved,
                kAnotherKernel, [](const DoctorRoots& roots) { return not_there(roots, "cpu"); }},
    Degradation{"controllers", Level::warn, "the root cgroup does not enable the memory controller",
                "no container has a memory limit",
                "echo +memory >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units "
                "with limits",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "memory"); }},
    Degradation{"controllers", Level::warn, "the root cgroup does not enable the cpu controller",
                "no container has a CPU limit",
                "echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units "
                "with limits",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "cpu"); }},
    Degradation{"controllers", Level::warn, "no io controller in cgroup v2", kNoTraffic,
                "a kernel with CONFIG_BLK_CGROUP has it; limits do not depend on it",
                [](const DoctorRoots& roots) { return unified(roots) && !offered(roots, "io"); }},
    Degradation{"controllers", Level::warn, "the root cgroup does not enable the io controller",
                kNoTraffic,
                "echo +io >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units with "
                "IOAccounting=yes",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "io"); }},
    Degradation{"controllers", Level::warn, "no pids controller in cgroup v2", kNoProcesses,
                "a kernel with CONFIG_CGROUP_PIDS has it; phases and limits do not depend on it",
                [](const DoctorRoots& roots) { return unified(roots) && !offered(roots, "pids"); }},
    Degradation{"controllers", Level::warn, "the root cgroup does not enable the pids controller",
                kNoProcesses,
                "echo +pids >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units "
                "with TasksAccounting=yes, its default",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "pids"); }},
    Degradation{
        "bandwidth", Level::fail, "no cpu.max beside cpu.weight",
        "CPU limits are neither read nor set; memory limits are",
        "a kernel with CONFIG_CFS_BANDWIDTH has it (JetPack 6 may lack it)",
        [](const DoctorRoots& roots) { return children_lack(roots, "cpu.max", "cpu.weight"); }},
    Degradation{
        "burst", Level::warn, "no cpu.max.burst beside cpu.max",
        "a lowered CPU limit allows no bursts", "Linux 5.14 or newer has it",
        [](const DoctorRoots& roots) { return children_lack(roots, "cpu.max.burst", "cpu.max"); }},
    Degradation{"reclaim", Level::warn, "no memory.reclaim beside memory.max",
                "if page cache is in the way of a lower memory.high, the limit is not lowered",
                "Linux 5.19 or newer has it",
                [](const DoctorRoots& roots) {
                  return children_lack(roots, "memory.reclaim", "memory.max");
                }},
    Degradation{
        "psi", Level::warn, "no pressure stall information",
        "refaults, major faults and throttling replace it; the fast path polls instead of waiting "
        "for events",
        "boot with psi=1 (Raspberry Pi OS: /boot/firmware/cmdline.txt); if that changes nothing, "
        "the kernel was built without CONFIG_PSI (JetPack)",
        // The content decides: older kernels have the file even if PSI is off.
        [](const DoctorRoots& roots) { return text_of(roots.proc + "/pressure/memory").empty(); }},
    Degradation{"bpf", Level::warn, "no bpf system call",
                "network traffic, CPU wait times, disk requests and the writer of a limit are "
                "unknown; samples come from files",
                "a kernel with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF has it (JetPack 5 lacks "
                "it); phases and limits do not depend on it",
                // The only file in /proc that depends on the system call.
                [](const DoctorRoots& roots) {
                  return !is_there(roots.proc + "/sys/kernel/unprivileged_bpf_disabled");
                }},
    Degradation{
        "btf", Level::warn, "no kernel type information (BTF)",
        "eBPF measures only network traffic and CPU wait times; the writer of a limit is unknown, "
        "and samples come from files",
        "a kernel with CONFIG_DEBUG_INFO_BTF has it (Raspberry Pi OS lacks it); phases and "
        "limits do not depend on it",
        [](const DoctorRoots& roots) { return !is_there(roots.sys + "/kernel/btf/vmlinux"); }},
    Degradation{"lockdown", Level::warn, "the kernel is locked down (confidentiality)",
                "BPF programs may not read kernel memory: samples come from files, and the writer "
                "of a limit is unknown",
                "boot with lockdown=integrity, or leave it: phases and limits do not depend on it",
                [](const DoctorRoots& roots) {
                  return has_word(text_of(roots.sys + "/kernel/security/lockdown"),
                                  "[confidentiality]");
                }},
    Degradation{"systemd", Level::warn, "systemd does not manage this machine",
                "the packaged units have no effect: nothing starts or restarts the daemon; if it "
                "dies, only its companion restores limits",
                "let another service manager start and restart cgphased, and run cgphase-restore "
                "when it has ended (cgphased(8), cgphase-restore(8))",
                [](const DoctorRoots& roots) { return !is_there(roots.run + "/systemd/system"); }},
};

}  // namespace

std::span<const Degradation> degradations() { return kRows; }

bool unified(const DoctorRoots& roots) { return is_there(roots.cgroup + "/cgroup.controllers"); }

bool child_has(const DoctorRoots& roots, std::string_view file) {
  std::error_code error;
  for (fs::directory_iterator entry(roots.cgroup, error), end; !error && entry != end;
       entry.increment(error))
    if (is_there((entry->path() / file).string())) return true;
  return false;
}

}  // namespace cgphase
