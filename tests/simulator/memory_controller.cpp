// mm/memcontrol.c of Linux 6.1: try_charge_memcg, memory_max_write, memory_high_write,
// memory_reclaim, memcg_memory_event.
#include <algorithm>
#include <cerrno>

#include "tests/simulator/cgroup_kernel.h"

namespace cgphase::simulator {
namespace {

std::size_t index_of(MemoryKind kind) { return static_cast<std::size_t>(kind); }

std::uint64_t whole_pages(std::uint64_t bytes) {
  return (bytes + kSimulatedPage - 1) / kSimulatedPage * kSimulatedPage;
}

// Reclaim starts with cold memory.
constexpr std::array<MemoryKind, 3> kReclaimable = {MemoryKind::file_inactive, MemoryKind::slab,
                                                    MemoryKind::file_active};
constexpr int kKillsPerCharge = 16;

// A task at a limit waits while the kernel reclaims or delays it.
constexpr std::uint64_t kStallUsec = 2'000;

}  // namespace

void CgroupKernel::add_memory(std::uint64_t inode, MemoryKind kind, std::uint64_t bytes) {
  at(inode)->memory.own[index_of(kind)] += bytes;
  for (Cgroup* one = at(inode); one != nullptr; one = at(one->parent)) {
    one->memory.current += bytes;
    one->memory.peak = std::max(one->memory.peak, one->memory.current);
  }
}

void CgroupKernel::take_memory(std::uint64_t inode, MemoryKind kind, std::uint64_t bytes) {
  at(inode)->memory.own[index_of(kind)] -= bytes;
  for (Cgroup* one = at(inode); one != nullptr; one = at(one->parent))
    one->memory.current -= bytes;
}

void CgroupKernel::count(std::uint64_t inode, std::uint64_t MemoryEventCounts::*event) {
  ++(at(inode)->memory.local_events.*event);
  for (Cgroup* one = at(inode); one != nullptr; one = at(one->parent))
    ++(one->memory.events.*event);
}

std::uint64_t CgroupKernel::reclaim_from(Cgroup& cgroup, std::uint64_t bytes,
                                         std::uint64_t protected_bytes) {
  std::uint64_t all = 0, done = 0;
  for (const std::uint64_t own : cgroup.memory.own) all += own;
  std::uint64_t left = all > protected_bytes ? std::min(bytes, all - protected_bytes) : 0;
  for (const MemoryKind kind : kReclaimable) {
    const std::uint64_t piece = std::min(left, cgroup.memory.of(kind)) / kSimulatedPage *
                                kSimulatedPage;
    if (piece == 0) continue;
    take_memory(cgroup.inode, kind, piece);
    for (Cgroup* one = &cgroup; one != nullptr; one = at(one->parent)) {
      one->memory.pgscan += piece / kSimulatedPage;
      one->memory.pgsteal += piece / kSimulatedPage;
    }
    left -= piece;
    done += piece;
  }
  return done;
}

// Reclaims from `top` and its descendants. A descendant keeps its memory.min, and its memory.low
// while other memory is available. The protection of `top` does not apply to its own limit.
std::uint64_t CgroupKernel::reclaim(std::uint64_t top, std::uint64_t bytes) {
  bytes = whole_pages(bytes);
  std::uint64_t done = 0;
  for (const bool spare_low : {true, false}) {
    for (auto& [inode, one] : cgroups_) {
      if (done >= bytes) return done;
      if (!inside(inode, top)) continue;
      std::uint64_t keep = inode == top ? 0 : one.memory.min;
      if (inode != top && spare_low) keep = std::max(keep, one.memory.low);
      const std::uint64_t freed = reclaim_from(one, bytes - done, keep);
      if (!spare_low && inode != top && freed > 0 && one.memory.low > one.memory.min)
        count(inode, &MemoryEventCounts::low);
      done += freed;
    }
  }
  return done;
}

// Kills the largest process below the cgroup whose limit was reached; with memory.oom.group its
// whole cgroup.
bool CgroupKernel::kill_one(std::uint64_t limiting) {
  int victim = 0;
  std::uint64_t most = 0;
  for (const auto& [pid, process] : processes_)
    if (inside(process.cgroup, limiting) && (victim == 0 || process.anon_bytes > most)) {
      victim = pid;
      most = process.anon_bytes;
    }
  if (victim == 0) return false;
  const std::uint64_t home = processes_.at(victim).cgroup;
  std::vector<int> victims = {victim};
  if (at(home)->memory.oom_group) {
    victims.clear();
    for (const auto& [pid, process] : processes_)
      if (process.cgroup == home) victims.push_back(pid);
    // The kernel sees the first victim again when it goes through the group, and counts it twice.
    count(home, &MemoryEventCounts::oom_kill);
  }
  for (const int pid : victims) {
    count(home, &MemoryEventCounts::oom_kill);
    kills_.push_back({home, limiting});
    end(pid);
  }
  return true;
}

// Makes room below every limit up to the root. Returns false if the process itself was killed for
// it.
bool CgroupKernel::fits(int pid, std::uint64_t inode, std::uint64_t bytes) {
  for (std::uint64_t one = inode; one != 0; one = at(one)->parent) {
    const auto over = [&]() -> std::uint64_t {
      const MemoryController& memory = at(one)->memory;
      return memory.max && memory.current + bytes > *memory.max
                 ? memory.current + bytes - *memory.max
                 : 0;
    };
    for (int kills = 0; over() > 0; ++kills) {
      count(one, &MemoryEventCounts::max);
      at(one)->memory_pressure.stalled_usec += kStallUsec;
      reclaim(one, over());
      if (over() == 0) break;
      count(one, &MemoryEventCounts::oom);
      if (kills >= kKillsPerCharge || !kill_one(one)) break;
      if (!alive(pid)) return false;
    }
  }
  return true;
}

bool CgroupKernel::allocate(int pid, MemoryKind kind, std::uint64_t bytes) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return false;
  const std::uint64_t inode = found->second.cgroup;
  bytes = whole_pages(bytes);
  if (!fits(pid, inode, bytes)) return false;
  add_memory(inode, kind, bytes);
  if (kind == MemoryKind::anon) processes_.at(pid).anon_bytes += bytes;
  at(inode)->memory.pgfault += bytes / kSimulatedPage;
  for (Cgroup* one = at(inode); one != nullptr; one = at(one->parent)) {
    if (!one->memory.high || one->memory.current <= *one->memory.high) continue;
    count(one->inode, &MemoryEventCounts::high);
    one->memory_pressure.stalled_usec += kStallUsec;
    shrink_to_high(*one);
  }
  return true;
}

void CgroupKernel::release(int pid, MemoryKind kind, std::uint64_t bytes) {
  const auto found = processes_.find(pid);
  if (found == processes_.end()) return;
  const Cgroup& home = *at(found->second.cgroup);
  bytes = std::min(bytes / kSimulatedPage * kSimulatedPage, home.memory.of(kind));
  if (kind == MemoryKind::anon) {
    bytes = std::min(bytes, found->second.anon_bytes);
    found->second.anon_bytes -= bytes;
  }
  take_memory(home.inode, kind, bytes);
}

void CgroupKernel::shrink_to_high(Cgroup& cgroup) {
  const MemoryController& memory = cgroup.memory;
  if (memory.high && memory.current > *memory.high)
    reclaim(cgroup.inode, memory.current - *memory.high);
}

void CgroupKernel::shrink_to_max(Cgroup& cgroup) {
  const MemoryController& memory = cgroup.memory;
  while (memory.max && memory.current > *memory.max) {
    if (reclaim(cgroup.inode, memory.current - *memory.max) > 0) continue;
    count(cgroup.inode, &MemoryEventCounts::oom);
    if (!kill_one(cgroup.inode)) return;
  }
}

int CgroupKernel::write_memory_limit(Cgroup& cgroup, std::string_view file,
                                     std::string_view text) {
  const auto parsed = parse_memory_text(text);
  if (!parsed) return EINVAL;
  MemoryController& memory = cgroup.memory;
  if (file == "memory.max") memory.max = parsed->bytes;
  if (file == "memory.high") memory.high = parsed->bytes;
  // "max" protects all memory.
  if (file == "memory.low") memory.low = parsed->bytes.value_or(~std::uint64_t{0});
  if (file == "memory.min") memory.min = parsed->bytes.value_or(~std::uint64_t{0});
  return 0;
}

bool CgroupKernel::would_reclaim(std::uint64_t inode, std::string_view file) const {
  const Cgroup* const one = cgroup(inode);
  if (one == nullptr) return false;
  const MemoryController& memory = one->memory;
  if (file == "memory.max") return memory.max && memory.current > *memory.max;
  if (file == "memory.high") return memory.high && memory.current > *memory.high;
  return file == "memory.reclaim";
}

int CgroupKernel::finish_write(std::uint64_t inode, std::string_view file, std::string_view text,
                               bool interrupted) {
  Cgroup* const one = at(inode);
  if (one == nullptr) return 0;  // it was removed while the writer waited
  if (file == "memory.reclaim") {
    if (interrupted) return EINTR;
    const std::uint64_t wanted = parse_memory_text(text)->bytes.value_or(0);
    return reclaim(inode, wanted) >= whole_pages(wanted) ? 0 : EAGAIN;
  }
  // A signal ends the reclaim at a limit, and the write still succeeds.
  if (interrupted) return 0;
  if (file == "memory.max") shrink_to_max(*one);
  if (file == "memory.high") shrink_to_high(*one);
  return 0;
}

std::array<std::uint64_t, kMemoryKinds> CgroupKernel::held_bytes(std::uint64_t inode) const {
  const Cgroup& top = cgroups_.at(inode);
  auto held = top.memory.own;
  for (const auto& [name, child] : top.children) {
    const auto below = held_bytes(child);
    for (std::size_t kind = 0; kind < kMemoryKinds; ++kind) held[kind] += below[kind];
  }
  return held;
}

// The same value as the agent's memory_need() of this cgroup.
std::uint64_t CgroupKernel::need_bytes(std::uint64_t inode) const {
  const auto held = held_bytes(inode);
  return held[index_of(MemoryKind::anon)] + held[index_of(MemoryKind::shmem)] +
         held[index_of(MemoryKind::kernel)];
}

}  // namespace cgphase::simulator
