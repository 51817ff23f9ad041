#include "collectors/ancestor_limits.h"

#include <algorithm>
#include <string>

#include "base/file.h"
#include "cgroupfs/kernel_text.h"
#include "collectors/cgroup_files.h"

namespace cgphase {

AncestorLimits AncestorLimitsReader::within(const CgroupPath& path) {
  if (root_fd_ < 0) return {};
  if (const auto known = known_.find(path); known != known_.end()) return known->second;
  const AncestorLimits around =
      path.empty() ? AncestorLimits{} : within(path.substr(0, path.rfind('/')));
  const AncestorLimits own = read(path);
  return known_[path] = {std::min(around.cpu_cores, own.cpu_cores),
                         std::min(around.memory_bytes, own.memory_bytes)};
}

AncestorLimits AncestorLimitsReader::read(const CgroupPath& path) const {
  const auto text = [&](KernelFile file) {
    return read_file_at(root_fd_, ("." + path + "/" + kernel_file_name(file)).c_str(),
                        kKernelTextBytes)
        .value_or("");
  };
  AncestorLimits own;
  const Limits limits{.cpu_max = scan_cpu_max(text(KernelFile::cpu_max))};
  if (const auto cores = limits.cpu_cores()) own.cpu_cores = cores->value;
  for (const KernelFile file : {KernelFile::memory_max, KernelFile::memory_high})
    if (const auto limit = scan_limit(text(file)); limit && limit->bytes)
      own.memory_bytes = std::min(own.memory_bytes, static_cast<double>(limit->bytes->value));
  return own;
}

}  // namespace cgphase
