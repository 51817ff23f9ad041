#include "agent/http/metrics_file.h"

#include <chrono>
#include <utility>

#include "base/file.h"
#include "base/thread.h"

namespace cgphase {
namespace {

// For a disk to remove the file.
constexpr std::chrono::milliseconds kRemovePatience{200};

}  // namespace

MetricsFile::MetricsFile(std::string path) {
  Result<std::thread> thread =
      start_thread("cgphase-metrics", [shared = shared_, path = std::move(path)] {
        leave_descriptors();
        run(*shared, path);
      });
  if (thread) thread_ = std::move(*thread);
  else shared_->failure = thread.error().text;
}

MetricsFile::~MetricsFile() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->wake.notify_all();
  const bool removed =
      shared_->wake.wait_for(lock, kRemovePatience, [&] { return shared_->removed; });
  lock.unlock();
  if (removed) thread_.join();
  else thread_.detach();
}

void MetricsFile::run(Shared& shared, const std::string& path) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.wake.wait(lock, [&] { return shared.stopping || shared.text; });
    if (shared.stopping) break;
    const std::string text = *std::exchange(shared.text, std::nullopt);
    lock.unlock();
    const Status written = replace_shared_file(path, text);
    lock.lock();
    shared.failure = written ? "" : written.error().text;
  }
  lock.unlock();
  remove_shared_file(path);
  lock.lock();
  shared.removed = true;
  shared.wake.notify_all();
}

void MetricsFile::put(std::string text) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->text = std::move(text);
  shared_->wake.notify_one();
}

std::string MetricsFile::failure() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->failure;
}

}  // namespace cgphase
