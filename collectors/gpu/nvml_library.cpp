#include "collectors/gpu/nvml_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <span>
#include <tuple>
#include <type_traits>

#include "base/text.h"
#include "collectors/gpu/gpu_reading.h"

namespace cgphase {
namespace {

// Room that suffices on most hosts. A query for the count takes as long as a query for the data.
constexpr unsigned kUsualProcesses = 32, kUsualSamples = 128;
// Additional room for processes that start between two calls, and the number of attempts.
constexpr unsigned kMoreProcesses = 16;
constexpr int kTries = 4;

// The first function in `names` that the library has.
template <class Function>
Function find_function(void* handle, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (void* const found = ::dlsym(handle, name)) return reinterpret_cast<Function>(found);
  return nullptr;
}

ErrorKind kind_of_nvml(nvml::Return result) {
  switch (result) {
    case nvml::kUninitialized:
    case nvml::kDriverNotLoaded:
    case nvml::kGpuIsLost: return ErrorKind::gone;
    case nvml::kNotSupported: return ErrorKind::unsupported;
    case nvml::kNoPermission: return ErrorKind::denied;
    default: return ErrorKind::io;
  }
}

bool same_client(const nvml::ProcessInfo& a, const nvml::ProcessInfo& b) {
  return a.pid == b.pid && a.gpu_instance == b.gpu_instance &&
         a.compute_instance == b.compute_instance;
}

// A process with both kinds of context is in both lists, with the same memory.
void merge_clients(std::vector<nvml::ProcessInfo>& infos) {
  // Known memory sorts first, because "not available" is the largest number.
  std::ranges::sort(infos, {}, [](const nvml::ProcessInfo& info) {
    return std::tuple(info.pid, info.gpu_instance, info.compute_instance, info.used_memory);
  });
  const auto rest = std::ranges::unique(infos, same_client);
  infos.erase(rest.begin(), rest.end());
}

bool untouched(std::span<const unsigned char> bytes) {
  return std::ranges::all_of(bytes, [](unsigned char byte) { return byte == kNvmlSentinel; });
}

nvml::ProcessInfo info_at(const std::vector<unsigned char>& buffer, std::size_t offset) {
  nvml::ProcessInfo info{};
  std::memcpy(&info, buffer.data() + offset, sizeof info);
  return info;
}

}  // namespace

// A driver writes only its entries. With 24 bytes per entry, the bytes from 24 n to 32 n keep the
// sentinel. With 32 bytes, the last entry ends at 32 n. A driver that clears the whole buffer first
// leaves no trace of its entry size. Then every entry has a pid only if the size is right.
std::vector<nvml::ProcessInfo> decode_processes(const std::vector<unsigned char>& buffer,
                                                std::size_t count) {
  const std::size_t usual = sizeof(nvml::ProcessInfo) * count;
  const std::size_t longer = nvml::kLongProcessInfoBytes * count;
  const std::span all(buffer);
  std::size_t stride = sizeof(nvml::ProcessInfo);
  const auto has_pids = [&](std::size_t bytes) {
    for (std::size_t i = 0; i < count; ++i)
      if (info_at(buffer, i * bytes).pid == 0) return false;
    return true;
  };
  const bool touched = !untouched(all.subspan(usual, longer - usual));
  const bool cleared = !untouched(all.subspan(longer));
  if (touched && (!cleared || (!has_pids(stride) && has_pids(nvml::kLongProcessInfoBytes))))
    stride = nvml::kLongProcessInfoBytes;
  std::vector<nvml::ProcessInfo> infos;
  for (std::size_t i = 0; i < count; ++i) {
    const nvml::ProcessInfo info = info_at(buffer, i * stride);
    const bool filled = !untouched(all.subspan(i * stride, sizeof info));
    if (filled && info.pid != 0) infos.push_back(info);
  }
  return infos;
}

void NvmlLibrary::Close::operator()(void* handle) const {
  if (shutdown != nullptr) (void)shutdown();
  ::dlclose(handle);
}

Result<NvmlLibrary> NvmlLibrary::open(const std::string& path) {
  NvmlLibrary library;
  library.handle_.reset(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL));
  if (!library.handle_) {
    const char* const reason = ::dlerror();
    return failure(ErrorKind::not_found, printable(reason == nullptr ? path : reason));
  }
  if (const Status resolved = library.resolve(); !resolved)
    return std::unexpected(resolved.error());
  if (const nvml::Return result = library.functions_.init(); result != nvml::kSuccess)
    return library.failed("nvmlInit_v2", result);
  library.handle_.get_deleter().shutdown = library.functions_.shutdown;
  return library;
}

Status NvmlLibrary::resolve() {
  void* const handle = handle_.get();
  Functions& f = functions_;
  const auto find = [handle](auto& function, std::initializer_list<const char*> names) {
    function = find_function<std::remove_reference_t<decltype(function)>>(handle, names);
  };
  find(f.init, {"nvmlInit_v2"});
  find(f.shutdown, {"nvmlShutdown"});
  find(f.count, {"nvmlDeviceGetCount_v2"});
  find(f.handle, {"nvmlDeviceGetHandleByIndex_v2"});
  find(f.uuid, {"nvmlDeviceGetUUID"});
  find(f.error_string, {"nvmlErrorString"});
  find(f.name, {"nvmlDeviceGetName"});
  find(f.memory, {"nvmlDeviceGetMemoryInfo"});
  find(f.utilization, {"nvmlDeviceGetUtilizationRates"});
  find(f.mig_mode, {"nvmlDeviceGetMigMode"});
  find(f.most_instances, {"nvmlDeviceGetMaxMigDeviceCount"});
  find(f.instance, {"nvmlDeviceGetMigDeviceHandleByIndex"});
  find(f.gpu_instance, {"nvmlDeviceGetGpuInstanceId"});
  find(f.compute_instance, {"nvmlDeviceGetComputeInstanceId"});
  find(f.compute_processes,
       {"nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2"});
  find(f.graphics_processes,
       {"nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v2"});
  find(f.samples, {"nvmlDeviceGetProcessUtilization"});
  if (f.init && f.shutdown && f.count && f.handle && f.uuid) return {};
  return failure(ErrorKind::invalid,
                 "it has no nvmlInit_v2, nvmlDeviceGetCount_v2, nvmlDeviceGetHandleByIndex_v2 or "
                 "nvmlDeviceGetUUID; a driver from 2014 on has them");
}

std::unexpected<Error> NvmlLibrary::failed(const char* function, nvml::Return result) const {
  const char* const words =
      functions_.error_string == nullptr ? nullptr : functions_.error_string(result);
  return failure(kind_of_nvml(result),
                 std::string(function) + ": " + (words == nullptr ? "" : printable(words) + " ") +
                     "(" + std::to_string(result) + ")");
}

Result<unsigned> NvmlLibrary::device_count() const {
  unsigned count = 0;
  const nvml::Return result = functions_.count(&count);
  if (result != nvml::kSuccess) return failed("nvmlDeviceGetCount_v2", result);
  return count;
}

Result<nvml::Device> NvmlLibrary::device(unsigned index) const {
  nvml::Device device = nullptr;
  const nvml::Return result = functions_.handle(index, &device);
  if (result != nvml::kSuccess) return failed("nvmlDeviceGetHandleByIndex_v2", result);
  return device;
}

Result<std::string> NvmlLibrary::text(nvml::DeviceGetText get, const char* function,
                                      nvml::Device device) const {
  if (get == nullptr) return failure(ErrorKind::unsupported, function);
  std::array<char, nvml::kTextBytes + 1> text{};  // terminated even if the driver does not do it
  const nvml::Return result = get(device, text.data(), nvml::kTextBytes);
  if (result != nvml::kSuccess) return failed(function, result);
  return std::string(text.data());
}

Result<std::string> NvmlLibrary::uuid(nvml::Device device) const {
  return text(functions_.uuid, "nvmlDeviceGetUUID", device);
}

Result<std::string> NvmlLibrary::name(nvml::Device device) const {
  return text(functions_.name, "nvmlDeviceGetName", device);
}

Result<nvml::Memory> NvmlLibrary::memory(nvml::Device device) const {
  nvml::Memory memory{};
  if (functions_.memory == nullptr) return failure(ErrorKind::unsupported, "memory info");
  const nvml::Return result = functions_.memory(device, &memory);
  if (result != nvml::kSuccess) return failed("nvmlDeviceGetMemoryInfo", result);
  return memory;
}

Result<nvml::Utilization> NvmlLibrary::utilization(nvml::Device device) const {
  nvml::Utilization utilization{};
  if (functions_.utilization == nullptr) return failure(ErrorKind::unsupported, "utilization");
  const nvml::Return result = functions_.utilization(device, &utilization);
  if (result != nvml::kSuccess) return failed("nvmlDeviceGetUtilizationRates", result);
  return utilization;
}

std::optional<NvmlLibrary::Instance> NvmlLibrary::instance(nvml::Device device,
                                                           unsigned index) const {
  Instance found;
  // Not every slot has an instance.
  if (functions_.instance(device, index, &found.device) != nvml::kSuccess) return std::nullopt;
  if (functions_.gpu_instance != nullptr)
    (void)functions_.gpu_instance(found.device, &found.gpu_instance);
  if (functions_.compute_instance != nullptr)
    (void)functions_.compute_instance(found.device, &found.compute_instance);
  return found;
}

Result<std::vector<NvmlLibrary::Instance>> NvmlLibrary::instances(nvml::Device device) const {
  const Functions& f = functions_;
  std::vector<Instance> found;
  if (f.mig_mode == nullptr || f.most_instances == nullptr || f.instance == nullptr) return found;
  unsigned current = 0, pending = 0, most = 0;
  const nvml::Return mode = f.mig_mode(device, &current, &pending);
  if (mode == nvml::kNotSupported) return found;
  if (mode != nvml::kSuccess) return failed("nvmlDeviceGetMigMode", mode);
  if (current != nvml::kMigEnabled) return found;
  const nvml::Return counted = f.most_instances(device, &most);
  if (counted != nvml::kSuccess) return failed("nvmlDeviceGetMaxMigDeviceCount", counted);
  for (unsigned i = 0; i < std::min<unsigned>(most, kMostGpus); ++i)
    if (const std::optional<Instance> one = instance(device, i)) found.push_back(*one);
  return found;
}

Status NvmlLibrary::append_processes(nvml::DeviceGetRunningProcesses get, const char* function,
                                     nvml::Device device,
                                     std::vector<nvml::ProcessInfo>& out) const {
  if (get == nullptr) return {};
  unsigned count = kUsualProcesses;
  nvml::Return result = nvml::kInsufficientSize;
  for (int i = 0; i < kTries && result == nvml::kInsufficientSize; ++i) {
    if (count > kMostGpuClients) break;
    const unsigned room = i == 0 ? count : count + kMoreProcesses;
    // Room for the longer entries, and a remainder that is only overwritten by a driver that clears
    // the whole buffer.
    std::vector<unsigned char> buffer((room + 1) * nvml::kLongProcessInfoBytes, kNvmlSentinel);
    count = room;
    result = get(device, &count, buffer.data());
    if (result != nvml::kSuccess) continue;
    if (count > room) break;
    std::ranges::move(decode_processes(buffer, count), std::back_inserter(out));
    return {};
  }
  if (count > kMostGpuClients)
    return failure(ErrorKind::io,
                   std::string(function) + ": it reports " + std::to_string(count) + " processes");
  if (result == nvml::kSuccess || result == nvml::kNotFound) return {};
  return failed(function, result);
}

Result<std::vector<nvml::ProcessInfo>> NvmlLibrary::processes(nvml::Device device) const {
  std::vector<nvml::ProcessInfo> infos;
  const Functions& f = functions_;
  if (f.compute_processes == nullptr && f.graphics_processes == nullptr)
    return failure(ErrorKind::unsupported, "this driver does not report processes");
  const Status compute =
      append_processes(f.compute_processes, "nvmlDeviceGetComputeRunningProcesses", device, infos);
  const Status graphics = append_processes(f.graphics_processes,
                                           "nvmlDeviceGetGraphicsRunningProcesses", device, infos);
  if (!compute && !graphics) return std::unexpected(compute.error());
  merge_clients(infos);
  return infos;
}

Result<std::vector<nvml::ProcessSample>> NvmlLibrary::samples(
    nvml::Device device, unsigned long long last_seen_usec) const {
  if (functions_.samples == nullptr)
    return failure(ErrorKind::unsupported, "this driver does not report the use of processes");
  unsigned count = kUsualSamples;
  std::vector<nvml::ProcessSample> samples;
  nvml::Return result = nvml::kInsufficientSize;
  for (int i = 0; i < kTries && result == nvml::kInsufficientSize; ++i) {
    if (count > kMostGpuClients) break;
    samples.assign(i == 0 ? count : count + kMoreProcesses, {});
    count = static_cast<unsigned>(samples.size());
    result = functions_.samples(device, samples.data(), &count, last_seen_usec);
  }
  if (result == nvml::kNotFound) return std::vector<nvml::ProcessSample>{};
  if (result == nvml::kSuccess && count <= samples.size()) {
    samples.resize(count);
    return samples;
  }
  if (count > kMostGpuClients)
    return failure(ErrorKind::io, "nvmlDeviceGetProcessUtilization: it reports " +
                                      std::to_string(count) + " samples");
  return failed("nvmlDeviceGetProcessUtilization", result);
}

}  // namespace cgphase
