// The laws of SAFETY that can be judged at each write: what the agent does to the simulated kernel
// is compared with what others want, with what the containers need, and with the leases.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cgroupfs/knob_file.h"
#include "control/lease/lease_table.h"
#include "control/limit_writer.h"
#include "tests/simulator/cgroup_kernel.h"
#include "tests/simulator/system_calls.h"

namespace cgphase::simulator {

// Used by one thread at a time.
class Laws {
 public:
  // What the world knows of a container and the kernel does not.
  struct Facts {
    bool may_write = false;  // in mode enforce, named, and nobody else's
    bool may_lower_quota = true;  // no GPU was seen
  };
  using FactsOf = std::function<std::optional<Facts>(std::uint64_t inode)>;

  Laws(CgroupKernel& kernel, FactsOf facts) : kernel_(kernel), facts_(std::move(facts)) {}

  // The leases as another process sees them; null while there are none.
  void watch_leases(std::unique_ptr<LeaseTable> leases) { leases_ = std::move(leases); }
  const LeaseTable* leases() const { return leases_.get(); }

  // --- what others do ---
  void appeared(std::uint64_t inode);  // its limits now are somebody's intent
  void vanished(std::uint64_t inode);
  void others_wrote(std::uint64_t inode, Knob knob);  // after it took place

  // --- what the agent does, by its calls ---
  void looked(const Call& call);
  void will_write(const Call& call);
  void time_passed_in(Lane lane);  // what it has read before is no longer fresh

  // --- judgements ---
  void judge_kills(const std::vector<OomKill>& kills);
  // A change that was not made has left nothing of it, where the kernel refused no more than once.
  void judge_refused(const LimitChange& change, const LimitResult& result);
  // Every limit is somebody's intent, or a lease says what it was.
  void judge_recoverable(const char* when);
  // Every limit is somebody's intent. `kernel` may be a copy.
  void judge_restored(const CgroupKernel& kernel, const char* when);

  // The values that may stand there in the end. More than one where the agent could not see a
  // write that came between its own look and its own write.
  const std::vector<KnobText>& intents(std::uint64_t inode, Knob knob) const;
  // Whether what others want is in force.
  bool as_intended(std::uint64_t inode, Knob knob) const;
  bool knows(std::uint64_t inode) const { return wills_.contains(inode); }

  const std::string& violation() const { return violation_; }
  void violate(std::string text);

  struct Tally {
    std::uint64_t lowered = 0, raised = 0, restored = 0, reclaims = 0, lost_races = 0, kills = 0,
                  refused = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  struct Will {
    std::vector<KnobText> now, before;
    std::uint64_t step = 0;  // when somebody last wrote
  };
  using Wills = std::array<Will, kKnobCount>;
  struct Look {
    std::uint64_t step = 0, call = 0;  // of all, and of this lane
  };
  using Key = std::pair<std::uint64_t, Knob>;

  KnobText value(const CgroupKernel& kernel, std::uint64_t inode, Knob knob) const;
  bool intended(const Will& will, Knob knob, const KnobText& text) const;
  void judge_race(const Call& call, Knob knob, Will& will);
  void judge_ours(const Call& call, Knob knob, const KnobText& text, const Will& will);
  void judge_lowering(const Call& call, Knob knob, const Limits& after);
  void judge_lease(const Call& call, Knob knob, const KnobText& text, const Will& will);
  std::optional<LeaseValues> lease_of(std::uint64_t inode, Knob knob) const;
  std::string name(std::uint64_t inode, Knob knob) const;

  CgroupKernel& kernel_;
  FactsOf facts_;
  std::unique_ptr<LeaseTable> leases_;
  std::map<std::uint64_t, Wills> wills_;
  std::array<std::map<Key, Look>, kLaneCount> looks_;
  std::array<std::uint64_t, kLaneCount> calls_{};
  std::uint64_t step_ = 0;
  std::string violation_;
  Tally tally_;
};

// The knob that a file is; absent for all others.
std::optional<Knob> knob_of(std::string_view file);

}  // namespace cgphase::simulator
