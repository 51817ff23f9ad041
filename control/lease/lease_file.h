// RUNTIME_DIR/leases as a file: its header, and how it is made, opened and judged. What lies behind
// the header is in control/lease/lease_table.h.
#pragma once

#include <fcntl.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

inline constexpr const char* kLeaseFileName = "leases";
inline constexpr std::uint32_t kLeaseVersion = 1;
inline constexpr std::size_t kLeaseHeaderBytes = 4096;
inline constexpr std::size_t kLeaseRecordBytes = 1024;
inline constexpr int kLargestLeaseCount = 1 << 20;
inline constexpr std::size_t kBootIdBytes = 40;

// The same in every version, so that one knows another's file. Written once, before the file gets
// its name.
struct LeaseHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t record_bytes;
  std::uint32_t record_count;
  std::array<char, kBootIdBytes> boot_id;
  std::uint32_t crc;
};

// `asked`, or where that is empty what the kernel says, as it stands in a header.
Result<std::string> current_boot_id(const std::string& asked);

// Creates the file under a name of its own and gives it its name when it is complete. `replace`
// puts it over an old one, which the caller owns; otherwise an existing file wins.
Status create_lease_file(const std::string& path, int records, const std::string& boot_id,
                         bool replace);

// Never through a symbolic link. Errors: not_found, denied (also what is no regular file of this
// user), io.
Result<Fd> open_lease_file(const std::string& path, int access = O_RDWR);

// The size of a file that is one of leases, whole, and of this version. Errors: invalid (damaged),
// unsupported (written by another version: only that one knows whether anything is held), io.
Result<std::size_t> checked_lease_bytes(int fd, const std::string& path);

// Whether a daemon would take the file that is there, whoever owns it now; without one it would.
// Changes nothing, and needs no right to. Errors: as of the two above.
Status check_lease_file(const std::string& runtime_dir);

}  // namespace cgphase
