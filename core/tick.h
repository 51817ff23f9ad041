// The input and the output of one turn of the control loop (core/core.h).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "policy/budget/host_share.h"
#include "policy/decision.h"

namespace cgphase {

// Facts about a container that the samples do not contain. They may change.
struct ExternalFacts {
  bool larger_margin = false, gpu = false;  // as in SafetyInput
  std::optional<MonotonicTime> gpu_ruled_out;
};

// The end of the write of an allowed decision.
struct FinishedWrite {
  std::uint64_t decision_id = 0;
  WriteEnd end = WriteEnd::failed;
  Limits in_force;    // read back after the write
  std::string error;  // why it failed
};

// A raise that the fast path made by itself. The limits have only the knobs that it changed.
struct FastRaise {
  CgroupId container;
  Resource resource = Resource::cpu;
  Reason reason = Reason::headroom;
  Limits before, after;
  MonotonicTime time;  // when the new value was in force
};

// Originals that were put back outside of a decision: by a command, the kill switch, or the
// companion.
struct RestoredLimits {
  CgroupId container;
  Reason reason = Reason::restored;
  std::vector<Knob> left;  // knobs without their original
};

// Everything that happened since the last turn. The core applies it in the order of these fields:
// what cgphase itself changed must be known before the sample, or the sample would show it as a
// change by somebody else.
struct TickInput {
  MonotonicTime now;  // when the results below were collected
  std::vector<FinishedWrite> writes;
  std::vector<FastRaise> fast_raises;
  std::vector<RestoredLimits> restored;
  std::vector<CgroupId> reclaimed;  // what step() asked for was done
  std::optional<bool> other_manager;  // another manager sets limits on this host; absent: as before
  std::vector<std::pair<CgroupId, ExternalFacts>> facts;  // that changed
  std::vector<LimitWrite> limit_writes;                   // by other processes
  OutsideShare outside = {};  // used outside of containers, as far as known
  const NodeSample* sample = nullptr;  // null between two samples: only the events above
};

// A limit change that is in force.
struct AppliedChange {
  enum class Origin : std::uint8_t { decision, fast_path, restore };
  Origin origin = Origin::decision;
  Decision decision;
  Limits in_force;
};

// Memory to reclaim: page cache that alone keeps memory.high from following need, or cold memory of
// class batch while the host is short.
struct CacheReclaim {
  CgroupId container;
  Bytes bytes;
  bool swap = false;  // some of it may go to swap
};

struct TickOutput {
  std::vector<AppliedChange> applied;  // from the events, in their order
  std::vector<Decision> decisions;     // from the sample; write those with verdict `allowed`
  // Who is behind a decision, by its id, where that is known: the writer of the limit that blocks
  // it, as ForeignWrites::writer(); for reason `budget` those who leave the room, as givers_of().
  std::map<std::uint64_t, std::string> writers;
  std::vector<CacheReclaim> reclaims;
  std::vector<Outcome> outcomes;  // of writes and trials
};

}  // namespace cgphase
