// The behaviour of the containers. Their need mostly grows by Scenario::growth_ratio, and sometimes
// at once. No allocation rate may end in a kill at a limit of the agent.
#include <algorithm>

#include "tests/simulator/world.h"

namespace cgphase::simulator {
namespace {

constexpr double kSliceSeconds = 0.05;
constexpr double kMostNeed = 0.75;          // share of the foreign limit
constexpr double kConsentFactor = 1.6;      // of a container that may be raised above it
constexpr double kCacheRatio = 0.15;        // share of the limit, per second
constexpr double kHostCores = 16;
constexpr double kUnlimitedBytes = 4.0 * (1 << 30);

}  // namespace

double World::intended_bytes(const Box& box) const {
  double least = kUnlimitedBytes;
  for (const KnobText& text : laws_.intents(box.inode, Knob::memory_max)) {
    Limits limits;
    if (parse_knob(Knob::memory_max, text.view(), limits) && limits.memory_max->bytes)
      least = std::min(least, static_cast<double>(limits.memory_max->bytes->value));
  }
  return least;
}

double World::intended_cores(const Box& box) const {
  double least = kHostCores;
  for (const KnobText& text : laws_.intents(box.inode, Knob::cpu_max)) {
    Limits limits;
    if (parse_knob(Knob::cpu_max, text.view(), limits) && limits.cpu_cores())
      least = std::min(least, limits.cpu_cores()->value);
  }
  return least;
}

void World::work(Box& box) {
  if (box.inode == 0) return;
  if (!kernel_.alive(box.pid)) {  // killed, or between two runs
    box.pid = box.gpu_ticks = 0;
    box.gpu = false;
    if (random_.one_in(40)) start_process(box);
    box.target = 0.05;
    return;
  }
  if (scenario_.gpus && !box.gpu && random_.one_in(2000)) open_gpu(box);
  const Cgroup& here = *kernel_.cgroup(box.inode);
  if (here.frozen) return;
  const double factor = box.consents ? kConsentFactor : 1;
  // Only one that grows is frozen.
  const int steady = box.freeze_longest.count() > 0 ? 40 : 400;
  if (random_.one_in(steady)) box.target = 0.02 + random_.share() * (kMostNeed * factor - 0.02);
  if (random_.one_in(800)) box.cache = 0.05 + 0.6 * random_.share() * random_.share();
  if (random_.one_in(500)) box.busy = !box.busy;
  if (random_.one_in(100))
    box.cores = box.busy ? 0.85 + 0.15 * random_.share() : 0.02 + 0.15 * random_.share();
  kernel_.want_cores(box.pid, box.cores * intended_cores(box) * factor);
  const double limit =
      here.memory.max ? static_cast<double>(*here.memory.max) : intended_bytes(box);
  grow(box, limit);
}

// Grows until it is killed at the child's limit.
void World::work_inside(Box& box) {
  if (kernel_.cgroup(box.inode)->frozen) return;
  if (!kernel_.alive(box.inner_pid)) {
    if (random_.one_in(60)) box.inner_pid = kernel_.spawn(box.inner);
    return;
  }
  if (random_.one_in(20)) (void)kernel_.allocate(box.inner_pid, MemoryKind::anon, kMiB);
}

void World::grow(Box& box, double limit) {
  const double wanted = box.target * intended_bytes(box);
  const double need = static_cast<double>(kernel_.need_bytes(box.inode));
  const auto step = static_cast<std::uint64_t>(limit * scenario_.growth_ratio * kSliceSeconds);
  const auto kind = random_.one_in(8)    ? MemoryKind::shmem
                    : random_.one_in(16) ? MemoryKind::kernel
                                         : MemoryKind::anon;
  if (need < wanted) {
    const auto missing = static_cast<std::uint64_t>(wanted - need);
    if (!kernel_.allocate(box.pid, kind, std::min(step, missing))) return;
  } else if (need > wanted * 1.1) {
    kernel_.release(box.pid, kind, 4 * step);
  }
  // Page cache grows as fast as the disk allows, up to the limit.
  if (!random_.one_in(10)) return;
  const auto cache = static_cast<std::uint64_t>(limit * kCacheRatio * kSliceSeconds * 4);
  const MemoryController& memory = kernel_.cgroup(box.inode)->memory;
  const auto kept = memory.of(MemoryKind::file_inactive) + memory.of(MemoryKind::file_active);
  const bool greedy = random_.one_in(50);
  if (static_cast<double>(kept) < box.cache * limit || greedy)
    (void)kernel_.allocate(box.pid, MemoryKind::file_inactive, cache);
  else
    kernel_.release(box.pid, MemoryKind::file_inactive, cache);
}

// At once, above memory.high if set, but not close to the owner's memory.max.
void World::jump(Box& box) {
  const MemoryController& memory = kernel_.cgroup(box.inode)->memory;
  const double limit = memory.max ? static_cast<double>(*memory.max) : intended_bytes(box);
  const auto most = static_cast<std::uint64_t>(0.85 * limit);
  if (memory.current < most)
    (void)kernel_.allocate(box.pid, MemoryKind::anon, most - memory.current);
}

// Fills the cache to just below the limit.
void World::fill_cache(Box& box) {
  const MemoryController& memory = kernel_.cgroup(box.inode)->memory;
  const std::uint64_t limit = memory.max.value_or(std::uint64_t{4} << 30);
  if (memory.current + limit / 50 < limit)
    (void)kernel_.allocate(box.pid, MemoryKind::file_inactive,
                           limit - limit / 50 - memory.current);
}

}  // namespace cgphase::simulator
