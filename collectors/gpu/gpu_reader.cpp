#include "collectors/gpu/gpu_reader.h"

#include <sys/stat.h>

#include <map>
#include <utility>

#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "collectors/process_cgroup.h"

namespace cgphase {
namespace {

constexpr std::size_t kLoadBytes = 64;
constexpr std::uint64_t kPerMille = 1000;

std::string count_of(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + " " + (count == 1 ? one : many);
}

// Load in per mille of the time. The node may appear late.
Counter tegra_load(const std::string& sys_root) {
  for (const char* path : {"/devices/platform/gpu.0/load", "/devices/gpu.0/load"})
    if (const auto text = read_file(sys_root + path, kLoadBytes))
      if (const Counter load = parse_u64(trim(*text)); load && *load <= kPerMille) return load;
  return std::nullopt;
}

}  // namespace

GpuReader::GpuReader(Options options)
    : options_(std::move(options)),
      above_root_(kernel_path_of_root(options_.proc_root, options_.cgroup_root)),
      nvml_(options_.nvml),
      drm_({.sys = options_.sys_root, .proc = options_.proc_root,
            .cgroup = options_.cgroup_root}) {}

GpuReading GpuReader::read(MonotonicTime now, const std::vector<CgroupPath>& containers) {
  GpuReading reading{.time = now, .devices = {}, .clients = {}, .summary = {}};
  nvml_.read(now, reading);
  read_tegra(reading);
  drm_.read(now, containers, reading);
  join_cgroups(reading);
  reading.summary = summary(reading);
  return reading;
}

// Reads the GPU of a Jetson. NVML lists it without values there, or not at all. Its memory is the
// host's.
void GpuReader::read_tegra(GpuReading& reading) const {
  const Counter load = tegra_load(options_.sys_root);
  if (!load) return;
  if (reading.devices.empty())
    reading.devices.push_back({.id = "gpu.0", .name = "Tegra", .use = {}, .memory_total = {}});
  GpuStat& use = reading.devices.front().use;
  if (reading.devices.size() == 1 && use == GpuStat{})
    use.utilisation_ratio = static_cast<double>(*load) / kPerMille;
}

void GpuReader::join_cgroups(GpuReading& reading) const {
  std::map<pid_t, CgroupPath> known;
  for (GpuClient& client : reading.clients) {
    const auto [at, unknown] = known.try_emplace(client.pid);
    if (unknown) {
      const std::string process = options_.proc_root + "/" + std::to_string(client.pid);
      at->second = path_below(cgroup_of_process(process), above_root_);
    }
    client.cgroup = at->second;
  }
}

// The unit may hide devices, while process 1 sees those of the host.
bool GpuReader::devices_hidden() const {
  const auto exists = [this](const char* path) {
    struct stat status{};
    return ::stat((options_.proc_root + path).c_str(), &status) == 0;
  };
  return exists("/1/root/dev/nvidiactl") && !exists("/self/root/dev/nvidiactl");
}

std::string GpuReader::summary(const GpuReading& reading) const {
  if (reading.devices.empty())
    return "NVML: " + nvml_.trouble() +
           (devices_hidden() ? "; the NVIDIA devices of this host are hidden from the daemon, "
                               "gpu.conf (docs/operations.md) shows them"
                             : "") +
           "; no other GPU";
  std::string text = count_of(reading.devices.size(), "GPU", "GPUs");
  if (const std::string name = escape_name(reading.devices.front().name); !name.empty())
    text += " (" + name + (reading.devices.size() > 1 ? ", ..." : "") + ")";
  text += ", " + count_of(reading.clients.size(), "process", "processes");
  if (drm_.incomplete()) text += ", and more containers than are scanned";
  return nvml_.trouble().empty() || !nvml_.present() ? text : text + "; NVML: " + nvml_.trouble();
}

}  // namespace cgphase
