#include "control/lease/lease_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <string_view>

#include "base/crc32.h"
#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

constexpr std::array<char, 8> kMagic = {'c', 'g', 'p', 'h', 'l', 'e', 'a', 's'};

std::uint32_t crc_of_header(const LeaseHeader& header) {
  return crc32c({reinterpret_cast<const char*>(&header), offsetof(LeaseHeader, crc)});
}

Status write_new_file(int fd, const std::string& path, int records, const std::string& boot_id) {
  const std::size_t bytes =
      kLeaseHeaderBytes + static_cast<std::size_t>(records) * kLeaseRecordBytes;
  // The whole file is allocated now. A tmpfs that is full later would mean SIGBUS in the fast path.
  const int error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
  if (error != 0)
    return errno_failure(path + ": " + std::to_string(bytes / 1024) +
                             " KiB are needed for the original limits; free space there",
                         error);
  LeaseHeader header{};
  header.magic = kMagic;
  header.version = kLeaseVersion;
  header.record_bytes = kLeaseRecordBytes;
  header.record_count = static_cast<std::uint32_t>(records);
  boot_id.copy(header.boot_id.data(), kBootIdBytes - 1);
  header.crc = crc_of_header(header);
  if (::pwrite(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
    return errno_failure(path, errno);
  return {};
}

}  // namespace

Result<std::string> current_boot_id(const std::string& asked) {
  if (!asked.empty()) return asked.substr(0, kBootIdBytes - 1);
  auto text = read_file("/proc/sys/kernel/random/boot_id", 128);
  if (!text) return text;
  return std::string(trim(*text)).substr(0, kBootIdBytes - 1);
}

Status create_lease_file(const std::string& path, int records, const std::string& boot_id,
                         bool replace) {
  const std::string fresh = path + ".new." + std::to_string(::getpid());
  ::unlink(fresh.c_str());
  auto fd = open_path(fresh, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!fd) return std::unexpected(fd.error());
  Status status = write_new_file(fd->get(), path, records, boot_id);
  if (status && replace && ::rename(fresh.c_str(), path.c_str()) != 0)
    status = errno_failure(path, errno);
  if (status && !replace && ::link(fresh.c_str(), path.c_str()) != 0 && errno != EEXIST)
    status = errno_failure(path, errno);
  ::unlink(fresh.c_str());
  return status;
}

Result<Fd> open_lease_file(const std::string& path, int access) {
  auto fd = open_path(path, access | O_NOFOLLOW);
  if (!fd) return fd;
  struct stat status;
  if (::fstat(fd->get(), &status) != 0) return errno_failure(path, errno);
  if (!S_ISREG(status.st_mode) || status.st_uid != ::geteuid())
    return failure(ErrorKind::denied, path + ": not a regular file of this user; remove it");
  return fd;
}

Result<std::size_t> checked_lease_bytes(int fd, const std::string& path) {
  struct stat status;
  if (::fstat(fd, &status) != 0) return errno_failure(path, errno);
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const std::string way_out =
      "; restore the limits shown in it by hand or restart the containers, then remove the file";
  if (bytes < kLeaseHeaderBytes)
    return failure(ErrorKind::invalid, path + ": damaged (too short for leases)" + way_out);
  LeaseHeader header;
  if (::pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header))
    return errno_failure(path, errno);
  if (header.magic != kMagic || header.crc != crc_of_header(header))
    return failure(ErrorKind::invalid, path + ": damaged (header)" + way_out);
  if (header.version != kLeaseVersion || header.record_bytes != kLeaseRecordBytes)
    return failure(
        ErrorKind::unsupported,
        path + ": written by another version of cgphase (format " + std::to_string(header.version) +
            ", this one is " + std::to_string(kLeaseVersion) +
            "); stop its cgphased, or run its cgphase-restore, then remove the file");
  if (header.record_count > static_cast<std::uint32_t>(kLargestLeaseCount) ||
      bytes != kLeaseHeaderBytes + std::size_t{header.record_count} * kLeaseRecordBytes)
    return failure(ErrorKind::invalid, path + ": damaged (size)" + way_out);
  return bytes;
}

Status check_lease_file(const std::string& runtime_dir) {
  const std::string path = runtime_dir + "/" + kLeaseFileName;
  const auto fd = open_lease_file(path, O_RDONLY);
  if (!fd && fd.error().kind == ErrorKind::not_found) return {};
  if (!fd) return std::unexpected(fd.error());
  const auto bytes = checked_lease_bytes(fd->get(), path);
  return bytes ? Status() : std::unexpected(bytes.error());
}

}  // namespace cgphase
