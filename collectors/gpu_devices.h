// Which containers may use a GPU, told without any engine: by the device nodes that their processes
// have open, and by those in a /dev of their own. Reads links and names only, never a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"

namespace cgphase {

// NVIDIA (nvidia0, nvidiactl, nvidia-uvm), AMD (kfd), any by a render node (dri/renderD128), WSL
// (dxg), Jetson (nvhost-*, nvmap, nvgpu): `path` as a process of the host or a container names it.
bool is_gpu_device(std::string_view path);

// The /dev of the host, which every process shares that has none of its own.
struct HostDevices {
  dev_t device = 0;  // with `inode` its identity; both 0 where there is no /dev
  ino_t inode = 0;
  bool gpu = false;  // without one no container has any
};
// As process 1 below `proc_root` sees it, or this process where that may not be looked at. Errors:
// denied, io; a host without a /dev is none.
Result<HostDevices> read_host_devices(const std::string& proc_root);

enum class GpuUse : std::uint8_t {
  none,
  unknown,  // not all could be looked at, and what was seen is none
  seen,
};

struct GpuLook {
  GpuUse use = GpuUse::none;
  std::size_t processes = 0;  // looked at
};

// Bounds of one look, beside that of visit_processes(); what is beyond one makes it `unknown`.
inline constexpr std::size_t kMostGpuProcesses = 512;
inline constexpr std::size_t kMostGpuDescriptors = 16384;  // of all these processes
inline constexpr std::size_t kMostDeviceNames = 4096;      // in one directory

// The processes of the cgroup behind `cgroup_fd` and of those below it, up to the first that has a
// GPU: about 20 us for a process, and 1 to 3 us for each of its descriptors. A node in /dev counts
// only where that is not the host's: what everybody sees says nothing of who uses it. Processes
// that end meanwhile have none; where none of those listed is to be found, `proc_root` hides them:
// unknown.
GpuLook find_gpu(int cgroup_fd, const std::string& proc_root, const HostDevices& host);

}  // namespace cgphase
