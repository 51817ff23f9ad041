#include "cli/commands/doctor.h"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <sys/timex.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/degradations.h"
#include "cli/run_program.h"
#include "collectors/neighbours.h"
#include "protocol/protocol.h"

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

Finding kernel(const DoctorRoots& roots) {
  const auto release = content(roots.proc + "/sys/kernel/osrelease");
  if (!release) return {Level::warn, "kernel", "the release cannot be read", ""};
  return {Level::ok, "kernel", "Linux " + printable(*release), ""};
}

// Text of a check that finds nothing missing. An empty text prints no finding: there was nothing to
// check.
struct Check {
  std::string_view name;
  std::string (*fine)(const DoctorRoots& roots);
};

constexpr Check kChecks[] = {
    {"cgroup",
     [](const DoctorRoots& roots) { return "unified cgroup v2 at " + printable(roots.cgroup); }},
    {"controllers",
     [](const DoctorRoots& roots) {
       return std::string(unified(roots) ? "cpu, memory, io and pids controllers" : "");
     }},
    {"bandwidth",
     [](const DoctorRoots& roots) {
       return std::string(child_has(roots, "cpu.max") ? "cpu.max is there" : "");
     }},
    {"burst",
     [](const DoctorRoots& roots) {
       return std::string(child_has(roots, "cpu.max.burst") ? "cpu.max.burst is there" : "");
     }},
    {"reclaim",
     [](const DoctorRoots& roots) {
       return std::string(child_has(roots, "memory.reclaim") ? "memory.reclaim is there" : "");
     }},
    {"psi", [](const DoctorRoots&) { return std::string("pressure stall information"); }},
    {"bpf", [](const DoctorRoots&) { return std::string("the bpf system call"); }},
    {"btf", [](const DoctorRoots&) { return std::string("kernel type information for eBPF"); }},
    {"lockdown",
     [](const DoctorRoots&) { return std::string("no lockdown that stops BPF programs"); }},
    {"systemd", [](const DoctorRoots&) { return std::string("systemd manages this machine"); }},
};

void add_findings(const Check& check, const DoctorRoots& roots, std::vector<Finding>& findings) {
  const std::size_t before = findings.size();
  for (const Degradation& row : degradations())
    if (row.check == check.name && row.found(roots))
      findings.push_back({row.level, std::string(row.check),
                          fmt::format("{}: {}", row.missing, row.cost), std::string(row.way_out)});
  if (findings.size() > before) return;
  if (std::string text = check.fine(roots); !text.empty())
    findings.push_back({Level::ok, std::string(check.name), std::move(text), ""});
}

Finding swap(const DoctorRoots& roots) {
  const auto table = content(roots.proc + "/swaps");
  if (!table) return {Level::ok, "swap", "none", ""};
  const auto areas = std::ranges::count(*table, '\n');  // the first line is a heading
  if (areas == 0)
    return {Level::ok, "swap",
            "none: anonymous memory cannot be reclaimed, so memory.high delays a container sooner",
            ""};
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
      return "containers are only observed; run cgphase on a host where it does not manage limits";
    case NeighbourKind::copy: return "only one per host may write: stop the others";
    case NeighbourKind::killer: return "every container keeps a larger memory margin";
    case NeighbourKind::scaler: return "those containers are only observed";
    case NeighbourKind::monitor: return "its container keeps a larger memory margin";
  }
  return "";
}

// The list of managers includes cgphase itself, but one running daemon is as it should be.
Finding daemons(std::ptrdiff_t count) {
  if (count == 1) return {Level::ok, "neighbours", "a cgphase daemon runs", ""};
  return {Level::warn, "neighbours", fmt::format("{} cgphase daemons run", count),
          way_out(NeighbourKind::copy)};
}

std::vector<Finding> neighbours(const DoctorRoots& roots) {
  const Result<Neighbours> found = find_neighbours(roots.proc);
  if (!found)
    return {{Level::warn, "neighbours",
             "other managers of limits cannot be detected: " + printable(found.error().text),
             "mount procfs at " + printable(roots.proc) + ", or run this as root"}};
  std::vector<Finding> findings;
  std::string_view printed;
  for (const NeighbourName& name : neighbour_names()) {
    const auto count = std::ranges::count(found->seen, &name, &Neighbour::name);
    if (count == 0 || printed == name.text) continue;
    printed = name.text;
    if (name.kind == NeighbourKind::copy) findings.push_back(daemons(count));
    else findings.push_back({Level::warn, "neighbours", name.text, way_out(name.kind)});
  }
  if (findings.empty())
    findings.push_back({Level::ok, "neighbours", "no other program acts on limits here", ""});
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
          "the history needs up to 256 MiB: free some space or lower store.cap; control works "
          "without it"};
}

namespace {

// Returns the first line of its errors, such as the dynamic linker's message about a missing
// library.
std::string complaint_of(const std::string& program) {
  const auto end = run_program({program, "--version"}, STDERR_FILENO);
  if (!end) return end.error().text;
  return printable(trim(end->said.substr(0, end->said.find('\n'))));
}

}  // namespace

Finding examine_programs(const std::string& daemon, const std::string& systemctl) {
  if (daemon.empty())
    return {Level::warn, "programs", "no cgphased beside this program or in /usr/sbin",
            "install the package cgphase"};
  const auto printed = run_program({daemon, "--version"}, STDOUT_FILENO);
  if (!printed || printed->exit != 0)
    return {Level::fail, "programs", daemon + " does not run here: " + complaint_of(daemon),
            "install the package built for this release of the system; it brings the libraries"};
  std::string text = std::string(trim(printed->said));
  if (!systemctl.empty())
    if (const auto system = run_program({systemctl, "--version"}, STDOUT_FILENO))
      text += '\n' + system->said.substr(0, system->said.find('\n'));
  std::string line;
  for (std::string_view rest = text, part; next_line(rest, part);)
    line += (line.empty() ? "" : ", ") + printable(part);
  return {Level::ok, "programs", std::move(line), ""};
}

Finding examine_clock() {
  timex state{};  // modes = 0: only reads
  const int status = ::adjtimex(&state);
  if (status >= 0 && status != TIME_ERROR && (state.status & STA_UNSYNC) == 0)
    return {Level::ok, "clock", "synchronised", ""};
  return {Level::warn, "clock", "not synchronised: dates in the history may be wrong or jump",
          "run an NTP client (systemd-timesyncd, chrony); control does not depend on it"};
}

std::vector<Finding> examine(const DoctorRoots& roots) {
  std::vector<Finding> findings = {kernel(roots)};
  for (const Check& check : kChecks) add_findings(check, roots, findings);
  findings.push_back(swap(roots));
  findings.push_back(disk(roots));
  for (Finding& finding : neighbours(roots)) findings.push_back(std::move(finding));
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
