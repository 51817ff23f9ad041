// Finds the container that contains a cgroup v2 path: the innermost one.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "cgroupfs/cgroup_id.h"
#include "collectors/sample.h"

namespace cgphase {

// Owned and used by one thread.
class ContainerPaths {
 public:
  // Updates the table from a tick. False if no container came or went.
  bool follow(const NodeSample& tick) {
    for (const CgroupId& id : tick.vanished) {
      const auto gone = paths_.extract(id);
      if (gone.empty()) continue;
      // Another container may have its path by now.
      const auto at_path = containers_.find(gone.mapped());
      if (at_path != containers_.end() && at_path->second == id) containers_.erase(at_path);
    }
    for (const ContainerInfo& info : tick.appeared) {
      paths_[info.id] = info.path;
      containers_[info.path] = info.id;
    }
    return !tick.vanished.empty() || !tick.appeared.empty();
  }

  bool has(CgroupId id) const { return paths_.contains(id); }

  // The container at `path`, or the nearest one above it.
  std::optional<CgroupId> nearest(std::string_view path) const {
    for (; path.starts_with('/'); path = path.substr(0, path.rfind('/'))) {
      const auto found = containers_.find(path);
      if (found != containers_.end()) return found->second;
    }
    return std::nullopt;
  }

  std::vector<CgroupPath> all() const {
    std::vector<CgroupPath> paths;
    for (const auto& [path, id] : containers_) paths.push_back(path);
    return paths;
  }

 private:
  std::map<CgroupPath, CgroupId, std::less<>> containers_;
  std::map<CgroupId, CgroupPath> paths_;
};

}  // namespace cgphase
