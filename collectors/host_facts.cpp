#include "collectors/host_facts.h"

#include <unistd.h>

#include <array>
#include <optional>

#include "base/fd.h"
#include "base/file.h"
#include "base/parse.h"
#include "cgroupfs/cgroup_directory.h"

namespace cgphase {
namespace {

constexpr std::size_t kProcBytes = 1 << 20;  // stat has a line per processor and interrupt
constexpr std::size_t kControllerBytes = 4096;

// Counts lines "cpu0 ...", without the sum "cpu ...".
int count_processors(std::string_view stat) {
  int count = 0;
  std::string_view line;
  while (next_line(stat, line))
    if (line.size() > 3 && line.starts_with("cpu") && line[3] >= '0' && line[3] <= '9') ++count;
  return count;
}

bool has_word(std::string_view text, std::string_view wanted) {
  std::string_view word;
  while (next_word(text, word))
    if (word == wanted) return true;
  return false;
}

Source controller_source(int root_fd, const std::string& name) {
  Source source{name + " controller", false, ""};
  const auto available = read_file_at(root_fd, "cgroup.controllers", kControllerBytes);
  const auto enabled = read_file_at(root_fd, "cgroup.subtree_control", kControllerBytes);
  if (!available)
    source.detail = "the root has no readable cgroup.controllers";
  else if (!has_word(*available, name))
    source.detail =
        "not in the root's cgroup.controllers: the kernel lacks it, cgroup_disable= "
        "turns it off, or cgroup v1 uses it";
  else if (enabled && !has_word(*enabled, name))
    source.detail = "not enabled for child cgroups: echo +" + name + " into the root's "
                    "cgroup.subtree_control";
  else
    source.present = true;
  return source;
}

Source pressure_source(const std::string& proc_root) {
  const bool present = read_file(proc_root + "/pressure/cpu", kControllerBytes).has_value();
  return {"PSI", present,
          present ? ""
                  : "no readable pressure/cpu in " + proc_root +
                        ": boot with psi=1 if the kernel supports it"};
}

Source swap_source(const std::string& proc_root) {
  const auto meminfo = read_file(proc_root + "/meminfo", kProcBytes);
  const auto total = meminfo ? meminfo_bytes(*meminfo, "SwapTotal:") : std::nullopt;
  const bool present = total && total->value > 0;
  return {"swap", present, present ? "" : "the host has no swap"};
}

}  // namespace

std::optional<Bytes> meminfo_bytes(std::string_view text, std::string_view key) {
  std::string_view line, word;
  while (next_line(text, line)) {
    if (!next_word(line, word) || word != key || !next_word(line, word)) continue;
    const std::optional<std::uint64_t> kilobytes = parse_u64(word);
    if (!kilobytes || *kilobytes > UINT64_MAX / 1024) return std::nullopt;
    return Bytes{*kilobytes * 1024};
  }
  return std::nullopt;
}

HostCapacity read_host_capacity(const std::string& proc_root) {
  HostCapacity host;
  if (const auto stat = read_file(proc_root + "/stat", kProcBytes))
    host.cpu_cores = count_processors(*stat);
  if (const auto meminfo = read_file(proc_root + "/meminfo", kProcBytes)) {
    host.memory = meminfo_bytes(*meminfo, "MemTotal:").value_or(Bytes{});
    host.swap = meminfo_bytes(*meminfo, "SwapTotal:").value_or(Bytes{});
  }
  if (const long page = ::sysconf(_SC_PAGESIZE); page > 0)
    host.page = Bytes{static_cast<std::uint64_t>(page)};
  return host;
}

std::vector<Source> find_sources(int root_fd, const std::string& proc_root) {
  const bool cgroup2 = is_cgroup2(root_fd);
  const char* const absent = root_fd < 0 ? "no cgroup v2 is mounted, so no container can be sampled"
                                         : "the root is a plain directory, not a cgroup2 mount";
  std::vector<Source> sources = {{"cgroup v2", cgroup2, cgroup2 ? "" : absent}};
  for (const char* name : {"cpu", "memory", "io", "pids"})
    sources.push_back(controller_source(root_fd, name));
  sources.push_back(pressure_source(proc_root));
  sources.push_back(swap_source(proc_root));
  return sources;
}

}  // namespace cgphase
