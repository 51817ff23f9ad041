#include "collectors/ebpf/probe_source.h"

#include <optional>
#include <utility>

#include "collectors/ebpf/limit_writes.h"

namespace cgphase {
namespace {

class KernelProbes final : public ProbeSource {
 public:
  explicit KernelProbes(const std::string& cgroup_root) {
    if (auto started = LimitWriteProbe::start(cgroup_root))
      limit_writes_.emplace(std::move(*started));
    else
      no_limit_writes_ = started.error().text;
  }

  std::vector<LimitWrite> take_limit_writes() override {
    return limit_writes_ ? limit_writes_->take() : std::vector<LimitWrite>();
  }

  std::vector<Source> sources() const override {
    Source source{"eBPF: who writes limits", limit_writes_.has_value(), no_limit_writes_};
    if (limit_writes_ && limit_writes_->lost() > 0)
      source.detail = std::to_string(limit_writes_->lost()) + " writes were too many at once";
    return {source};
  }

 private:
  std::optional<LimitWriteProbe> limit_writes_;
  std::string no_limit_writes_;  // why not
};

}  // namespace

std::unique_ptr<ProbeSource> open_kernel_probes(const std::string& cgroup_root) {
  return std::make_unique<KernelProbes>(cgroup_root);
}

}  // namespace cgphase
