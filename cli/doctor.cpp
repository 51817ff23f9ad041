#include "cli/doctor.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/timex.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/protocol.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/units.h"
#include "collectors/neighbours.h"

namespace cgphase {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kSmallFileBytes = 256 * 1024;
constexpr std::uint64_t kDiskWarnBytes = 512 * kMiB;
constexpr std::uint64_t kDiskFailBytes = 64 * kMiB;

bool exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::optional<std::string> content(const std::string& path) {
  Result<std::string> text = read_file(path, kSmallFileBytes);
  if (!text) return std::nullopt;
  return std::string(trim(*text));
}

bool has_word(std::string_view text, std::string_view wanted) {
  std::string_view word;
  while (next_word(text, word))
    if (word == wanted) return true;
  return false;
}

Finding kernel(const DoctorRoots& roots) {
  const auto release = content(roots.proc + "/sys/kernel/osrelease");
  if (!release) return {Level::warn, "kernel", "the release cannot be read", ""};
  return {Level::ok, "kernel", "Linux " + printable(*release), ""};
}

Finding hierarchy(const DoctorRoots& roots) {
  constexpr const char* kUnify =
      "boot with systemd.unified_cgroup_hierarchy=1 (and without cgroup_no_v1); until then cgphase "
      "observes what it can see";
  if (exists(roots.cgroup + "/cgroup.controllers"))
    return {Level::ok, "cgroup", "unified cgroup v2 at " + printable(roots.cgroup), ""};
  if (exists(roots.cgroup + "/unified/cgroup.controllers"))
    return {Level::fail, "cgroup", "hybrid: limits are on cgroup v1, only the rest on v2", kUnify};
  if (exists(roots.cgroup + "/memory") || exists(roots.cgroup + "/cpu"))
    return {Level::fail, "cgroup", "cgroup v1 only", kUnify};
  return {Level::fail, "cgroup", "no cgroup hierarchy at " + printable(roots.cgroup),
          "mount it: mount -t cgroup2 none /sys/fs/cgroup"};
}

// The row of a controller in /proc/cgroups ends in whether it is enabled.
bool switched_off(const DoctorRoots& roots, std::string_view controller) {
  const auto table = content(roots.proc + "/cgroups");
  if (!table) return false;
  std::string_view rest = *table, line;
  while (next_line(rest, line)) {
    std::string_view name;
    std::string_view words = line;
    if (next_word(words, name) && name == controller) return trim(line).ends_with("0");
  }
  return false;
}

Finding controller(const DoctorRoots& roots, const std::string& name) {
  const auto offered = content(roots.cgroup + "/cgroup.controllers");
  const auto passed_on = content(roots.cgroup + "/cgroup.subtree_control");
  if (!offered || !has_word(*offered, name)) {
    const bool off = switched_off(roots, name);
    return {Level::fail, "controllers", "no " + name + " controller in cgroup v2",
            off ? "boot with cgroup_enable=" + name
                : "it is bound to cgroup v1 or not in this kernel; see the finding cgroup"};
  }
  if (!passed_on || !has_word(*passed_on, name))
    return {Level::warn, "controllers", name + " is there and not passed on to the root's children",
            "echo +" + name + " > " + roots.cgroup + "/cgroup.subtree_control (systemd does it for "
            "units with limits)"};
  return {Level::ok, "controllers", name + " controller", ""};
}

// A kernel without CONFIG_CFS_BANDWIDTH has the controller and no cpu.max.
std::vector<Finding> bandwidth(const DoctorRoots& roots) {
  std::error_code error;
  bool weight_seen = false;
  for (fs::directory_iterator entry(roots.cgroup, error), end; !error && entry != end;
       entry.increment(error)) {
    if (exists(entry->path().string() + "/cpu.max"))
      return {{Level::ok, "bandwidth", "cpu.max is there", ""}};
    weight_seen |= exists(entry->path().string() + "/cpu.weight");
  }
  if (!weight_seen) return {};
  return {{Level::fail, "bandwidth", "children have cpu.weight and no cpu.max",
           "this kernel has no CONFIG_CFS_BANDWIDTH: CPU limits cannot be set, memory can"}};
}

Finding pressure(const DoctorRoots& roots) {
  if (content(roots.proc + "/pressure/memory"))
    return {Level::ok, "psi", "pressure stall information", ""};
  return {Level::warn, "psi",
          "no pressure stall information; refaults, major faults and throttling stand in for it",
          "boot with psi=1 where the kernel has it"};
}

Finding btf(const DoctorRoots& roots) {
  if (exists(roots.sys + "/kernel/btf/vmlinux"))
    return {Level::ok, "btf", "kernel type information for eBPF", ""};
  return {Level::warn, "btf", "no kernel type information: eBPF counts network traffic only",
          "a kernel with CONFIG_DEBUG_INFO_BTF has it; nothing is lost but detail"};
}

Finding swap(const DoctorRoots& roots) {
  const auto table = content(roots.proc + "/swaps");
  if (!table) return {Level::ok, "swap", "none", ""};
  const auto areas = std::ranges::count(*table, '\n');  // the first line is a heading
  if (areas == 0)
    return {Level::ok, "swap",
            "none: anonymous memory cannot be reclaimed, memory.high is not used", ""};
  return {Level::ok, "swap", fmt::format("{} area{}", areas, areas == 1 ? "" : "s"), ""};
}

Finding disk(const DoctorRoots& roots) {
  fs::path path = roots.state;
  while (!exists(path.string()) && path.has_parent_path() && path != path.parent_path())
    path = path.parent_path();
  struct statvfs state {};
  if (::statvfs(path.c_str(), &state) != 0)
    return {Level::warn, "disk", "free space of " + printable(path.string()) + " cannot be read",
            ""};
  return judge_disk(roots.state, std::uint64_t{state.f_bavail} * state.f_frsize);
}

const char* way_out(NeighbourKind kind) {
  switch (kind) {
    case NeighbourKind::manager:
      return "containers are only observed; run cgphase where it does not manage limits";
    case NeighbourKind::copy: return "one per host may write: stop the others";
    case NeighbourKind::killer: return "every container keeps a larger memory margin";
    case NeighbourKind::monitor: return "its container keeps a larger memory margin";
  }
  return "";
}

// One daemon is what is wanted here; in its own eyes another one is a manager.
Finding daemons(std::ptrdiff_t count) {
  if (count == 1) return {Level::ok, "neighbours", "a cgphase daemon runs", ""};
  return {Level::warn, "neighbours", fmt::format("{} cgphase daemons run", count),
          way_out(NeighbourKind::copy)};
}

std::vector<Finding> neighbours(const DoctorRoots& roots) {
  const Result<Neighbours> found = find_neighbours(roots.proc);
  if (!found)
    return {{Level::warn, "neighbours", "who else acts on limits here cannot be seen: " +
                                            printable(found.error().text),
             "mount procfs at " + printable(roots.proc) + ", or look as root"}};
  std::vector<Finding> findings;
  std::string_view told;
  for (const NeighbourName& name : neighbour_names()) {
    const auto count = std::ranges::count(found->seen, &name, &Neighbour::name);
    if (count == 0 || told == name.text) continue;
    told = name.text;
    if (name.kind == NeighbourKind::copy) findings.push_back(daemons(count));
    else findings.push_back({Level::warn, "neighbours", name.text, way_out(name.kind)});
  }
  if (findings.empty())
    findings.push_back({Level::ok, "neighbours", "nobody else acts on limits here", ""});
  return findings;
}

const char* level_name(Level level) {
  switch (level) {
    case Level::ok: return "ok";
    case Level::warn: return "warn";
    case Level::fail: return "fail";
  }
  return "";
}

}  // namespace

Finding judge_disk(const std::string& path, std::uint64_t free_bytes) {
  const std::string text = human_bytes(static_cast<double>(free_bytes)) + " free for " +
                           printable(path);
  if (free_bytes >= kDiskWarnBytes) return {Level::ok, "disk", text, ""};
  return {free_bytes < kDiskFailBytes ? Level::fail : Level::warn, "disk", text,
          "the history takes up to 256 MiB: free some, or lower its cap; control goes on without"};
}

Finding examine_clock() {
  timex state{};  // modes = 0: only asks
  const int status = ::adjtimex(&state);
  if (status >= 0 && status != TIME_ERROR && (state.status & STA_UNSYNC) == 0)
    return {Level::ok, "clock", "synchronised", ""};
  return {Level::warn, "clock", "not synchronised: dates in the history may be wrong or jump",
          "run an NTP client (systemd-timesyncd, chrony); control does not depend on it"};
}

std::vector<Finding> examine(const DoctorRoots& roots) {
  std::vector<Finding> findings = {kernel(roots), hierarchy(roots), controller(roots, "cpu"),
                                   controller(roots, "memory")};
  const auto append = [&](std::vector<Finding> more) {
    findings.insert(findings.end(), more.begin(), more.end());
  };
  append(bandwidth(roots));
  append({pressure(roots), btf(roots), swap(roots), disk(roots)});
  append(neighbours(roots));
  return findings;
}

Level worst(const std::vector<Finding>& findings) {
  Level level = Level::ok;
  for (const Finding& finding : findings) level = std::max(level, finding.level);
  return level;
}

nlohmann::json doctor_reply(const std::vector<Finding>& findings) {
  nlohmann::json rows = nlohmann::json::array();
  for (const Finding& finding : findings)
    rows.push_back({{"level", level_name(finding.level)},
                    {"name", finding.name},
                    {"text", printable(finding.text)},
                    {"way_out", printable(finding.way_out)}});
  return ok_reply({{"worst", level_name(worst(findings))}, {"findings", std::move(rows)}});
}

}  // namespace cgphase
