#include "collectors/gpu/gpu_thread.h"

#include <utility>

#include "base/thread.h"

namespace cgphase {
namespace {

constexpr const char* kSourceName = "GPU telemetry";

class NoGpuSource final : public GpuSource {
 public:
  explicit NoGpuSource(std::string why) : why_(std::move(why)) {}
  void set_containers(std::vector<CgroupPath>) override {}
  std::shared_ptr<const GpuReading> latest() const override { return nullptr; }
  Source source(MonotonicTime) const override { return {kSourceName, false, why_}; }

 private:
  std::string why_;
};

}  // namespace

std::unique_ptr<GpuSource> no_gpu_source(const std::string& why) {
  return std::make_unique<NoGpuSource>(why);
}

GpuThread::GpuThread(Read read, std::shared_ptr<const Clock> clock, Periods periods) {
  Result<std::thread> thread =
      start_thread("cgphase-gpus", [shared = shared_, read = std::move(read),
                                    clock = std::move(clock), periods]() mutable {
        leave_descriptors();
        run(*shared, read, *clock, periods);
        read = nullptr;  // closes the drivers
        const std::lock_guard lock(shared->mutex);
        shared->ended = true;
        shared->wake.notify_all();
      });
  if (thread) thread_ = std::move(*thread);
  else failed_ = thread.error().text;
}

GpuThread::~GpuThread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->wake.notify_all();
  const bool ended = !shared_->reading_since &&
                     shared_->wake.wait_for(lock, kCloseTimeout, [&] { return shared_->ended; });
  lock.unlock();
  if (ended) thread_.join();
  else thread_.detach();
}

void GpuThread::run(Shared& shared, const Read& read, const Clock& clock, Periods periods) {
  std::unique_lock lock(shared.mutex);
  while (!shared.stopping) {
    const MonotonicTime now = clock.monotonic_now();
    shared.reading_since = now;
    const std::vector<CgroupPath> containers = shared.containers;
    lock.unlock();
    auto reading = std::make_shared<const GpuReading>(read(now, containers));
    lock.lock();
    shared.reading_since.reset();
    const auto period = reading->devices.empty() ? periods.without : periods.with;
    shared.latest = std::move(reading);
    shared.wake.wait_for(lock, period, [&] { return shared.stopping; });
  }
}

void GpuThread::set_containers(std::vector<CgroupPath> paths) {
  const std::lock_guard lock(shared_->mutex);
  shared_->containers = std::move(paths);
}

std::shared_ptr<const GpuReading> GpuThread::latest() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->latest;
}

Source GpuThread::source(MonotonicTime now) const {
  if (!failed_.empty()) return {kSourceName, false, failed_};
  const std::lock_guard lock(shared_->mutex);
  if (shared_->reading_since && now - *shared_->reading_since > kHung) {
    const auto seconds =
        std::chrono::duration_cast<std::chrono::seconds>(now - *shared_->reading_since);
    return {kSourceName, false,
            "the driver has not answered for " + std::to_string(seconds.count()) + " s"};
  }
  if (!shared_->latest) return {kSourceName, false, "not read yet"};
  return {kSourceName, !shared_->latest->devices.empty(), shared_->latest->summary};
}

}  // namespace cgphase
