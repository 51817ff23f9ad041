// Loads libnvidia-ml.so.1 and calls it.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "collectors/gpu/nvml_abi.h"

namespace cgphase {

// Every call may take arbitrarily long, even forever. Owned and used by one thread. Errors of its
// calls: gone (the GPU or the driver is lost), unsupported, denied, io.
class NvmlLibrary {
 public:
  // Loads and initialises the library. `path` is an argument of dlopen(3). Errors: not_found (no
  // such library, or it has no device), invalid (a required function is missing), io.
  static Result<NvmlLibrary> open(const std::string& path);
  NvmlLibrary(NvmlLibrary&&) noexcept = default;
  NvmlLibrary& operator=(NvmlLibrary&&) noexcept = default;

  Result<unsigned> device_count() const;
  Result<nvml::Device> device(unsigned index) const;
  Result<std::string> uuid(nvml::Device device) const;
  Result<std::string> name(nvml::Device device) const;
  Result<nvml::Memory> memory(nvml::Device device) const;
  Result<nvml::Utilization> utilization(nvml::Device device) const;

  // The MIG instances of a device; none if it is not divided.
  struct Instance {
    nvml::Device device = nullptr;
    unsigned gpu_instance = nvml::kNoInstance, compute_instance = nvml::kNoInstance;
  };
  Result<std::vector<Instance>> instances(nvml::Device device) const;

  // Processes with compute and graphics contexts, each once per instance that it uses, ascending.
  Result<std::vector<nvml::ProcessInfo>> processes(nvml::Device device) const;
  // Samples newer than `last_seen_usec`. If there are none, all processes were idle.
  Result<std::vector<nvml::ProcessSample>> samples(nvml::Device device,
                                                   unsigned long long last_seen_usec) const;

 private:
  struct Functions {
    nvml::Init init;
    nvml::Shutdown shutdown;
    nvml::DeviceGetCount count;
    nvml::DeviceGetHandleByIndex handle;
    nvml::DeviceGetText uuid;
    // These may be null in libraries of other versions and platforms.
    nvml::ErrorString error_string;
    nvml::DeviceGetText name;
    nvml::DeviceGetMemoryInfo memory;
    nvml::DeviceGetUtilizationRates utilization;
    nvml::DeviceGetMigMode mig_mode;
    nvml::DeviceGetNumber most_instances, gpu_instance, compute_instance;
    nvml::DeviceGetInstance instance;
    nvml::DeviceGetRunningProcesses compute_processes, graphics_processes;
    nvml::DeviceGetProcessUtilization samples;
  };
  // Unloads the library, after a shutdown if it was initialised.
  struct Close {
    nvml::Shutdown shutdown;
    void operator()(void* handle) const;
  };

  NvmlLibrary() = default;
  Status resolve();
  std::unexpected<Error> failed(const char* function, nvml::Return result) const;
  Result<std::string> text(nvml::DeviceGetText get, const char* function,
                           nvml::Device device) const;
  std::optional<Instance> instance(nvml::Device device, unsigned index) const;
  Status append_processes(nvml::DeviceGetRunningProcesses get, const char* function,
                          nvml::Device device, std::vector<nvml::ProcessInfo>& out) const;

  std::unique_ptr<void, Close> handle_{nullptr, Close{nullptr}};
  Functions functions_{};
};

// Decodes a buffer that was filled with kNvmlSentinel bytes before a driver wrote `count` entries,
// of 24 or of 32 bytes each. The buffer must have room for `count` entries of 32 bytes.
inline constexpr unsigned char kNvmlSentinel = 0xa5;
std::vector<nvml::ProcessInfo> decode_processes(const std::vector<unsigned char>& buffer,
                                                std::size_t count);

}  // namespace cgphase
