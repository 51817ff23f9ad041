// Reads GPUs on a thread of its own, which may be left behind.
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

// Nobody ever waits for a reading, at the end neither: one that hangs is left behind, and holds
// nothing of this process but memory and what the driver opened.
class GpuThread final : public GpuSource {
 public:
  // Called on the thread alone, and destroyed there.
  using Read =
      std::function<GpuReading(MonotonicTime now, const std::vector<CgroupPath>& containers)>;
  // Between two readings, where there is a GPU and where there is none.
  struct Periods {
    std::chrono::milliseconds with{1000};
    std::chrono::milliseconds without{60'000};
  };
  // A reading that takes longer hangs, and is told.
  static constexpr std::chrono::seconds kHung{10};
  // At the end a driver that is not being read may take so long to close.
  static constexpr std::chrono::seconds kFarewell{1};

  // `clock` is used by both threads; where no thread can be started source() says why.
  GpuThread(Read read, std::shared_ptr<const Clock> clock, Periods periods);
  ~GpuThread() override;

  void set_containers(std::vector<CgroupPath> paths) override;
  std::shared_ptr<const GpuReading> latest() const override;
  Source source(MonotonicTime now) const override;

 private:
  // Outlives the owner where a reading hangs.
  struct Shared {
    std::mutex mutex;  // never held while a driver is asked
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
