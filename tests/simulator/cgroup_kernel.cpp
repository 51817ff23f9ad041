#include "tests/simulator/cgroup_kernel.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"

namespace cgphase::simulator {

CgroupKernel::CgroupKernel(const Machine& machine) : machine_(machine) {
  Cgroup root;
  root.inode = kRoot;
  cgroups_.emplace(kRoot, root);
}

Cgroup* CgroupKernel::at(std::uint64_t inode) {
  const auto found = cgroups_.find(inode);
  return found == cgroups_.end() ? nullptr : &found->second;
}

const Cgroup* CgroupKernel::cgroup(std::uint64_t inode) const {
  const auto found = cgroups_.find(inode);
  return found == cgroups_.end() ? nullptr : &found->second;
}

std::optional<std::uint64_t> CgroupKernel::find(std::string_view path) const {
  std::uint64_t inode = kRoot;
  while (!path.empty()) {
    if (path.front() == '/') {
      path.remove_prefix(1);
      continue;
    }
    const std::string name(path.substr(0, path.find('/')));
    path.remove_prefix(name.size());
    if (name == ".") continue;
    const Cgroup& parent = cgroups_.at(inode);
    const auto child = parent.children.find(name);
    if (child == parent.children.end()) return std::nullopt;
    inode = child->second;
  }
  return inode;
}

int CgroupKernel::make(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  const auto parent = find(path.substr(0, slash));
  if (!parent) return ENOENT;
  const std::string name(path.substr(slash + 1));
  if (cgroups_.at(*parent).children.contains(name)) return EEXIST;
  Cgroup made;
  made.inode = next_inode_++;
  made.parent = *parent;
  made.name = name;
  made.cpu.next_refill_usec = now_usec_ + made.cpu.period_usec;
  cgroups_.at(*parent).children[name] = made.inode;
  cgroups_.emplace(made.inode, std::move(made));
  return 0;
}

int CgroupKernel::remove(std::string_view path) {
  const auto inode = find(path);
  if (!inode || *inode == kRoot) return ENOENT;
  const Cgroup& gone = cgroups_.at(*inode);
  if (!gone.children.empty() || populated(*inode)) return EBUSY;
  // Its remaining memory is charged to its parent from now on.
  const Cgroup last = gone;
  cgroups_.at(last.parent).children.erase(last.name);
  cgroups_.erase(*inode);
  for (std::size_t kind = 0; kind < kMemoryKinds; ++kind)
    cgroups_.at(last.parent).memory.own[kind] += last.memory.own[kind];
  return 0;
}

std::string CgroupKernel::path_of(std::uint64_t inode) const {
  std::string path;
  while (inode != kRoot) {
    const Cgroup& one = cgroups_.at(inode);
    path = "/" + one.name + path;
    inode = one.parent;
  }
  return path.empty() ? "/" : path;
}

bool CgroupKernel::inside(std::uint64_t inode, std::uint64_t ancestor) const {
  while (inode != 0 && inode != ancestor) inode = cgroups_.at(inode).parent;
  return inode == ancestor;
}

bool CgroupKernel::populated(std::uint64_t inode) const {
  return std::any_of(processes_.begin(), processes_.end(),
                     [&](const auto& entry) { return inside(entry.second.cgroup, inode); });
}

int CgroupKernel::spawn(std::uint64_t inode) {
  CHECK_INVARIANT(cgroups_.contains(inode));
  processes_[next_pid_] = {.cgroup = inode};
  return next_pid_++;
}

void CgroupKernel::end(int pid) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  take_memory(found->second.cgroup, MemoryKind::anon, found->second.anon_bytes);
  processes_.erase(found);
}

void CgroupKernel::want_cores(int pid, double cores) {
  if (const auto found = processes_.find(pid); found != processes_.end())
    found->second.cores = cores;
}

std::vector<OomKill> CgroupKernel::take_kills() { return std::exchange(kills_, {}); }

int CgroupKernel::write(std::uint64_t inode, std::string_view file, std::string_view text) {
  if (const int error = begin_write(inode, file, text); error != 0) return error;
  return finish_write(inode, file, text, false);
}

}  // namespace cgphase::simulator
