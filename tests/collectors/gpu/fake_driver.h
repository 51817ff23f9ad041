// The libnvidia-ml.so.1 of the tests (fake_nvml.cpp), and its configuration.
#pragma once

#include <stdlib.h>

#include <string>

#include "tests/collectors/fake_tree.h"

namespace cgphase::test {

class FakeDriver {
 public:
  FakeDriver() {
    says("");
    REQUIRE(::setenv("FAKE_NVML", (tree.root() + "/nvml").c_str(), 1) == 0);
  }
  ~FakeDriver() { ::unsetenv("FAKE_NVML"); }

  // In the language of fake_nvml.cpp.
  void says(const std::string& text) const { tree.write("/nvml", text); }
  void put(int pid, const std::string& cgroup) const {
    tree.write("/proc/" + std::to_string(pid) + "/cgroup", "0::" + cgroup + "\n");
  }
  std::string proc() const { return tree.root() + "/proc"; }

  FakeTree tree;
};

}  // namespace cgphase::test
