#include "collectors/gpu_devices.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "collectors/cgroup_processes.h"

namespace cgphase {
namespace {

constexpr std::string_view kDevicesFolder = "/dev/";
// Longer names are cut; these bytes are enough to recognise a device.
constexpr std::size_t kDeviceLinkBytes = 64;

// Links in a container's /dev are not followed, because they may lead to a disk that does not
// answer.
constexpr int kFolderFlags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

bool begins_with_digit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// The /dev that a process sees. The path has two parts, because it is not a path of the build
// machine.
std::string devices_of(const std::string& process) { return process + "/root" + "/dev"; }

// Takes ownership of the descriptor.
Listing listing_of(int fd) {
  DIR* const directory = fd < 0 ? nullptr : ::fdopendir(fd);
  if (directory == nullptr && fd >= 0) ::close(fd);
  return {directory, ::closedir};
}

// True if a folder of device nodes has a GPU's node. `path` is its name and ends with a slash.
// Absent if that is unknown.
std::optional<bool> lists_gpu(int folder_fd, const std::string& path) {
  const Listing listing = listing_of(::openat(folder_fd, ".", O_RDONLY | kFolderFlags));
  if (!listing) return std::nullopt;
  for (std::size_t names = 0; const dirent* entry = ::readdir(listing.get());) {
    if (names++ == kMostDeviceNames) return std::nullopt;
    struct stat status{};
    if (is_gpu_device(path + entry->d_name) &&
        ::fstatat(folder_fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISCHR(status.st_mode))
      return true;
  }
  return false;
}

std::optional<bool> has_gpu_node(int devices_fd) {
  const std::string path(kDevicesFolder);
  const std::optional<bool> top = lists_gpu(devices_fd, path);
  if (!top || *top) return top;
  for (const std::string folder : {"dri", "accel"}) {
    const Fd below(::openat(devices_fd, folder.c_str(), O_PATH | kFolderFlags));
    if (!below.valid() && is_absent(errno)) continue;
    if (!below.valid()) return std::nullopt;
    const std::optional<bool> found = lists_gpu(below.get(), path + folder + "/");
    if (!found || *found) return found;
  }
  return false;
}

class GpuSearch {
 public:
  GpuSearch(const std::string& proc_root, const HostDevices& host)
      : proc_root_(proc_root), known_{{host.device, host.inode}} {}

  void visit(int cgroup_fd) {
    const bool complete = visit_processes(cgroup_fd, [this](std::string_view pid) {
      scan(pid);
      return !seen_;
    });
    incomplete_ = incomplete_ || !complete;
  }
  GpuScan result() const {
    GpuScan outcome{GpuUse::none, processes_};
    if (seen_)
      outcome.use = GpuUse::seen;
    else if (incomplete_ || (processes_ > 0 && found_ == 0))
      outcome.use = GpuUse::unknown;
    return outcome;
  }

 private:
  void scan(std::string_view pid);
  void scan_devices(const std::string& process);
  void scan_descriptors(const std::string& process);
  // Records that something could not be opened: it does not exist, or it is hidden.
  void missed(int error_number) { incomplete_ = incomplete_ || !is_absent(error_number); }

  const std::string& proc_root_;
  std::vector<std::pair<dev_t, ino_t>> known_;  // folders that need no scan, or no further scan
  std::size_t processes_ = 0, found_ = 0, descriptors_ = 0;
  bool seen_ = false, incomplete_ = false;
};

void GpuSearch::scan(std::string_view pid) {
  // Pid 0 is a process that has no number in this pid namespace.
  if (pid == "0" || processes_ == kMostGpuProcesses) {
    incomplete_ = true;
    return;
  }
  processes_ += 1;
  const std::string process = proc_root_ + "/" + std::string(pid);
  if (::access(process.c_str(), F_OK) != 0) return missed(errno);
  found_ += 1;
  scan_devices(process);
  if (!seen_) scan_descriptors(process);
}

void GpuSearch::scan_devices(const std::string& process) {
  const Fd devices(::open(devices_of(process).c_str(), O_PATH | kFolderFlags));
  struct stat status{};
  if (!devices.valid() || ::fstat(devices.get(), &status) != 0) return missed(errno);
  const std::pair identity(status.st_dev, status.st_ino);
  if (std::ranges::find(known_, identity) != known_.end()) return;
  known_.push_back(identity);
  const std::optional<bool> gpu = has_gpu_node(devices.get());
  seen_ = gpu.value_or(false);
  incomplete_ = incomplete_ || !gpu;
}

void GpuSearch::scan_descriptors(const std::string& process) {
  const Listing listing =
      listing_of(::open((process + "/fd").c_str(), O_RDONLY | kFolderFlags));
  if (!listing) return missed(errno);
  while (const dirent* entry = ::readdir(listing.get())) {
    if (!begins_with_digit(entry->d_name)) continue;
    if (descriptors_++ == kMostGpuDescriptors) {
      incomplete_ = true;
      return;
    }
    std::array<char, kDeviceLinkBytes> target{};
    const ssize_t length =
        ::readlinkat(::dirfd(listing.get()), entry->d_name, target.data(), target.size());
    if (length < 0) {
      missed(errno);
    } else if (is_gpu_device({target.data(), static_cast<std::size_t>(length)})) {
      seen_ = true;
      return;
    }
  }
}

}  // namespace

bool is_gpu_device(std::string_view path) {
  if (!path.starts_with(kDevicesFolder)) return false;
  const std::string_view name = path.substr(kDevicesFolder.size());
  constexpr std::array kBeginnings = {
      std::string_view("nvidiactl"), std::string_view("nvidia-uvm"),
      std::string_view("kfd"),       std::string_view("dri/renderD"),
      std::string_view("dxg"),       std::string_view("nvhost-"),
      std::string_view("nvmap"),     std::string_view("nvgpu"),
      std::string_view("davinci"),   std::string_view("accel/accel"),
      std::string_view("apex_"),     std::string_view("hl_controlD")};
  // Followed by a number.
  constexpr std::array kNumbered = {
      std::string_view("nvidia"), std::string_view("neuron"), std::string_view("hl"),
      std::string_view("accel"), std::string_view("hailo")};
  return std::ranges::any_of(kBeginnings, [&](auto begin) { return name.starts_with(begin); }) ||
         std::ranges::any_of(kNumbered, [&](auto begin) {
           return name.starts_with(begin) && begins_with_digit(name.substr(begin.size()));
         });
}

Result<HostDevices> read_host_devices(const std::string& proc_root) {
  int error_number = 0;
  for (const char* process : {"/1", "/self"}) {
    const Fd devices(::open(devices_of(proc_root + process).c_str(), O_PATH | kFolderFlags));
    struct stat status{};
    if (!devices.valid() || ::fstat(devices.get(), &status) != 0) {
      error_number = errno;
      continue;
    }
    const std::optional<bool> gpu = has_gpu_node(devices.get());
    if (gpu) return HostDevices{status.st_dev, status.st_ino, *gpu};
    error_number = EIO;
  }
  if (is_absent(error_number)) return HostDevices{};
  return errno_failure(devices_of(proc_root + "/self"), error_number);
}

GpuScan find_gpu(int cgroup_fd, const std::string& proc_root, const HostDevices& host) {
  GpuSearch search(proc_root, host);
  search.visit(cgroup_fd);
  return search.result();
}

}  // namespace cgphase
