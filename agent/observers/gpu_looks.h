// Looks for GPUs, which may take for ever: the /dev of a container may lie on a network disk or a
// FUSE file system that does not answer.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "cgroupfs/cgroup_id.h"
#include "collectors/gpu_devices.h"

namespace cgphase {

struct GpuQuestion {
  std::optional<CgroupId> container;  // absent: the devices of the host
  CgroupPath path;                    // of the container
  HostDevices host;
};

// Of the host, or of the container that was asked for.
struct GpuAnswer {
  Result<HostDevices> host;
  GpuUse use = GpuUse::unknown;
};

// Looks now, at the container only where its path still is that cgroup. As long as it takes.
GpuAnswer look_for_gpu(const std::string& cgroup_root, const std::string& proc_root,
                       const GpuQuestion& question);

// Who looks. Used by the agent's thread alone.
class GpuLooks {
 public:
  GpuLooks() = default;
  GpuLooks(const GpuLooks&) = delete;
  GpuLooks& operator=(const GpuLooks&) = delete;
  virtual ~GpuLooks() = default;

  // Does not wait. Asked anew only when all was answered.
  virtual void ask(std::vector<GpuQuestion> questions) = 0;
  // Those since the last call, in the order of the questions.
  virtual std::vector<GpuAnswer> take_answers() = 0;
  // Why nobody can look; empty where somebody can.
  virtual const std::string& failed() const = 0;
};

// A thread of its own. Nobody ever waits for a look, at the end neither: one that hangs is left
// behind, and holds nothing of this process but memory.
class GpuLookThread final : public GpuLooks {
 public:
  using Look = std::function<GpuAnswer(const GpuQuestion&)>;

  // Where no thread can be started failed() says why.
  explicit GpuLookThread(Look look);
  ~GpuLookThread() override;

  void ask(std::vector<GpuQuestion> questions) override;
  std::vector<GpuAnswer> take_answers() override;
  const std::string& failed() const override { return failed_; }

 private:
  // Outlives the owner where a look hangs.
  struct Shared {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<GpuQuestion> questions;
    std::vector<GpuAnswer> answers;
    bool looking = false, stopping = false;
  };
  static void run(Shared& shared, const Look& look);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::string failed_;
  std::thread thread_;
};

}  // namespace cgphase
