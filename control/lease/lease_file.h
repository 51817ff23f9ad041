// The file RUNTIME_DIR/leases: its header, and how it is created, opened and checked.
// control/lease/lease_table.h describes the records behind the header.
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
inline constexpr std::uint32_t kLeaseVersion = 2;
inline constexpr std::size_t kLeaseHeaderBytes = 4096;
inline constexpr std::size_t kLeaseRecordBytes = 1024;
inline constexpr int kLargestLeaseCount = 1 << 20;
inline constexpr std::size_t kBootIdBytes = 40;

// The layout is the same in every version, so that each version recognises the file of another. It
// is written once, before the file gets its name.
struct LeaseHeader {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t record_bytes;
  std::uint32_t record_count;
  std::array<char, kBootIdBytes> boot_id;
  std::uint32_t crc;
};

// Returns the boot id as the header stores it: `asked`, or the kernel's if `asked` is empty.
Result<std::string> current_boot_id(const std::string& asked);

// Creates the file under a temporary name and renames it when it is complete. With `replace` it
// takes the place of an old file, which the caller must own. Otherwise an existing file stays.
Status create_lease_file(const std::string& path, int records, const std::string& boot_id,
                         bool replace);

// Opens the file, never through a symbolic link. Errors: not_found, denied (also if it is not a
// regular file of this user), io.
Result<Fd> open_lease_file(const std::string& path, int access = O_RDWR);

// Checks that `fd` is a complete lease file of this version and returns its size in bytes. Errors:
// invalid (damaged), unsupported (only the other version knows whether it contains leases), io.
Result<std::size_t> checked_lease_bytes(int fd, const std::string& path);

// Checks whether a daemon would accept the existing file, whoever owns it now. A missing file is
// accepted. Changes nothing and needs no write permission. Errors: those of the two functions
// above.
Status check_lease_file(const std::string& runtime_dir);

}  // namespace cgphase
