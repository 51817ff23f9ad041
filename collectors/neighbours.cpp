#include "collectors/neighbours.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/held_place.h"
#include "base/parse.h"
#include "collectors/containers/recognise.h"
#include "collectors/process_cgroup.h"

namespace cgphase {
namespace {

constexpr std::size_t kCommBytes = 256;
constexpr std::size_t kStatusBytes = 64 * 1024;
constexpr std::size_t kLinkBytes = 4096;
constexpr std::string_view kInterpreter = "python";

using enum NeighbourKind;
constexpr NeighbourName kNames[] = {
    {"kubelet", manager, "the kubelet manages limits here"},
    {"kubelet", manager, "the kubelet manages limits here", "hyperkube"},
    {"k3s-server", manager, "k3s manages limits here", "k3s"},
    {"k3s-agent", manager, "k3s manages limits here", "k3s"},
    {"rke2", manager, "RKE2 manages limits here"},
    {"kubelite", manager, "MicroK8s manages limits here"},
    {"koordlet", manager, "koordlet manages limits here"},
    {"slurmd", manager, "Slurm manages limits here"},
    {"slurmstepd", manager, "a Slurm job runs here"},
    {"nomad", manager, "Nomad manages limits here"},
    {"lxc_autoscale", manager, "proxmox-lxc-autoscale changes limits here", {},
     "lxc_autoscale.service"},
    {"cgphased", copy, "another cgphase daemon runs here"},
    {"systemd-oomd", killer, "systemd-oomd kills on memory pressure"},
    {"earlyoom", killer, "earlyoom kills when memory runs short"},
    {"oomd", killer, "oomd kills on memory pressure"},
    {"sablier", scaler, "Sablier changes limits of containers with sablier.enable=true"},
    {"raylet", monitor, "Ray's memory monitor kills near the limit"},
    {"dask-worker", monitor, "Dask's memory monitor kills near the limit"},
    {"gitlab-runner", monitor, "GitLab Runner's jobs have sudden peaks"},
    {"buildkitd", monitor, "BuildKit's builds have sudden peaks"},
};

// The needed fields of /proc/PID/status; absent if the file lacks them.
struct ProcessStatus {
  bool ended = false;  // a zombie
  std::optional<std::uint64_t> parent, real_uid, effective_uid, capabilities;
  bool nested = false;  // it has several pids: it is in its own pid namespace
};

// The target of /proc/PID/exe; the path is empty if it cannot be read.
struct Program {
  std::string path;
  std::string_view name() const { return std::string_view(path).substr(path.rfind('/') + 1); }
};

std::optional<std::uint64_t> nth_number(std::string_view words, int n) {
  std::string_view word;
  for (int i = 0; i <= n; ++i)
    if (!next_word(words, word)) return std::nullopt;
  return parse_u64(word);
}

std::optional<std::uint64_t> parse_hexadecimal(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
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
    else if (key == "Uid:") status.real_uid = nth_number(line, 0),
                            status.effective_uid = nth_number(line, 1);
    else if (key == "CapEff:") status.capabilities = parse_hexadecimal(trim(line));
    else if (key == "NSpid:") status.nested = nth_number(line, 1).has_value();
  }
  return status;
}

std::string read_link(const std::string& path) {
  std::array<char, kLinkBytes> target{};
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : std::string();
}

// After an upgrade the kernel appends that the file is deleted.
Program read_program(const std::string& process) {
  constexpr std::string_view kDeleted = " (deleted)";
  Program program{read_link(process + "/exe")};
  if (program.path.ends_with(kDeleted))
    program.path.resize(program.path.size() - kDeleted.size());
  return program;
}

// True if it affects only containers of its own.
bool is_local(const NeighbourName& row) { return row.kind == monitor || row.kind == scaler; }

bool is_in_unit(const std::string& process, std::string_view unit) {
  const CgroupPath cgroup = cgroup_of_process(process);
  return std::string_view(cgroup).substr(cgroup.rfind('/') + 1) == unit;
}

bool is_named(const NeighbourName& row, std::string_view comm, const Program& program,
              const std::string& process) {
  if (!row.unit.empty() && program.name().starts_with(kInterpreter))
    return is_in_unit(process, row.unit);
  if (is_local(row)) return comm == row.process || program.name() == row.process;
  if (program.path.empty()) return comm == row.process;
  if (row.program.empty()) return program.name() == row.process;
  return program.name() == row.program && comm == row.process;
}

struct Candidate {
  const NeighbourName* name = nullptr;
  Program program;
};

// Returns an error if the process lives and could be read at another time.
Result<Candidate> candidate_at(const std::string& process) {
  const auto comm = read_file(process + "/comm", kCommBytes);
  if (!comm) {
    const bool hidden = comm.error().kind == ErrorKind::denied;
    const bool ended = ::access(process.c_str(), F_OK) != 0;
    if (hidden || ended) return Candidate();
    return std::unexpected(comm.error());
  }
  Candidate candidate{nullptr, read_program(process)};
  const auto row = std::ranges::find_if(kNames, [&](const NeighbourName& one) {
    return is_named(one, trim(*comm), candidate.program, process);
  });
  if (row != std::end(kNames)) candidate.name = row;
  return candidate;
}

// Recognised in /proc/PID/stat by a flag of the kernel (PF_KTHREAD) and by the parent (kthreadd).
bool is_kernel_thread(const std::string& process) {
  constexpr std::uint64_t kFlag = 0x0020'0000, kMaker = 2;
  constexpr int kParent = 0, kFlags = 5;  // index after the state
  const auto text = read_file(process + "/stat", kStatusBytes);
  // The name before it is in brackets, and may contain brackets itself.
  const std::size_t end = text ? text->rfind(") ") : std::string::npos;
  if (end == std::string::npos) return false;
  std::string_view rest = std::string_view(*text).substr(end + 2), state;
  if (!next_word(rest, state)) return false;
  return nth_number(rest, kParent) == kMaker &&
         (nth_number(rest, kFlags).value_or(0) & kFlag) != 0;
}

bool is_trusted(uid_t user) { return user == 0 || user == ::geteuid(); }

// A directory that is not in our mount namespace is trusted, because nothing is known of it.
bool is_trusted_directory(const std::string& directory) {
  const uid_t trusted[] = {0, ::geteuid()};
  struct stat status{};
  return ::stat(directory.c_str(), &status) != 0 || is_exclusive(status, trusted);
}

bool is_our_program(const struct stat& file) {
  struct stat ours{};
  return ::stat("/proc/self/exe", &ours) == 0 && ours.st_dev == file.st_dev &&
         ours.st_ino == file.st_ino;
}

// True if only root can have placed the program there and have root run it.
bool is_trusted_program(const std::string& process, const Program& program) {
  struct stat file{};
  if (program.path.empty() || ::stat((process + "/exe").c_str(), &file) != 0) return true;
  if ((file.st_mode & (S_ISUID | S_ISGID)) != 0) return false;
  if (is_our_program(file)) return true;
  if (!is_trusted(file.st_uid) || (file.st_mode & (S_IWGRP | S_IWOTH)) != 0) return false;
  for (std::size_t end = program.path.rfind('/'); end != std::string::npos && end > 0;
       end = program.path.rfind('/', end - 1))
    if (!is_trusted_directory(program.path.substr(0, end))) return false;
  return true;
}

bool runs_as_root(const ProcessStatus& status) {
  const auto trusted = [](std::optional<std::uint64_t> uid) {
    return !uid || (*uid <= UINT32_MAX && is_trusted(static_cast<uid_t>(*uid)));
  };
  return trusted(status.real_uid) && trusted(status.effective_uid);
}

bool may_kill(const ProcessStatus& status) {
  constexpr std::uint64_t kCapKill = 1ULL << 5;
  return runs_as_root(status) || !status.capabilities || (*status.capabilities & kCapKill) != 0;
}

// True if an ordinary user may have started it there.
bool is_users(std::string_view cgroup, bool also_sessions) {
  while (!cgroup.empty()) {
    cgroup.remove_prefix(1);
    const std::string_view element = cgroup.substr(0, cgroup.find('/'));
    if (also_sessions && element == "user.slice") return true;
    if (element.starts_with("user@") && element.ends_with(".service")) return true;
    cgroup.remove_prefix(element.size());
  }
  return false;
}

std::optional<Neighbour> neighbour_at(const std::string& process, const Candidate& candidate,
                                      pid_t pid, pid_t self, const CgroupPath& above_root) {
  const NeighbourName* const name = candidate.name;
  const ProcessStatus status = read_status(process);
  if (status.ended || status.parent == static_cast<std::uint64_t>(self)) return std::nullopt;
  const CgroupPath cgroup = cgroup_of_process(process);
  Neighbour neighbour{name, pid, path_below(cgroup, above_root)};
  if (is_local(*name)) return neighbour;
  if (status.nested || is_in_container(cgroup)) return std::nullopt;
  const bool unproven = candidate.program.path.empty() || name->kind == killer;
  if (is_users(cgroup, unproven)) return std::nullopt;
  if (!(name->kind == killer ? may_kill(status) : runs_as_root(status))) return std::nullopt;
  if (!is_trusted_program(process, candidate.program)) return std::nullopt;
  return neighbour;
}

// Our pid in the numbering of `proc_root`, which may belong to another pid namespace.
pid_t own_pid(const std::string& proc_root) {
  const auto self = parse_u64(read_link(proc_root + "/self"));
  return self ? static_cast<pid_t>(*self) : ::getpid();
}

}  // namespace

std::span<const NeighbourName> neighbour_names() { return kNames; }

std::string describe(const Neighbour& neighbour) {
  return std::string(neighbour.name->text) + " (pid " + std::to_string(neighbour.pid) + ")";
}

// /proc lists them in this order anyway.
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
  std::set<std::pair<const NeighbourName*, CgroupPath>> monitored;
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
    const Result<Candidate> candidate = candidate_at(process);
    if (!candidate) return std::unexpected(candidate.error());
    if (candidate->name == nullptr) {
      const bool no_program = candidate->program.path.empty();
      if (threads != nullptr && no_program && is_kernel_thread(process))
        threads->add(number, entry->d_ino);
      continue;
    }
    auto neighbour = neighbour_at(process, *candidate, number, self, above_root);
    if (!neighbour) continue;
    // One monitor of each name and cgroup is enough.
    const bool local = is_local(*neighbour->name);
    if (local && !neighbour->cgroup.empty() &&
        !monitored.emplace(neighbour->name, neighbour->cgroup).second)
      continue;
    const bool room = !local || monitors++ < kMostMonitors;
    if (room) found.seen.push_back(std::move(*neighbour));
    else found.complete = false;
  }
  if (threads != nullptr) threads->end();
  std::ranges::stable_sort(found.seen, {}, &Neighbour::name);
  return found;
}

}  // namespace cgphase
