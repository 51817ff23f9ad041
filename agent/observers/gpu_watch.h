// Tracks which containers have a GPU or may have one. The safety rules do not change their CPU
// quota (docs/safety.md).
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent/observers/gpu_scanner.h"
#include "base/clock.h"
#include "collectors/node_sampler.h"

namespace cgphase {

// Owned and used by the agent's thread alone, which never waits for a scan.
class GpuWatch {
 public:
  static constexpr std::chrono::seconds kPeriod{60};
  // A longer scan hangs, and its container may have a GPU. No other scan starts until it ends,
  // because a call that hangs in the kernel cannot be cancelled.
  static constexpr std::chrono::seconds kHung{10};

  // Maximum number of `wanted` containers per request.
  static constexpr std::size_t kMostWanted = 16;

  explicit GpuWatch(std::unique_ptr<GpuScanner> scanner) : scanner_(std::move(scanner)) {}

  // Call it after each reading, before the core steps. It drains results and requests scans. A
  // container is scanned when it gets its first process, then once a minute and when it is `wanted`
  // (longest wait first), until a GPU is seen. That result is valid until its processes have ended.
  // On a host without a GPU only /dev is scanned, once a minute. True if a result below may have
  // changed.
  bool scan(const NodeSample& tick, const std::function<bool(CgroupId)>& wanted);

  // True if it has a GPU, or if that cannot be ruled out.
  bool may_have_gpu(CgroupId id) const;
  // Start of the scan that found no GPU. Absent if no scan is needed, or if it may have a GPU.
  std::optional<MonotonicTime> ruled_out(CgroupId id) const;

  Source source() const;
  // A scan that hangs, as a sentence; empty if none does.
  std::string degraded() const;

 private:
  struct Watched {
    std::string name;
    CgroupPath path;
    bool populated = false;
    bool asked = false;  // a scan of its present processes was requested
    GpuUse use = GpuUse::unknown;
    std::optional<MonotonicTime> scanned;  // start of its last scan
  };
  bool follow(const NodeSample& tick);
  bool take(MonotonicTime now);
  bool take_host(const Result<HostDevices>& found);
  bool judge_hang(MonotonicTime now);
  void ask_host(MonotonicTime now);
  void ask_containers(MonotonicTime now, const std::function<bool(CgroupId)>& wanted);
  void ask(std::vector<GpuScanRequest> requests, MonotonicTime now);
  bool host_may_have_gpu() const { return !host_ || host_->gpu; }
  const Watched* find(CgroupId id) const;

  std::unique_ptr<GpuScanner> scanner_;
  std::optional<HostDevices> host_;  // of the last successful scan
  std::optional<MonotonicTime> next_host_scan_;
  std::string error_;                // of the last scan of the host
  std::map<CgroupId, Watched> watched_;
  std::deque<std::optional<CgroupId>> unanswered_;  // in their turns; the host is absent
  MonotonicTime asked_, turn_began_;
  std::string hung_;  // the object of a scan that hangs
};

}  // namespace cgphase
