#include "agent/observers/gpu_scanner.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fd.h"
#include "base/thread.h"
#include "cgroupfs/cgroup_directory.h"

namespace cgphase {

GpuScanResult scan_for_gpu(const std::string& cgroup_root, const std::string& proc_root,
                       const GpuScanRequest& request) {
  if (!request.container) return {read_host_devices(proc_root), GpuUse::unknown};
  const Result<Fd> directory =
      open_path(cgroup_root + request.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory || identify(directory->get()) != *request.container)
    return {request.host, GpuUse::unknown};
  return {request.host, find_gpu(directory->get(), proc_root, request.host).use};
}

GpuScanThread::GpuScanThread(Scan scan) {
  Result<std::thread> thread =
      start_thread("cgphase-gpu", [shared = shared_, scan = std::move(scan)] {
        leave_descriptors();
        run(*shared, scan);
      });
  if (thread) thread_ = std::move(*thread);
  else failed_ = thread.error().text;
}

GpuScanThread::~GpuScanThread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->requests.clear();
  const bool scanning = shared_->scanning;
  lock.unlock();
  shared_->wake.notify_one();
  if (scanning) thread_.detach();
  else thread_.join();
}

void GpuScanThread::run(Shared& shared, const Scan& scan) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.wake.wait(lock, [&] { return shared.stopping || !shared.requests.empty(); });
    if (shared.stopping) return;
    const GpuScanRequest request = std::move(shared.requests.front());
    shared.requests.pop_front();
    shared.scanning = true;
    lock.unlock();
    GpuScanResult result = scan(request);
    lock.lock();
    shared.scanning = false;
    shared.results.push_back(std::move(result));
  }
}

void GpuScanThread::ask(std::vector<GpuScanRequest> requests) {
  const std::lock_guard lock(shared_->mutex);
  std::ranges::move(requests, std::back_inserter(shared_->requests));
  shared_->wake.notify_one();
}

std::vector<GpuScanResult> GpuScanThread::drain_results() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->results, {});
}

}  // namespace cgphase
