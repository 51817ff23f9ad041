#include "collectors/gpu/drm_gpus.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>
#include <system_error>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNumberBytes = 64;
constexpr std::size_t kProcsBytes = 256 * 1024;  // of one cgroup, far more than kMostDrmProcesses
constexpr std::size_t kFdinfoBytes = 16 * 1024;
constexpr std::size_t kMostCgroupDepth = 24;
constexpr std::string_view kDrmNodes = "/dev/dri/";

// Names in a folder, sorted; none if it cannot be read.
std::vector<std::string> names_in(const std::string& folder, bool folders_only = false) {
  std::vector<std::string> names;
  std::error_code error, unknown;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (!folders_only || at->is_directory(unknown)) names.push_back(at->path().filename());
  std::ranges::sort(names);
  return names;
}

// The last element of the target of a link.
std::string link_name(const std::string& link) {
  std::error_code error;
  const fs::path target = fs::read_symlink(link, error);
  return error ? std::string() : target.filename().string();
}

Counter number_in(const std::string& path) {
  const Result<std::string> text = read_file(path, kNumberBytes);
  return text ? parse_u64(trim(*text)) : std::nullopt;
}

std::optional<double> percent_in(const std::string& path) {
  const Counter percent = number_in(path);
  if (!percent || *percent > 100) return std::nullopt;
  return static_cast<double>(*percent) / 100;
}

std::optional<Bytes> bytes_in(const std::string& path) {
  const Counter bytes = number_in(path);
  return bytes ? std::optional(Bytes{*bytes}) : std::nullopt;
}

bool is_card(const std::string& name) {
  constexpr std::string_view kCard = "card";
  return name.starts_with(kCard) && name.size() > kCard.size() &&
         std::all_of(name.begin() + kCard.size(), name.end(),
                     [](unsigned char c) { return std::isdigit(c) != 0; });
}

// NVIDIA's own driver reports nothing here; NVML covers it. A virtual display is no GPU.
bool is_silent(std::string_view driver) {
  return driver.empty() || driver.starts_with("nvidia") || driver.starts_with("virtio");
}

// A device that only drives a display computes nothing.
bool renders(const std::string& device) {
  return std::ranges::any_of(names_in(device + "/drm"),
                             [](const std::string& name) { return name.starts_with("renderD"); });
}

}  // namespace

void DrmGpus::find_devices() {
  devices_.clear();
  const std::string cards = roots_.sys + "/class/drm/";
  for (const std::string& card : names_in(cards)) {
    if (!is_card(card) || devices_.size() == kMostGpus) continue;
    const std::string device = cards + card + "/device";
    const std::string driver = link_name(device + "/driver");
    if (is_silent(driver) || !renders(device)) continue;
    devices_.push_back({.id = link_name(device), .name = driver,
                        .use = {percent_in(device + "/gpu_busy_percent"),
                                percent_in(device + "/mem_busy_percent"),
                                bytes_in(device + "/mem_info_vram_used")},
                        .memory_total = bytes_in(device + "/mem_info_vram_total")});
  }
}

// One scan of the processes of the containers.
class DrmGpus::Scan {
 public:
  Scan(const DrmGpus& gpus, double elapsed_ns) : gpus_(gpus), elapsed_ns_(elapsed_ns) {}

  void visit(const std::string& cgroup, std::size_t depth);

  std::vector<GpuClient> clients;
  std::map<ClientKey, DrmFdinfo> known;
  bool incomplete = false;

 private:
  void scan_process(const std::string& pid);
  void take(const DrmFdinfo& info, std::vector<GpuClient>& of_process);
  std::optional<std::size_t> device_of(const DrmFdinfo& info) const;

  const DrmGpus& gpus_;
  const double elapsed_ns_;
  std::set<std::string> cgroups_, pids_;  // containers may be nested
  std::size_t descriptors_ = 0;
};

void DrmGpus::Scan::visit(const std::string& cgroup, std::size_t depth) {
  if (cgroups_.contains(cgroup)) return;
  if (cgroups_.size() == kMostDrmCgroups || depth > kMostCgroupDepth) {
    incomplete = true;
    return;
  }
  cgroups_.insert(cgroup);
  const auto pids = read_file(cgroup + "/cgroup.procs", kProcsBytes);
  if (!pids && pids.error().kind == ErrorKind::invalid) incomplete = true;
  std::string_view rest = pids ? std::string_view(*pids) : std::string_view(), pid;
  while (next_line(rest, pid))
    if (parse_u64(pid).value_or(0) != 0) scan_process(std::string(pid));
  for (const std::string& name : names_in(cgroup, true)) visit(cgroup + "/" + name, depth + 1);
}

void DrmGpus::Scan::scan_process(const std::string& pid) {
  if (pids_.contains(pid)) return;
  if (pids_.size() == kMostDrmProcesses || descriptors_ == kMostDrmDescriptors) {
    incomplete = true;
    return;
  }
  pids_.insert(pid);
  const std::string process = gpus_.roots_.proc + "/" + pid;
  std::vector<GpuClient> of_process;
  std::error_code error;
  for (const std::string& fd : names_in(process + "/fd")) {
    if (descriptors_ == kMostDrmDescriptors) {
      incomplete = true;
      break;
    }
    descriptors_ += 1;
    const std::string target = fs::read_symlink(process + "/fd/" + fd, error).string();
    if (error || !target.starts_with(kDrmNodes)) continue;
    const auto text = read_file(process + "/fdinfo/" + fd, kFdinfoBytes);
    if (!text) continue;
    if (const auto info = scan_drm_fdinfo(*text)) take(*info, of_process);
  }
  for (GpuClient& client : of_process) {
    if (clients.size() == kMostGpuClients) return;
    client.pid = static_cast<pid_t>(parse_u64(pid).value_or(0));
    if (client.use.utilisation_ratio)
      client.use.utilisation_ratio = std::min(*client.use.utilisation_ratio, 1.0);
    clients.push_back(std::move(client));
  }
}

// A driver that is not on a PCI bus reports no address.
std::optional<std::size_t> DrmGpus::Scan::device_of(const DrmFdinfo& info) const {
  for (std::size_t i = 0; i < gpus_.devices_.size(); ++i)
    if (info.pci_address.empty() ? gpus_.devices_[i].name == info.driver
                                 : gpus_.devices_[i].id == info.pci_address)
      return i;
  return std::nullopt;
}

// A client that several descriptors or processes share counts once, for the first of them.
void DrmGpus::Scan::take(const DrmFdinfo& info, std::vector<GpuClient>& of_process) {
  const std::optional<std::size_t> device = device_of(info);
  if (!device) return;
  const ClientKey key(gpus_.devices_[*device].id, *info.client_id);
  if (!known.try_emplace(key, info).second) return;
  auto at = std::ranges::find(of_process, *device, &GpuClient::device);
  if (at == of_process.end()) {
    of_process.push_back({.device = *device});
    at = of_process.end() - 1;
  }
  const auto before = gpus_.known_.find(key);
  if (before != gpus_.known_.end())
    if (const auto busy = busy_ratio(before->second, info, elapsed_ns_))
      at->use.utilisation_ratio = at->use.utilisation_ratio.value_or(0) + *busy;
  if (info.memory)
    at->use.memory_bytes = Bytes{at->use.memory_bytes.value_or(Bytes{}).value + info.memory->value};
}

void DrmGpus::scan(MonotonicTime now, const std::vector<CgroupPath>& containers) {
  const double elapsed_ns = scan_time_ ? static_cast<double>((now - *scan_time_).count()) : 0;
  Scan found(*this, elapsed_ns);
  if (!devices_.empty())
    for (const CgroupPath& path : containers) found.visit(roots_.cgroup + path, 0);
  clients_ = std::move(found.clients);
  known_ = std::move(found.known);
  incomplete_ = found.incomplete;
}

void DrmGpus::read(MonotonicTime now, const std::vector<CgroupPath>& containers,
                   GpuReading& reading) {
  if (!scan_time_ || now - *scan_time_ >= kPeriod) {
    find_devices();
    scan(now, containers);
    scan_time_ = now;
  }
  const std::size_t first = reading.devices.size();
  for (const GpuDevice& device : devices_)
    if (reading.devices.size() < kMostGpus) reading.devices.push_back(device);
  for (GpuClient client : clients_) {
    client.device += first;
    if (client.device < reading.devices.size() && reading.clients.size() < kMostGpuClients)
      reading.clients.push_back(std::move(client));
  }
}

}  // namespace cgphase
