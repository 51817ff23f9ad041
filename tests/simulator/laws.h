// The safety laws that can be checked at each write. They compare the agent's actions on the
// simulated kernel with foreign limits, the containers' need and the leases.
#pragma once

#include <array>
#include <chrono>
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
  // Facts about a container that the world knows and the kernel does not.
  struct Facts {
    bool may_write = false;  // in mode enforce, named, and without another manager
    bool may_lower_quota = true;  // no GPU was reported
    bool may_weigh = false;       // its class has a weight of its own
    // Its owner agrees to as much. 0: to no more than the original.
    double most_cores = 0, most_bytes = 0;
    std::chrono::seconds freeze_longest{0};  // class batch, and its owner agrees; 0: never
  };
  using FactsOf = std::function<std::optional<Facts>(std::uint64_t inode)>;

  Laws(CgroupKernel& kernel, FactsOf facts) : kernel_(kernel), facts_(std::move(facts)) {}

  // The leases as another process reads them. Null while there are none.
  void watch_leases(std::unique_ptr<LeaseTable> leases) { leases_ = std::move(leases); }
  const LeaseTable* leases() const { return leases_.get(); }

  // --- actions of others ---
  void appeared(std::uint64_t inode);  // its current limits are somebody's choice
  void vanished(std::uint64_t inode);
  void others_wrote(std::uint64_t inode, Knob knob);  // after the write took effect

  // --- actions of the agent, from its calls ---
  void looked(const Call& call);
  void will_write(const Call& call);
  void time_passed_in(Lane lane);  // earlier reads are outdated from now on

  // --- checks ---
  void judge_kills(const std::vector<OomKill>& kills);
  // A failed change must leave nothing behind, unless the kernel refused more than one call.
  void judge_refused(const LimitChange& change, const LimitResult& result);
  // Every limit must be somebody's choice, or a lease must contain the original.
  void judge_recoverable(const char* when);
  // Every limit must be somebody's choice, or a granted memory.max whose original would kill.
  // `kernel` may be a copy.
  void judge_restored(const CgroupKernel& kernel, const char* when);

  // The values that are allowed at the end. There are several if a foreign write came between the
  // agent's last read and its own write, where the agent could not see it.
  const std::vector<KnobText>& intents(std::uint64_t inode, Knob knob) const;
  // Whether the value in force is the foreign one.
  bool as_intended(std::uint64_t inode, Knob knob) const;
  // Whether cgphase has it frozen. It may not be for longer than its owner agrees to, in time that
  // passed on this machine, and must run as long before the next time.
  bool frozen(std::uint64_t inode) const {
    return kernel_.cgroup(inode) != nullptr && !as_intended(inode, Knob::cgroup_freeze);
  }
  void judge_freeze(std::uint64_t inode, std::chrono::nanoseconds passed);
  // Another daemon, or one that lost sight of the container, does not know when it last was frozen.
  void forget_rests() { freezes_.clear(); }
  void forget_rest(std::uint64_t inode) {
    if (!frozen(inode)) freezes_.erase(inode);
  }
  bool leased(std::uint64_t inode, Knob knob) const { return lease_of(inode, knob).has_value(); }
  bool knows(std::uint64_t inode) const { return wills_.contains(inode); }

  const std::string& violation() const { return violation_; }
  void violate(std::string text);

  struct Tally {
    std::uint64_t lowered = 0, raised = 0, restored = 0, weighed = 0, granted = 0, kept = 0,
                  frozen = 0, reclaims = 0, lost_races = 0, kills = 0, refused = 0;
  };
  const Tally& tally() const { return tally_; }

 private:
  struct Will {
    std::vector<KnobText> now, before;
    std::uint64_t step = 0;  // when somebody last wrote
  };
  using Wills = std::array<Will, kKnobCount>;
  struct Look {
    std::uint64_t step = 0, call = 0;  // global, and of this thread
  };
  struct Freeze {
    std::chrono::nanoseconds still{0}, before{0};  // this time, and the time before
    std::int64_t runs_since_ns = 0;                // with time that the machine was suspended
    bool now = false;
  };
  using Key = std::pair<std::uint64_t, Knob>;

  KnobText value(const CgroupKernel& kernel, std::uint64_t inode, Knob knob) const;
  bool intended(const Will& will, Knob knob, const KnobText& text) const;
  void judge_race(const Call& call, Knob knob, Will& will);
  void judge_ours(const Call& call, Knob knob, const KnobText& text, const Will& will);
  void judge_lowering(const Call& call, Knob knob, const Limits& after);
  void judge_granted(const Call& call, Knob knob, const Limits& after, const Will& will,
                     const std::string& what);
  // Whether the value in the file is above every value of somebody else's.
  bool above(const Will& will, Knob knob, const Limits& after) const;
  // A memory.max that was granted and would not fit what is in use.
  bool in_use(const CgroupKernel& kernel, std::uint64_t inode, Knob knob, const KnobText& now,
              const Will& will) const;
  void judge_freezing(const Call& call, const Will& will, const std::string& what);
  void judge_weight(std::uint32_t weight, const Will& will, const std::string& what);
  void judge_lease(const Call& call, Knob knob, const KnobText& text, const Will& will);
  std::optional<LeaseValues> lease_of(std::uint64_t inode, Knob knob) const;
  std::string name(std::uint64_t inode, Knob knob) const;

  CgroupKernel& kernel_;
  FactsOf facts_;
  std::unique_ptr<LeaseTable> leases_;
  std::map<std::uint64_t, Wills> wills_;
  std::map<std::uint64_t, Freeze> freezes_;
  std::array<std::map<Key, Look>, kLaneCount> looks_;
  std::array<std::uint64_t, kLaneCount> calls_{};
  std::uint64_t step_ = 0;
  std::string violation_;
  Tally tally_;
};

// The knob of a file. Absent for all other files.
std::optional<Knob> knob_of(std::string_view file);

}  // namespace cgphase::simulator
