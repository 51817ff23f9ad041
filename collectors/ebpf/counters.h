// Everything that programs of ours count by cgroup: which of them this kernel takes, what they
// cost, and their counters in the samples of a tick.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectors/node_sampler.h"

namespace cgphase {

// Owned and used by one thread.
class KernelCounters {
 public:
  // Nothing is asked of the kernel before the first tick. `budget_ratio`: of one core, for all
  // programs together; above it they look at fewer events, or leave the kernel.
  KernelCounters(const std::string& cgroup_root, double budget_ratio);
  ~KernelCounters();

  // Fills run_queue, network and block of the samples, as far as something counts them: what was
  // counted since the programs were loaded, which is at the first call. Nothing that fails here
  // fails the tick.
  void fill(NodeSample& tick);

  // Of a container's waits for a processor; nothing where they are not counted.
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId container) const;

  // One for each signal: by what it is counted and how completely, or why not.
  std::vector<Source> sources() const;

  // Bytes that the kernel took for the maps.
  std::uint64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
