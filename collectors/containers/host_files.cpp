#include "collectors/containers/host_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <memory>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::size_t kMountsBytes = 16 << 20;
constexpr int kMostLinks = 40;  // on one path, as in the kernel

// File systems that answer without a network and without another process.
constexpr auto kLocalFileSystems = std::to_array<std::string_view>({
    "ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "bcachefs", "tmpfs", "overlay",
    "ramfs", "rootfs", "hostfs", "squashfs", "erofs", "reiserfs", "jfs"});

// Takes the first element off a path. "." is one too.
std::string next_element(std::string& path) {
  const std::size_t begin = std::min(path.find_first_not_of('/'), path.size());
  const std::size_t end = std::min(path.find('/', begin), path.size());
  const std::string element = path.substr(begin, end - begin);
  path.erase(0, std::min(path.find_first_not_of('/', end), path.size()));
  return element.empty() ? "." : element;
}

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

// Element by element: with RestrictSUIDSGID=yes systemd forbids openat2().
Result<Fd> HostFiles::open(const std::string& path, uid_t owner, int flags) const {
  const bool trusted = owner == 0;
  if (!trusted && !proc_root_.empty()) {
    if (!mounts_) mounts_ = read_file(proc_root_ + "/1/mountinfo", kMountsBytes).value_or("");
    if (!mounts_->empty() && !is_on_local_disk(*mounts_, path))
      return failure(ErrorKind::unsupported, path + ": not on a local disk");
  }
  // A pipe is opened without a wait for its writer, and is then refused.
  flags |= O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  std::vector<Fd> parents;  // of the element that is opened next, below the root
  std::string rest = path;
  for (int links = 0; links <= kMostLinks;) {
    const std::string element = next_element(rest);
    if (element == "..") {
      if (!parents.empty()) parents.pop_back();
      continue;
    }
    const int parent = parents.empty() ? root_.get() : parents.back().get();
    Fd found(::openat(parent, element.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    if (!found.valid()) return errno_failure(path, errno);
    const bool last = rest.empty();
    if (last && (flags & O_PATH) != 0) return found;
    std::array<char, PATH_MAX> target{};
    const ssize_t bytes = ::readlinkat(found.get(), "", target.data(), target.size());
    if (bytes >= 0) {
      if (!trusted) break;
      ++links;
      rest = std::string(target.data(), static_cast<std::size_t>(bytes)) + "/" + rest;
      if (rest.starts_with('/')) parents.clear();
      continue;
    }
    if (!last) {
      parents.push_back(std::move(found));
      continue;
    }
    Fd file(::openat(parent, element.c_str(), flags));
    if (!file.valid()) return errno_failure(path, errno);
    return file;
  }
  return failure(ErrorKind::invalid, path + ": a symbolic link on its path");
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
  return open(path, owner, O_PATH).has_value();
}

bool HostFiles::is_absent(const std::string& path) const {
  const Result<Fd> file = open(path, 0, O_PATH);
  return !file && file.error().kind == ErrorKind::not_found;
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
