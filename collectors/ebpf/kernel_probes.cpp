#include "collectors/ebpf/probe_source.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "collectors/ebpf/counters.h"
#include "collectors/ebpf/limit_writes.h"
#include "collectors/ebpf/programs.h"

namespace cgphase {
namespace {

constexpr const char* kLimitWrites = "eBPF: who writes limits";
constexpr const char* kPrograms = "eBPF: programs that start";
constexpr const char* kCounters = "eBPF: counters";
constexpr const char* kNotNeeded = "not needed while all containers are only observed";

class KernelProbes final : public ProbeSource {
 public:
  KernelProbes(std::string cgroup_root, double budget_ratio)
      : cgroup_root_(std::move(cgroup_root)), counters_(cgroup_root_, budget_ratio) {}

  std::vector<LimitWrite> drain_limit_writes() override {
    return limit_writes_ ? limit_writes_->drain() : std::vector<LimitWrite>();
  }

  // The program is tried once whenever it becomes wanted. A retry would fail again.
  void set_wanted(bool wanted) override {
    if (wanted == std::exchange(wanted_, wanted)) return;
    limit_writes_.reset();
    if (!wanted) return;
    if (auto started = LimitWriteProbe::start(cgroup_root_))
      limit_writes_.emplace(std::move(*started));
    else
      no_limit_writes_ = started.error().text;
  }

  bool watch_programs(CgroupId container, bool wanted) override {
    if (!std::exchange(programs_wanted_, true)) {
      auto started = ProgramProbe::start();
      if (started) programs_.emplace(std::move(*started));
      else no_programs_ = started.error().text;
    }
    return programs_ && programs_->watch(container.inode, wanted);
  }
  void ignore_program(CgroupId container, std::uint64_t key, bool ignored) override {
    if (programs_) programs_->ignore(container.inode, key, ignored);
  }
  std::vector<ProgramAct> drain_program_acts() override {
    return programs_ ? programs_->drain() : std::vector<ProgramAct>();
  }
  bool reports_limit_reads() const override { return programs_ && programs_->reports_reads(); }
  std::shared_ptr<ProgramStarts> program_starts() override {
    return programs_ ? programs_->starts() : nullptr;
  }

  void fill_counters(NodeSample& tick) override { counters_.fill(tick); }
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId container) const override {
    return counters_.run_queue_histogram(container);
  }

  std::vector<Source> sources() const override {
    std::vector<Source> sources = {limit_write_source(), program_source()};
    std::ranges::move(counters_.sources(), std::back_inserter(sources));
    return sources;
  }

 private:
  Source limit_write_source() const {
    if (!wanted_) return {kLimitWrites, false, kNotNeeded};
    if (!limit_writes_) return {kLimitWrites, false, no_limit_writes_};
    const std::uint64_t lost = limit_writes_->lost();
    return {kLimitWrites, true,
            lost > 0 ? std::to_string(lost) + " writes were too many at once" : ""};
  }

  Source program_source() const {
    if (!programs_wanted_) return {kPrograms, false, kNotNeeded};
    if (!programs_) return {kPrograms, false, no_programs_};
    const std::uint64_t lost = programs_->lost();
    return {kPrograms, true,
            programs_->tier() +
                (lost > 0 ? ", " + std::to_string(lost) + " were too many at once" : "")};
  }

  const std::string cgroup_root_;
  bool wanted_ = false;
  std::optional<LimitWriteProbe> limit_writes_;
  std::string no_limit_writes_;  // why not
  bool programs_wanted_ = false;
  std::optional<ProgramProbe> programs_;
  std::string no_programs_;  // why not
  KernelCounters counters_;
};

class NoProbes final : public ProbeSource {
 public:
  explicit NoProbes(std::string why) : why_(std::move(why)) {}
  std::vector<LimitWrite> drain_limit_writes() override { return {}; }
  void set_wanted(bool) override {}
  bool watch_programs(CgroupId, bool) override { return false; }
  void ignore_program(CgroupId, std::uint64_t, bool) override {}
  std::vector<ProgramAct> drain_program_acts() override { return {}; }
  bool reports_limit_reads() const override { return false; }
  std::shared_ptr<ProgramStarts> program_starts() override { return nullptr; }
  void fill_counters(NodeSample&) override {}
  std::optional<RunQueueHistogram> run_queue_histogram(CgroupId) const override { return {}; }
  std::vector<Source> sources() const override {
    return {{kLimitWrites, false, why_}, {kPrograms, false, why_}, {kCounters, false, why_}};
  }

 private:
  const std::string why_;
};

}  // namespace

std::unique_ptr<ProbeSource> open_kernel_probes(const std::string& cgroup_root,
                                                double budget_ratio) {
  return std::make_unique<KernelProbes>(cgroup_root, budget_ratio);
}

std::unique_ptr<ProbeSource> no_probes(const std::string& why) {
  return std::make_unique<NoProbes>(why);
}

}  // namespace cgphase
