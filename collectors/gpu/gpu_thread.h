// Reads GPUs on a thread of its own, which may be abandoned.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "collectors/gpu/gpu_source.h"

namespace cgphase {

// Nothing ever waits for a reading, not even at the end. A thread that hangs is abandoned. It keeps
// only memory of this process and what the driver opened.
class GpuThread final : public GpuSource {
 public:
  // Called only on the thread, and destroyed there.
  using Read =
      std::function<GpuReading(MonotonicTime now, const std::vector<CgroupPath>& containers)>;
  // Interval of readings with a GPU, and without one.
  struct Periods {
    std::chrono::milliseconds with{1000};
    std::chrono::milliseconds without{60'000};
  };
  // A longer reading counts as hung and is reported.
  static constexpr std::chrono::seconds kHung{10};
  // At the end, an idle driver may take this long to close.
  static constexpr std::chrono::seconds kCloseTimeout{1};

  // Both threads use `clock`. If no thread can be started, source() has the reason.
  GpuThread(Read read, std::shared_ptr<const Clock> clock, Periods periods);
  ~GpuThread() override;

  void set_containers(std::vector<CgroupPath> paths) override;
  std::shared_ptr<const GpuReading> latest() const override;
  Source source(MonotonicTime now) const override;

 private:
  // Outlives the owner if a reading hangs.
  struct Shared {
    std::mutex mutex;  // never locked during a driver call
    std::condition_variable wake;
    std::vector<CgroupPath> containers;
    std::shared_ptr<const GpuReading> latest;
    std::optional<MonotonicTime> reading_since;
    bool stopping = false, ended = false;
  };
  static void run(Shared& shared, const Read& read, const Clock& clock, Periods periods);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::string failed_;
  std::thread thread_;
};

}  // namespace cgphase
