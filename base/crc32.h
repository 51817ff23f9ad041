// CRC-32C (Castagnoli, RFC 3720 appendix B.4). It protects lease records, model files and stored
// blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace cgphase {

// `seed` continues an earlier sum: crc32c(b, crc32c(a)) == crc32c(ab).
std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed = 0);
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed = 0);
// The same sum without the CPU instruction. For tests.
std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t seed = 0);

}  // namespace cgphase
