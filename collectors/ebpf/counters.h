// Manages all BPF programs that count by cgroup: which of them this kernel accepts, their cost, and
// their counters in the samples of a tick.
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
  // Nothing is loaded before the first tick. `budget_ratio` is a fraction of one core for all
  // programs together. Above it they sample fewer events, or are unloaded.
  KernelCounters(const std::string& cgroup_root, double budget_ratio);
  ~KernelCounters();

  // Fills run_queue, network and block of the samples, if something counts them. Counts start when
  // the programs are loaded, at the first call. An error here does not fail the tick.
  void fill(NodeSample& tick);

  // The container's waits for a processor; absent if they are not counted.
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId container) const;

  // One source per signal: how it is counted and how completely, or why not.
  std::vector<Source> sources() const;

  // Bytes of kernel memory for the maps.
  std::uint64_t memory_bytes() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
