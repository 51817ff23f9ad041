#include "control/lease/reclaim.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/fd.h"
#include "cgroupfs/cgroup_directory.h"
#include "cgroupfs/memory_reading.h"

namespace cgphase {
namespace {

constexpr std::uint64_t kReclaimPieceBytes = 64 * kMiB;

}  // namespace

Status reclaim_memory(int directory_fd, Bytes bytes, const std::function<bool()>& expired) {
  const auto fd = open_at(directory_fd, "memory.reclaim", O_WRONLY | O_NOFOLLOW);
  if (!fd && !directory_alive(directory_fd))
    return failure(ErrorKind::gone, "memory.reclaim: the cgroup was removed");
  if (!fd) return std::unexpected(fd.error());
  for (std::uint64_t left = bytes.value; left > 0 && !expired();) {
    const std::uint64_t piece = std::min(left, kReclaimPieceBytes);
    const std::string text = std::to_string(piece);
    if (::pwrite(fd->get(), text.data(), text.size(), 0) < 0) {
      if (errno == EAGAIN || errno == EINTR) return {};
      return errno_failure("memory.reclaim", errno);
    }
    left -= piece;
  }
  return {};
}

Status reclaim_below(int directory_fd, Bytes limit, const std::function<bool()>& expired) {
  const auto current = read_byte_count(directory_fd, "memory.current");
  if (!current) return std::unexpected(current.error());
  const std::uint64_t most = limit.value > kRoomBytes ? limit.value - kRoomBytes : 0;
  if (current->value <= most) return {};
  return reclaim_memory(directory_fd, Bytes{current->value - most}, expired);
}

}  // namespace cgphase
