#include "storage/disk_space.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <utility>

#include "base/fd.h"
#include "base/text.h"

namespace cgphase {
namespace {

std::string mebibytes(std::uint64_t bytes) {
  return std::to_string(bytes / kMiB) + "." + std::to_string(bytes % kMiB * 10 / kMiB) + " MiB";
}

}  // namespace

DiskSpace::DiskSpace(std::string path, Bytes min_free, Bytes reserve)
    : path_(std::move(path)),
      reserve_path_(path_ + ".reserve"),
      min_free_(min_free.value),
      reserve_(reserve.value) {}

std::optional<std::uint64_t> DiskSpace::free_bytes() const {
  struct statvfs disk {};
  if (min_free_ == 0 || path_ == ":memory:" || ::statvfs(path_.c_str(), &disk) != 0)
    return std::nullopt;
  return std::uint64_t{disk.f_bavail} * disk.f_frsize;
}

bool DiskSpace::read_only() const {
  struct statvfs disk {};
  return path_ != ":memory:" && ::statvfs(path_.c_str(), &disk) == 0 &&
         (disk.f_flag & ST_RDONLY) != 0;
}

bool DiskSpace::scarce() {
  const std::optional<std::uint64_t> free = free_bytes();
  if (!free) return holding_ = false;
  seen_free_ = *free;
  take_reserve(*free);
  struct stat reserve {};
  const bool reserved = ::stat(reserve_path_.c_str(), &reserve) == 0;
  const std::uint64_t wanted = holding_ && !reserved ? min_free_ + reserve_ : min_free_;
  holding_ = *free < wanted;
  full_ = full_ && holding_;
  return holding_;
}

// With as much again left over: a reserve that fills the disk helps nobody.
void DiskSpace::take_reserve(std::uint64_t free_bytes) {
  if (reserve_ == 0 || free_bytes < min_free_ + 2 * reserve_) return;
  const Result<Fd> file =
      open_path(reserve_path_, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
  if (!file) return;
  if (::posix_fallocate(file->get(), 0, static_cast<off_t>(reserve_)) != 0)
    ::unlink(reserve_path_.c_str());
}

void DiskSpace::found_full() { holding_ = full_ = min_free_ > 0; }

bool DiskSpace::give_up_reserve() {
  found_full();
  return min_free_ > 0 && ::unlink(reserve_path_.c_str()) == 0;
}

std::string DiskSpace::reason() const {
  if (read_only())
    return "the file system of " + escape_name(path_) +
           " is read-only: what is written may never reach the disk";
  if (!holding_) return {};
  const std::string disk = "the disk of " + escape_name(path_);
  return "samples are kept in memory only, decisions are still written: " +
         (full_ ? disk + " was full"
                : mebibytes(seen_free_) + " are free on " + disk + ", less than " +
                      mebibytes(min_free_));
}

}  // namespace cgphase
