// Looks for GPUs at once, in the thread that asks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "agent/observers/gpu_looks.h"

namespace cgphase {

class InlineGpuLooks final : public GpuLooks {
 public:
  InlineGpuLooks(std::string cgroup_root, std::string proc_root)
      : cgroup_root_(std::move(cgroup_root)), proc_root_(std::move(proc_root)) {}

  void ask(std::vector<GpuQuestion> questions) override {
    for (const GpuQuestion& question : questions)
      answers_.push_back(look_for_gpu(cgroup_root_, proc_root_, question));
  }
  std::vector<GpuAnswer> take_answers() override { return std::exchange(answers_, {}); }
  const std::string& failed() const override { return failed_; }

 private:
  std::string cgroup_root_, proc_root_, failed_;
  std::vector<GpuAnswer> answers_;
};

}  // namespace cgphase
