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
// A device may be named at greater length; these suffice to know it.
constexpr std::size_t kDeviceLinkBytes = 64;

// A link in a container's /dev is not followed: it may lead to a disk that does not answer.
constexpr int kFolderFlags = O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

using Listing = std::unique_ptr<DIR, int (*)(DIR*)>;

bool begins_with_digit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

// The /dev that a process sees. In two pieces, for it is no path of the machine that builds this.
std::string devices_of(const std::string& process) { return process + "/root" + "/dev"; }

// Takes the descriptor.
Listing listing_of(int fd) {
  DIR* const directory = fd < 0 ? nullptr : ::fdopendir(fd);
  if (directory == nullptr && fd >= 0) ::close(fd);
  return {directory, ::closedir};
}

// Whether a folder of device nodes has a GPU's, looked at as the one named `path`, which ends with
// a slash. Absent where that cannot be said.
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
  const Fd dri(::openat(devices_fd, "dri", O_PATH | kFolderFlags));
  if (!dri.valid()) return is_absent(errno) ? std::optional(false) : std::nullopt;
  return lists_gpu(dri.get(), path + "dri/");
}

class GpuSearch {
 public:
  GpuSearch(const std::string& proc_root, const HostDevices& host)
      : proc_root_(proc_root), known_{{host.device, host.inode}} {}

  void visit(int cgroup_fd) {
    const bool complete = visit_processes(cgroup_fd, [this](std::string_view pid) {
      look_at(pid);
      return !seen_;
    });
    incomplete_ = incomplete_ || !complete;
  }
  GpuLook result() const {
    GpuLook look{GpuUse::none, processes_};
    if (seen_) look.use = GpuUse::seen;
    else if (incomplete_ || (processes_ > 0 && found_ == 0)) look.use = GpuUse::unknown;
    return look;
  }

 private:
  void look_at(std::string_view pid);
  void look_at_devices(const std::string& process);
  void look_at_descriptors(const std::string& process);
  // What could not be opened: it is not there, or it was not seen.
  void missed(int error_number) { incomplete_ = incomplete_ || !is_absent(error_number); }

  const std::string& proc_root_;
  std::vector<std::pair<dev_t, ino_t>> known_;  // folders that need no look, or no further one
  std::size_t processes_ = 0, found_ = 0, descriptors_ = 0;
  bool seen_ = false, incomplete_ = false;
};

void GpuSearch::look_at(std::string_view pid) {
  // 0: a process that has no number where this one lives.
  if (pid == "0" || processes_ == kMostGpuProcesses) {
    incomplete_ = true;
    return;
  }
  processes_ += 1;
  const std::string process = proc_root_ + "/" + std::string(pid);
  if (::access(process.c_str(), F_OK) != 0) return missed(errno);
  found_ += 1;
  look_at_devices(process);
  if (!seen_) look_at_descriptors(process);
}

void GpuSearch::look_at_devices(const std::string& process) {
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

void GpuSearch::look_at_descriptors(const std::string& process) {
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
      std::string_view("nvmap"),     std::string_view("nvgpu")};
  constexpr std::string_view kNumbered = "nvidia";
  return (name.starts_with(kNumbered) && begins_with_digit(name.substr(kNumbered.size()))) ||
         std::ranges::any_of(kBeginnings, [&](auto begin) { return name.starts_with(begin); });
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

GpuLook find_gpu(int cgroup_fd, const std::string& proc_root, const HostDevices& host) {
  GpuSearch search(proc_root, host);
  search.visit(cgroup_fd);
  return search.result();
}

}  // namespace cgphase
