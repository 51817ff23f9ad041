#include "collectors/containers/host_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::size_t kMountsBytes = 16 << 20;

// File systems that answer without a network and without another process.
constexpr auto kLocalFileSystems = std::to_array<std::string_view>({
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "overlay",
    "ramfs", "rootfs", "hostfs", "squashfs", "erofs", "reiserfs", "jfs"});

Fd open_directory(const std::string& path) {
  return Fd(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
}

// True if `point` is `path` or above it.
bool contains(std::string_view point, std::string_view path) {
  return point == "/" || (path.starts_with(point) &&
                          (path.size() == point.size() || path[point.size()] == '/'));
}

// Whether all mounts that lead to `path` are local, without asking one of them. `mounts` is the
// mountinfo of a process whose root is the host's.
bool is_on_local_disk(std::string_view mounts, std::string_view path) {
  std::string_view line;
  while (next_line(mounts, line)) {
    std::string_view rest = line, word;
    for (int i = 0; i < 5; ++i) next_word(rest, word);
    if (!contains(word, path)) continue;
    const std::size_t end = line.find(" - ");
    if (end == std::string_view::npos) return false;
    std::string_view type, after = line.substr(end + 3);
    next_word(after, type);
    if (std::ranges::find(kLocalFileSystems, type) == kLocalFileSystems.end()) return false;
  }
  return true;
}

}  // namespace

HostFiles::HostFiles(const std::string& root, const std::string& proc_root)
    : proc_root_(root == "/" ? proc_root : "") {
  if (root == "/") root_ = open_directory(proc_root + "/1/root");
  if (!root_.valid()) root_ = open_directory(root);
}

Result<Fd> HostFiles::open(const std::string& path, uid_t owner, int flags) const {
  const bool trusted = owner == 0;
  if (!trusted && !proc_root_.empty()) {
    if (!mounts_) mounts_ = read_file(proc_root_ + "/1/mountinfo", kMountsBytes).value_or("");
    if (!mounts_->empty() && !is_on_local_disk(*mounts_, path))
      return failure(ErrorKind::unsupported, path + ": not on a local disk");
  }
  open_how how{};
  // A pipe is opened without a wait for its writer, and is then refused.
  const int no_wait = (flags & O_PATH) != 0 ? 0 : O_NONBLOCK | O_NOCTTY;
  how.flags = static_cast<std::uint64_t>(flags | O_CLOEXEC | no_wait);
  how.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
  if (!trusted) how.resolve |= RESOLVE_NO_SYMLINKS;
  const long fd = ::syscall(SYS_openat2, root_.get(), path.c_str(), &how, sizeof how);
  if (fd >= 0) return Fd(static_cast<int>(fd));
  if (errno == ELOOP) return failure(ErrorKind::invalid, path + ": a symbolic link on its path");
  return errno_failure(path, errno);
}

Result<std::string> HostFiles::read(const std::string& path, uid_t owner,
                                    std::size_t limit_bytes) const {
  const Result<Fd> file = open(path, owner, O_RDONLY);
  if (!file) return std::unexpected(file.error());
  struct stat status{};
  if (::fstat(file->get(), &status) != 0) return errno_failure(path, errno);
  if (!S_ISREG(status.st_mode)) return failure(ErrorKind::invalid, path + ": no regular file");
  if (owner != 0 && status.st_uid != owner)
    return failure(ErrorKind::denied, path + ": belongs to another user");
  if (static_cast<std::size_t>(status.st_size) > limit_bytes)
    return failure(ErrorKind::invalid,
                   path + ": larger than the limit of " + std::to_string(limit_bytes) + " bytes");
  // A file that grows meanwhile is read up to its size of now.
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::pread(file->get(), text.data() + size, text.size() - size,
                                  static_cast<off_t>(size));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_failure(path, errno);
    if (count == 0) break;
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  return text;
}

bool HostFiles::exists(const std::string& path, uid_t owner) const {
  return open(path, owner, O_PATH | O_NOFOLLOW).has_value();
}

std::vector<std::string> HostFiles::names_in(const std::string& path, uid_t owner) const {
  std::vector<std::string> names;
  Result<Fd> directory = open(path, owner, O_RDONLY | O_DIRECTORY);
  if (!directory) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(directory->get()), ::closedir);
  if (!listing) return names;
  (void)directory->release();
  while (const dirent* entry = ::readdir(listing.get())) {
    if (entry->d_name[0] == '.') continue;
    if (names.size() == kMostDirectoryEntries) break;
    names.emplace_back(entry->d_name);
  }
  return names;
}

}  // namespace cgphase
