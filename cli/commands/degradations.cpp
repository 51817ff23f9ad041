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

// cgroup_disable=cpu,memory: also what the firmware of a Raspberry Pi adds by itself.
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

// The row of a controller in /proc/cgroups ends in whether it is enabled; newer kernels have rows
// for those of cgroup v1 only.
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

// A kernel that has the one file of a controller, and not the other.
bool children_lack(const DoctorRoots& roots, std::string_view file, std::string_view beside) {
  return child_has(roots, beside) && !child_has(roots, file);
}

constexpr std::string_view kUnify =
    "boot with systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all on the kernel command line";
constexpr std::string_view kOnlyObserved =
    "containers are only observed; advise and enforce end the start with exit 6";
constexpr std::string_view kAnotherKernel =
    "look at the finding cgroup, or take a kernel that was built with it";
constexpr std::string_view kNoTraffic =
    "what containers read from disks and write is not seen: their phases are told apart by CPU and "
    "memory alone";
constexpr std::string_view kNoProcesses = "how many processes a container has is not told";

const std::array kRows = {
    Degradation{"cgroup", Level::fail, "no cgroup file system",
                "no container is seen; advise and enforce end the start with exit 6",
                "mount it: mount -t cgroup2 none /sys/fs/cgroup", no_cgroups},
    Degradation{"cgroup", Level::fail, "cgroup v1 only",
                "no container is seen; advise and enforce end the start with exit 6", kUnify,
                v1_only},
    Degradation{"cgroup", Level::fail, "hybrid: limits are on cgroup v1, only the rest on v2",
                kOnlyObserved, kUnify, hybrid},
    Degradation{"controllers", Level::fail, "the memory controller is switched off",
                kOnlyObserved,
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
    Degradation{"controllers", Level::warn, "the memory controller is not passed on by the root",
                "no container has a memory limit",
                "echo +memory >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units "
                "with limits",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "memory"); }},
    Degradation{"controllers", Level::warn, "the cpu controller is not passed on by the root",
                "no container has a CPU limit",
                "echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units "
                "with limits",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "cpu"); }},
    Degradation{"controllers", Level::warn, "no io controller in cgroup v2", kNoTraffic,
                "a kernel with CONFIG_BLK_CGROUP has it; limits do not depend on it",
                [](const DoctorRoots& roots) { return unified(roots) && !offered(roots, "io"); }},
    Degradation{"controllers", Level::warn, "the io controller is not passed on by the root",
                kNoTraffic,
                "echo +io >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units with "
                "IOAccounting=yes",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "io"); }},
    Degradation{"controllers", Level::warn, "no pids controller in cgroup v2", kNoProcesses,
                "a kernel with CONFIG_CGROUP_PIDS has it; phases and limits do not depend on it",
                [](const DoctorRoots& roots) {
                  return unified(roots) && !offered(roots, "pids");
                }},
    Degradation{"controllers", Level::warn, "the pids controller is not passed on by the root",
                kNoProcesses,
                "echo +pids >/sys/fs/cgroup/cgroup.subtree_control; systemd does it for units "
                "with TasksAccounting=yes, its default",
                [](const DoctorRoots& roots) { return not_passed_on(roots, "pids"); }},
    Degradation{"bandwidth", Level::fail, "no cpu.max beside cpu.weight",
                "CPU limits are neither seen nor set; those of memory are",
                "a kernel with CONFIG_CFS_BANDWIDTH has it (JetPack 6 may lack it)",
                [](const DoctorRoots& roots) {
                  return children_lack(roots, "cpu.max", "cpu.weight");
                }},
    Degradation{"burst", Level::warn, "no cpu.max.burst beside cpu.max",
                "a lowered CPU limit leaves short peaks no burst",
                "Linux 5.14 or newer has it",
                [](const DoctorRoots& roots) {
                  return children_lack(roots, "cpu.max.burst", "cpu.max");
                }},
    Degradation{"reclaim", Level::warn, "no memory.reclaim beside memory.max",
                "page cache that is in the way of a lower memory.high stays there, and so does the "
                "limit",
                "Linux 5.19 or newer has it",
                [](const DoctorRoots& roots) {
                  return children_lack(roots, "memory.reclaim", "memory.max");
                }},
    Degradation{"psi", Level::warn, "no pressure stall information",
                "refaults, major faults and throttling stand in for it, and the guard looks at "
                "intervals instead of being woken",
                "boot with psi=1 (Raspberry Pi OS: /boot/firmware/cmdline.txt); where that changes "
                "nothing the kernel was built without CONFIG_PSI (JetPack)",
                // Read, for older kernels have the file where PSI is off.
                [](const DoctorRoots& roots) {
                  return text_of(roots.proc + "/pressure/memory").empty();
                }},
    Degradation{"bpf", Level::warn, "no bpf system call",
                "network traffic, waits for a processor, requests to disks and who wrote a limit "
                "are not told; readings are of files",
                "a kernel with CONFIG_BPF_SYSCALL and CONFIG_CGROUP_BPF has it (JetPack 5 lacks "
                "it); phases and limits do not depend on it",
                // The one file of /proc that comes with it.
                [](const DoctorRoots& roots) {
                  return !is_there(roots.proc + "/sys/kernel/unprivileged_bpf_disabled");
                }},
    Degradation{"btf", Level::warn, "no kernel type information (BTF)",
                "of eBPF remain network traffic and waits for a processor; who wrote a limit is "
                "not told, and readings are of files",
                "a kernel with CONFIG_DEBUG_INFO_BTF has it (Raspberry Pi OS lacks it); phases and "
                "limits do not depend on it",
                [](const DoctorRoots& roots) {
                  return !is_there(roots.sys + "/kernel/btf/vmlinux");
                }},
    Degradation{"lockdown", Level::warn, "the kernel is locked down (confidentiality)",
                "BPF programs may not copy the kernel's memory: readings are of files, and who "
                "wrote a limit is not told",
                "boot with lockdown=integrity, or leave it: phases and limits do not depend on it",
                [](const DoctorRoots& roots) {
                  return has_word(text_of(roots.sys + "/kernel/security/lockdown"),
                                  "[confidentiality]");
                }},
    Degradation{"systemd", Level::warn, "systemd does not manage this machine",
                "the units of the package do nothing: nobody starts the daemon, or again after "
                "its end; then its companion alone restores limits",
                "let another service manager start cgphased, start it again, and run "
                "cgphase-restore when it ended (cgphased(8), cgphase-restore(8))",
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
