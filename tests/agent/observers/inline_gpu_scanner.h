// Scans for GPUs at once, in the calling thread.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/observers/gpu_scanner.h"

namespace cgphase {

class InlineGpuScanner final : public GpuScanner {
 public:
  InlineGpuScanner(std::string cgroup_root, std::string proc_root)
      : cgroup_root_(std::move(cgroup_root)), proc_root_(std::move(proc_root)) {}

  void ask(std::vector<GpuScanRequest> requests) override {
    for (const GpuScanRequest& request : requests)
      results_.push_back(scan_for_gpu(cgroup_root_, proc_root_, request));
  }
  std::vector<GpuScanResult> drain_results() override { return std::exchange(results_, {}); }
  const std::string& failed() const override { return failed_; }

 private:
  std::string cgroup_root_, proc_root_, failed_;
  std::vector<GpuScanResult> results_;
};

}  // namespace cgphase
