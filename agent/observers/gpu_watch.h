// Which containers have a GPU, or may have one: the rails leave their CPU quota alone
// (docs/safety.md).
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/observers/gpu_looks.h"
#include "base/clock.h"
#include "collectors/node_sampler.h"

namespace cgphase {

// Owned and used by the agent's thread alone, which never waits for a look.
class GpuWatch {
 public:
  static constexpr std::chrono::seconds kPeriod{60};
  // A look that takes longer hangs: its container is not ruled out any more. Nobody else is looked
  // at until it ends, for what hangs in the kernel cannot be given up.
  static constexpr std::chrono::seconds kHung{10};

  // Wanted ones that are asked for together: many wait for their lowering, few can have one soon.
  static constexpr std::size_t kMostWanted = 16;

  explicit GpuWatch(std::unique_ptr<GpuLooks> looks) : looks_(std::move(looks)) {}

  // After each reading, before the pipeline steps: takes the answers that there are, and asks. A
  // container is asked for when it has processes for the first time, and then once a minute and
  // where it is `wanted` (those that waited longest first), until a GPU is seen; that stands until
  // they have ended. On a host without a GPU /dev is looked at once a minute, and nothing else.
  // True where an answer below may be another than before.
  bool look(const NodeSample& tick, const std::function<bool(CgroupId)>& wanted);

  // It has a GPU, or that cannot be ruled out.
  bool may_have_gpu(CgroupId id) const;
  // When the look began by which it has none. Absent where none is needed, or it may have one.
  std::optional<MonotonicTime> ruled_out(CgroupId id) const;

  Source source() const;
  // A look that hangs, as a sentence; empty: none.
  std::string degraded() const;

 private:
  struct Watched {
    std::string name;
    CgroupPath path;
    bool populated = false;
    bool asked = false;  // of the processes that it has now
    GpuUse use = GpuUse::unknown;
    std::optional<MonotonicTime> looked;  // when the look at it began
  };
  bool follow(const NodeSample& tick);
  bool take(MonotonicTime now);
  bool take_host(const Result<HostDevices>& found);
  bool judge_hang(MonotonicTime now);
  void ask_host(MonotonicTime now);
  void ask_containers(MonotonicTime now, const std::function<bool(CgroupId)>& wanted);
  void ask(std::vector<GpuQuestion> questions, MonotonicTime now);
  bool host_may_have_gpu() const { return !host_ || host_->gpu; }
  const Watched* find(CgroupId id) const;

  std::unique_ptr<GpuLooks> looks_;
  std::optional<HostDevices> host_;  // as of the last look that succeeded
  std::optional<MonotonicTime> next_host_look_;
  std::string error_;                // of the last look at the host
  std::map<CgroupId, Watched> watched_;
  std::deque<std::optional<CgroupId>> unanswered_;  // in their turns; the host is absent
  MonotonicTime asked_, turn_began_;
  std::string hung_;  // what is looked at in vain
};

}  // namespace cgphase
