#include "collectors/ebpf/probe_source.h"

#include <optional>
#include <utility>

#include "collectors/ebpf/limit_writes.h"

namespace cgphase {
namespace {

constexpr const char* kLimitWrites = "eBPF: who writes limits";

class KernelProbes final : public ProbeSource {
 public:
  explicit KernelProbes(std::string cgroup_root) : cgroup_root_(std::move(cgroup_root)) {}

  std::vector<LimitWrite> take_limit_writes() override {
    return limit_writes_ ? limit_writes_->take() : std::vector<LimitWrite>();
  }

  // Tried once each time that they become wanted: what a kernel refuses it refuses again.
  void set_wanted(bool wanted) override {
    if (wanted == std::exchange(wanted_, wanted)) return;
    limit_writes_.reset();
    if (!wanted) return;
    if (auto started = LimitWriteProbe::start(cgroup_root_))
      limit_writes_.emplace(std::move(*started));
    else
      no_limit_writes_ = started.error().text;
  }

  std::vector<Source> sources() const override {
    if (!wanted_) return {{kLimitWrites, false, "not needed where all is only observed"}};
    if (!limit_writes_) return {{kLimitWrites, false, no_limit_writes_}};
    const std::uint64_t lost = limit_writes_->lost();
    return {{kLimitWrites, true,
             lost > 0 ? std::to_string(lost) + " writes were too many at once" : ""}};
  }

 private:
  const std::string cgroup_root_;
  bool wanted_ = false;
  std::optional<LimitWriteProbe> limit_writes_;
  std::string no_limit_writes_;  // why not
};

class NoProbes final : public ProbeSource {
 public:
  explicit NoProbes(std::string why) : why_(std::move(why)) {}
  std::vector<LimitWrite> take_limit_writes() override { return {}; }
  void set_wanted(bool) override {}
  std::vector<Source> sources() const override { return {{kLimitWrites, false, why_}}; }

 private:
  const std::string why_;
};

}  // namespace

std::unique_ptr<ProbeSource> open_kernel_probes(const std::string& cgroup_root) {
  return std::make_unique<KernelProbes>(cgroup_root);
}

std::unique_ptr<ProbeSource> no_probes(const std::string& why) {
  return std::make_unique<NoProbes>(why);
}

}  // namespace cgphase
