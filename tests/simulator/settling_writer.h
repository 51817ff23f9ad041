// The real writer. The test waits after each change until the writer's threads have answered
// (lanes.h). Some answers reach the agent late.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "control/writer/kernel_limit_writer.h"
#include "tests/simulator/lanes.h"
#include "tests/simulator/random.h"

namespace cgphase::simulator {

class SettlingWriter final : public LimitWriter {
 public:
  SettlingWriter(KernelLimitWriter& inner, Random& random, std::uint64_t late_one_in)
      : inner_(inner), random_(random), late_one_in_(late_one_in) {}

  Status attach(CgroupId id, const CgroupPath& path, Fd directory) override {
    return inner_.attach(id, path, std::move(directory));
  }
  void detach(CgroupId id) override { inner_.detach(id); }
  // Receives each change and its result before the agent does.
  using Judge = std::function<void(const LimitChange&, const LimitResult&)>;
  void on_result(Judge judge) { judge_ = std::move(judge); }
  void submit(LimitChange change) override {
    asked_[change.decision_id] = change;
    lanes().submitted(change.raise);
    inner_.submit(std::move(change));
    lanes().settle();
  }
  void submit_reclaim(CgroupId id, Bytes bytes) override {
    lanes().submitted(false);
    inner_.submit_reclaim(id, bytes);
    lanes().settle();
  }
  int result_fd() const override { return inner_.result_fd(); }
  std::vector<LimitResult> drain_results() override {
    for (LimitResult& result : inner_.drain_results()) {
      judge(result);
      waiting_.emplace_back(random_.one_in(late_one_in_) ? 1 + random_.below(5) : 0,
                            std::move(result));
    }
    std::vector<LimitResult> taken;
    // In their order, because the real queue is first-in, first-out.
    while (!waiting_.empty() && waiting_.front().first == 0) {
      taken.push_back(std::move(waiting_.front().second));
      waiting_.pop_front();
    }
    if (!waiting_.empty()) --waiting_.front().first;
    return taken;
  }
  RestoreReport restore_all() override { return inner_.restore_all(); }
  RestoreReport restore(CgroupId id) override { return inner_.restore(id); }

 private:
  void judge(const LimitResult& result) {
    const auto change = asked_.find(result.decision_id);
    if (change == asked_.end()) return;
    if (judge_) judge_(change->second, result);
    asked_.erase(change);
  }

  KernelLimitWriter& inner_;
  Random& random_;
  std::uint64_t late_one_in_;
  Judge judge_;
  std::map<std::uint64_t, LimitChange> asked_;  // by decision
  std::deque<std::pair<std::uint64_t, LimitResult>> waiting_;
};

}  // namespace cgphase::simulator
