// Detects which containers may use a GPU, without asking an engine: by the device nodes that their
// processes have open, and by the nodes in a /dev of their own. It reads only links and names,
// never a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "base/result.h"

namespace cgphase {

// True for device nodes of NVIDIA (nvidia0, nvidiactl, nvidia-uvm), AMD (kfd), any render node
// (dri/renderD128), WSL (dxg) and Jetson (nvhost-*, nvmap, nvgpu). Other accelerators count as
// GPUs: the kernel's own class (accel/accel0), TPU (accel0), Ascend (davinci0), Neuron (neuron0),
// Gaudi (hl0), Coral (apex_0) and Hailo (hailo0). `path` is as a process of the host or a
// container sees it.
bool is_gpu_device(std::string_view path);

// The /dev of the host, which every process without its own shares.
struct HostDevices {
  dev_t device = 0;  // the identity, with `inode`; both 0 if there is no /dev
  ino_t inode = 0;
  bool gpu = false;  // if false, no container has a GPU
};
// Reads /dev as process 1 below `proc_root` sees it, or as this process does if that is not
// permitted. Errors: denied, io. A host without a /dev is not an error.
Result<HostDevices> read_host_devices(const std::string& proc_root);

enum class GpuUse : std::uint8_t {
  none,
  unknown,  // not all could be read, and no GPU was seen
  seen,
};

struct GpuScan {
  GpuUse use = GpuUse::none;
  std::size_t processes = 0;  // that were read
};

// Limits of one scan, in addition to that of visit_processes(). Beyond a limit the result is
// `unknown`.
inline constexpr std::size_t kMostGpuProcesses = 512;
inline constexpr std::size_t kMostGpuDescriptors = 16384;  // of all these processes
inline constexpr std::size_t kMostDeviceNames = 4096;      // in one directory

// Scans the processes of the cgroup behind `cgroup_fd` and below it, up to the first with a GPU. It
// takes about 20 us per process, and 1 to 3 us per descriptor. A node in /dev counts only if /dev
// is not the host's, which all processes see. Processes that end meanwhile have no GPU. If none of
// the listed processes can be found, `proc_root` hides them and the result is unknown.
GpuScan find_gpu(int cgroup_fd, const std::string& proc_root, const HostDevices& host);

}  // namespace cgphase
