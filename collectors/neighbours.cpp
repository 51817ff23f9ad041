#include "collectors/neighbours.h"

#include <dirent.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/file.h"
#include "base/parse.h"
#include "collectors/containers/recognise.h"
#include "collectors/process_cgroup.h"

namespace cgphase {
namespace {

constexpr std::size_t kCommBytes = 256;
constexpr std::size_t kStatusBytes = 64 * 1024;
constexpr std::size_t kLinkBytes = 4096;

using enum NeighbourKind;
constexpr NeighbourName kNames[] = {
    {"kubelet", manager, "the kubelet manages limits here"},
    {"k3s-server", manager, "k3s manages limits here"},
    {"k3s-agent", manager, "k3s manages limits here"},
    {"kubelite", manager, "MicroK8s manages limits here"},
    {"koordlet", manager, "koordlet manages limits here"},
    {"slurmd", manager, "Slurm manages limits here"},
    {"slurmstepd", manager, "a Slurm job runs here"},
    {"nomad", manager, "Nomad manages limits here"},
    {"cgphased", copy, "another cgphase daemon runs here"},
    {"systemd-oomd", killer, "systemd-oomd kills on memory pressure"},
    {"earlyoom", killer, "earlyoom kills when memory runs short"},
    {"oomd", killer, "oomd kills on memory pressure"},
    {"raylet", monitor, "Ray's memory monitor kills near the limit"},
    {"dask-worker", monitor, "Dask's memory monitor kills near the limit"},
};

// What matters of /proc/PID/status; absent where the file does not tell.
struct ProcessStatus {
  bool ended = false;  // a zombie
  std::optional<std::uint64_t> parent, effective_uid;
  bool nested = false;  // it has more pids than the one shown here: a pid namespace of its own
};

const NeighbourName* find_name(std::string_view process) {
  const auto row = std::ranges::find(kNames, process, &NeighbourName::process);
  return row == std::end(kNames) ? nullptr : row;
}

std::optional<std::uint64_t> nth_number(std::string_view words, int n) {
  std::string_view word;
  for (int i = 0; i <= n; ++i)
    if (!next_word(words, word)) return std::nullopt;
  return parse_u64(word);
}

ProcessStatus read_status(const std::string& process) {
  ProcessStatus status;
  const auto text = read_file(process + "/status", kStatusBytes);
  if (!text) return status;
  std::string_view rest = *text, line, key;
  while (next_line(rest, line)) {
    if (!next_word(line, key)) continue;
    if (key == "State:") status.ended = trim(line).starts_with('Z');
    else if (key == "PPid:") status.parent = nth_number(line, 0);
    else if (key == "Uid:") status.effective_uid = nth_number(line, 1);
    else if (key == "NSpid:") status.nested = nth_number(line, 1).has_value();
  }
  return status;
}

std::string read_link(const std::string& path) {
  std::array<char, kLinkBytes> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

// The name of the program; after an upgrade the kernel adds that the file is gone.
std::string program_name(const std::string& process) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::string path = read_link(process + "/exe");
  if (path.ends_with(kDeleted)) path.resize(path.size() - kDeleted.size());
  return path.substr(path.rfind('/') + 1);
}

struct ReadName {
  const NeighbourName* name = nullptr;
  bool no_program = false;  // as of a thread of the kernel
};

// A process may change its comm. An error where it lives and could be read at another time.
Result<ReadName> name_of(const std::string& process) {
  const auto comm = read_file(process + "/comm", kCommBytes);
  if (!comm) {
    const bool hidden = comm.error().kind == ErrorKind::denied;
    const bool ended = ::access(process.c_str(), F_OK) != 0;
    if (hidden || ended) return ReadName();
    return std::unexpected(comm.error());
  }
  if (const NeighbourName* name = find_name(trim(*comm))) return ReadName{name};
  const std::string program = program_name(process);
  return ReadName{find_name(program), program.empty()};
}

// By /proc/PID/stat: a flag of the kernel's (PF_KTHREAD), and who made it (kthreadd).
bool is_kernel_thread(const std::string& process) {
  constexpr std::uint64_t kFlag = 0x0020'0000, kMaker = 2;
  constexpr int kParent = 0, kFlags = 5;  // behind the state
  const auto text = read_file(process + "/stat", kStatusBytes);
  // The name before it is in brackets, and may have any of its own.
  const std::size_t end = text ? text->rfind(") ") : std::string::npos;
  if (end == std::string::npos) return false;
  std::string_view rest = std::string_view(*text).substr(end + 2), state;
  if (!next_word(rest, state)) return false;
  return nth_number(rest, kParent) == kMaker &&
         (nth_number(rest, kFlags).value_or(0) & kFlag) != 0;
}

bool may_manage(const ProcessStatus& status) {
  return !status.effective_uid || *status.effective_uid == 0 ||
         *status.effective_uid == ::geteuid();
}

std::optional<Neighbour> neighbour_at(const std::string& process, const NeighbourName* name,
                                      pid_t pid, pid_t self, const CgroupPath& above_root) {
  const ProcessStatus status = read_status(process);
  if (status.ended || status.parent == static_cast<std::uint64_t>(self)) return std::nullopt;
  const CgroupPath cgroup = cgroup_of_process(process);
  Neighbour neighbour{name, pid, path_below(cgroup, above_root)};
  if (name->kind == monitor) return neighbour;
  const bool inside = status.nested || is_in_container(cgroup);
  if (inside || (name->kind != killer && !may_manage(status))) return std::nullopt;
  return neighbour;
}

// Ours, as `proc_root` numbers it; which may be the /proc of another pid namespace.
pid_t own_pid(const std::string& proc_root) {
  const auto self = parse_u64(read_link(proc_root + "/self"));
  return self ? static_cast<pid_t>(*self) : ::getpid();
}

}  // namespace

std::span<const NeighbourName> neighbour_names() { return kNames; }

std::string describe(const Neighbour& neighbour) {
  return std::string(neighbour.name->text) + " (pid " + std::to_string(neighbour.pid) + ")";
}

// The kernel's /proc tells them in this order anyway.
void KernelThreads::end() {
  std::ranges::sort(met_, {}, &Thread::pid);
  known_.swap(met_);
}

bool KernelThreads::meet(pid_t pid, std::uint64_t inode) {
  const auto at = std::ranges::lower_bound(known_, pid, {}, &Thread::pid);
  if (at == known_.end() || at->pid != pid || at->inode != inode) return false;
  met_.push_back(*at);
  return true;
}

Result<Neighbours> find_neighbours(const std::string& proc_root, KernelThreads* threads,
                                   const CgroupPath& above_root) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(proc_root.c_str()), ::closedir);
  if (!directory) return errno_failure(proc_root, errno);
  const pid_t self = own_pid(proc_root);
  Neighbours found;
  std::size_t processes = 0, monitors = 0;
  if (threads != nullptr) threads->begin();
  while (const dirent* entry = ::readdir(directory.get())) {
    const auto pid = parse_u64(entry->d_name);
    if (!pid || *pid == static_cast<std::uint64_t>(self)) continue;
    if (processes++ == kMostProcesses) {
      found.complete = false;
      break;
    }
    const auto number = static_cast<pid_t>(*pid);
    if (threads != nullptr && threads->meet(number, entry->d_ino)) continue;
    const std::string process = proc_root + "/" + entry->d_name;
    const Result<ReadName> read = name_of(process);
    if (!read) return std::unexpected(read.error());
    if (read->name == nullptr) {
      if (threads != nullptr && read->no_program && is_kernel_thread(process))
        threads->add(number, entry->d_ino);
      continue;
    }
    auto neighbour = neighbour_at(process, read->name, number, self, above_root);
    if (!neighbour) continue;
    const bool room = neighbour->name->kind != monitor || monitors++ < kMostMonitors;
    if (room) found.seen.push_back(std::move(*neighbour));
    else found.complete = false;
  }
  if (threads != nullptr) threads->end();
  std::ranges::stable_sort(found.seen, {}, &Neighbour::name);
  return found;
}

}  // namespace cgphase
