// What of the agent's doings the log tells: changes, each once, and of one cgroup only so many in a
// minute; all of them are in the history's journal (storage/journal.h, `cgphase events`).
#pragma once

#include <array>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "agent/logging/log_entry.h"
#include "base/clock.h"
#include "cgroupfs/cgroup_id.h"
#include "cgroupfs/limits.h"
#include "collectors/containers/container_info.h"
#include "policy/decision.h"

namespace cgphase {

// Of one cgroup, in a window that begins with its first entry. What puts limits back is told beyond
// it.
inline constexpr int kMostEntries = 10;
inline constexpr std::chrono::seconds kEntryWindow{60};

// Owned by the daemon; the agent's thread alone.
class ChangeLog {
 public:
  using Tell = std::function<void(const LogEntry&)>;
  explicit ChangeLog(Tell tell) : tell_(std::move(tell)) {}

  // One entry for each file of its resource that reads otherwise than before the decision.
  // `givers`: of a decision by the budget, as givers_of().
  void written(const ContainerInfo& info, const Decision& decision, const Limits& in_force,
               const std::string& givers = {});
  // Holds that are about somebody else's writes, when they begin, not of each resource; `writer` as
  // in JournalDecision.
  void held(const ContainerInfo& info, const Decision& decision, const std::string& writer);
  // What went wrong: trials that were reverted, writes that failed.
  void concluded(const ContainerInfo& info, const Outcome& outcome);
  // Of a cgroup that is gone.
  void forget(CgroupId id) { told_.erase(id); }

  void kill_switch(bool present, const std::string& path);
  void restore_failed(const std::vector<std::string>& failures);

 private:
  struct Told {
    MonotonicTime window;
    int entries = 0;     // in the window
    int left_out = 0;    // since the last one that was told
    std::array<Verdict, kResourceCount> last{};  // verdicts of the last decisions, by resource
    Verdict hold = Verdict::allowed;  // told last, and not over
    Verdict& verdict(Resource resource) { return last[static_cast<std::size_t>(resource)]; }
  };
  void tell(CgroupId id, MonotonicTime now, LogEntry entry);

  Tell tell_;
  std::map<CgroupId, Told> told_;
};

}  // namespace cgphase
