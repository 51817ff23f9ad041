// Shared code of the tests of counting programs: processes in cgroups of their own on this machine,
// and the counters of an agent.
#pragma once

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "collectors/ebpf/counters.h"
#include "tests/collectors/host_cgroup.h"

namespace cgphase {

inline constexpr double kTestBudget = 1;  // of a core: tests are busy

inline ContainerInfo container_in(const HostCgroup& cgroup) {
  ContainerInfo info;
  info.id = cgroup.id();
  info.path = cgroup.path();
  return info;
}

// A process that is created in a cgroup, so that nothing of it is elsewhere. The destructor kills
// it and waits for it.
class BornIn {
 public:
  BornIn(const HostCgroup& cgroup, const std::function<int()>& work) {
    pid_ = born_in(cgroup);
    REQUIRE(pid_ >= 0);
    if (pid_ == 0) ::_exit(work());
  }
  ~BornIn() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  BornIn(BornIn&& other) noexcept : pid_(std::exchange(other.pid_, 0)) {}
  BornIn(const BornIn&) = delete;
  BornIn& operator=(const BornIn&) = delete;

  pid_t pid() const { return pid_; }
  // Its exit status; -1 if a signal killed it.
  int wait() {
    int status = 0;
    REQUIRE(::waitpid(std::exchange(pid_, 0), &status, 0) > 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t pid_ = 0;
};

// Counters as the agent has them, and the ticks that it would pass to them.
class Counted {
 public:
  explicit Counted(std::vector<const HostCgroup*> containers) {
    for (const HostCgroup* cgroup : containers) tick_.appeared.push_back(container_in(*cgroup));
    for (const HostCgroup* cgroup : containers) {
      Sample& sample = tick_.containers.emplace_back();
      sample.id = cgroup->id();
    }
    std::ranges::sort(tick_.containers, {}, &Sample::id);
    read();
  }
  void read() {
    tick_.time += std::chrono::seconds(1);
    for (Sample& sample : tick_.containers) {  // reset, as in each tick
      const CgroupId id = sample.id;
      sample = {};
      sample.id = id;
    }
    counters_.fill(tick_);
    tick_.appeared.clear();
    tick_.vanished.clear();
  }
  const Sample& of(const HostCgroup& cgroup) const {
    const CgroupId id = cgroup.id();
    for (const Sample& sample : tick_.containers)
      if (sample.id == id) return sample;
    FAIL("no such container");
    return tick_.containers[0];
  }
  Source source(const std::string& name) const {
    for (const Source& source : counters_.sources())
      if (source.name == "eBPF: " + name) return source;
    return {name, false, "no such source"};
  }
  NodeSample& tick() { return tick_; }
  const KernelCounters& counters() const { return counters_; }

 private:
  NodeSample tick_;
  KernelCounters counters_{cgroup2_mount(), kTestBudget};
};

}  // namespace cgphase
