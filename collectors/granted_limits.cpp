#include "collectors/granted_limits.h"

#include <algorithm>
#include <string>

#include "base/file.h"
#include "collectors/cgroup_files.h"
#include "collectors/kernel_text.h"

namespace cgphase {

Granted GrantedLimits::within(const CgroupPath& path) {
  if (path.empty() || root_fd_ < 0) return {};  // the root has no limits
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  const Granted around = within(path.substr(0, path.rfind('/'))), own = read(path);
  return known_[path] = {std::min(around.cpu_cores, own.cpu_cores),
                         std::min(around.memory_bytes, own.memory_bytes)};
}

Granted GrantedLimits::read(const CgroupPath& path) const {
  const auto text = [&](KernelFile file) {
    return read_file_at(root_fd_, ("." + path + "/" + kernel_file_name(file)).c_str(),
                        kKernelTextBytes)
        .value_or("");
  };
  Granted own;
  const Limits limits{.cpu_max = scan_cpu_max(text(KernelFile::cpu_max)),
                      .memory_max = scan_limit(text(KernelFile::memory_max))};
  if (const auto cores = limits.cpu_cores()) own.cpu_cores = cores->value;
  if (const auto bytes = limits.memory_bytes())
    own.memory_bytes = static_cast<double>(bytes->value);
  return own;
}

}  // namespace cgphase
