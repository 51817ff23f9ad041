// Scans for GPUs. A scan may take forever, because the /dev of a container may be on a network disk
// or a FUSE file system that does not answer.
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

struct GpuScanRequest {
  std::optional<CgroupId> container;  // absent: the devices of the host
  CgroupPath path;                    // of the container
  HostDevices host;
};

// The devices of the host, and the use by the container of the request.
struct GpuScanResult {
  Result<HostDevices> host;
  GpuUse use = GpuUse::unknown;
};

// Scans now, the container only if its path is still that cgroup. Takes as long as the files need.
GpuScanResult scan_for_gpu(const std::string& cgroup_root, const std::string& proc_root,
                       const GpuScanRequest& request);

// Used by the agent's thread alone.
class GpuScanner {
 public:
  GpuScanner() = default;
  GpuScanner(const GpuScanner&) = delete;
  GpuScanner& operator=(const GpuScanner&) = delete;
  virtual ~GpuScanner() = default;

  // Does not wait. Called again only after all results were drained.
  virtual void ask(std::vector<GpuScanRequest> requests) = 0;
  // Results since the last call, in the order of the requests.
  virtual std::vector<GpuScanResult> drain_results() = 0;
  // Why no scan is possible; empty if it is.
  virtual const std::string& failed() const = 0;
};

// Scans on its own thread. Nothing ever waits for a scan, not even at the end. A thread that hangs
// is abandoned and keeps only memory of this process.
class GpuScanThread final : public GpuScanner {
 public:
  using Scan = std::function<GpuScanResult(const GpuScanRequest&)>;

  // If no thread can be started, failed() has the reason.
  explicit GpuScanThread(Scan scan);
  ~GpuScanThread() override;

  void ask(std::vector<GpuScanRequest> requests) override;
  std::vector<GpuScanResult> drain_results() override;
  const std::string& failed() const override { return failed_; }

 private:
  // Outlives the owner if a scan hangs.
  struct Shared {
    std::mutex mutex;
    std::condition_variable wake;
    std::deque<GpuScanRequest> requests;
    std::vector<GpuScanResult> results;
    bool scanning = false, stopping = false;
  };
  static void run(Shared& shared, const Scan& scan);

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::string failed_;
  std::thread thread_;
};

}  // namespace cgphase
