// One cgroup that is a plain directory, and its readings.
#pragma once

#include <fcntl.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/cgroup_files.h"
#include "tests/collectors/fake_tree.h"

namespace cgphase {

struct OneCgroup : FakeTree {
  std::vector<char> buffer = std::vector<char>(kKernelTextBytes);
  Sample sample;
  MonotonicTime now{};
  std::optional<CgroupFiles> files;

  OneCgroup() { make("/c"); }
  void put(const std::string& file, std::string_view text) const { write("/c/" + file, text); }
  CgroupFiles open() const {
    Result<Fd> directory = open_path(root() + "/c", O_RDONLY | O_DIRECTORY);
    REQUIRE(directory.has_value());
    return CgroupFiles(std::move(*directory));
  }
  bool read(CgroupFiles& files, std::chrono::nanoseconds after = std::chrono::seconds(1),
            const ReadPlan& plan = {}, const Pulled& pulled = {}) {
    now += after;
    return files.read(now, sample, buffer, plan, pulled);
  }
};

}  // namespace cgphase
