#include "base/crc32.h"

#include <array>
#include <cstring>

namespace cgphase {
namespace {

constexpr std::size_t kSlices = 8;
using Tables = std::array<std::array<std::uint32_t, 256>, kSlices>;

// tables[0] advances the sum by one byte. tables[k] advances it by k further zero bytes.
constexpr Tables make_tables() {
  Tables tables{};
  for (std::uint32_t index = 0; index < 256; ++index) {
    std::uint32_t value = index;
    for (int bit = 0; bit < 8; ++bit)
      value = (value & 1U) != 0 ? (value >> 1) ^ 0x82F63B78U : value >> 1;
    tables[0][index] = value;
  }
  for (std::size_t slice = 1; slice < kSlices; ++slice)
    for (std::size_t index = 0; index < 256; ++index) {
      const std::uint32_t value = tables[slice - 1][index];
      tables[slice][index] = tables[0][value & 0xFFU] ^ (value >> 8);
    }
  return tables;
}

constexpr Tables kTables = make_tables();

// The contribution of byte `index` of the eight at `at`, advanced past the bytes behind it.
std::uint32_t slice(std::string_view bytes, std::size_t at, std::size_t index, std::uint32_t mix) {
  const auto byte = static_cast<unsigned char>(bytes[at + index]);
  return kTables[kSlices - 1 - index][(byte ^ mix) & 0xFFU];
}

// Eight bytes at a time (Kounavis and Berry, "A systematic approach to building high performance
// software-based CRC generators", 2005).
std::uint32_t sum_by_tables(std::string_view bytes, std::uint32_t crc) {
  std::size_t at = 0;
  for (; bytes.size() - at >= kSlices; at += kSlices) {
    std::uint32_t sum = 0;
    for (std::size_t i = 0; i < kSlices; ++i)
      sum ^= slice(bytes, at, i, i < sizeof crc ? crc >> (8 * i) : 0);
    crc = sum;
  }
  for (; at < bytes.size(); ++at)
    crc = kTables[0][(crc ^ static_cast<unsigned char>(bytes[at])) & 0xFFU] ^ (crc >> 8);
  return crc;
}

#if defined(__x86_64__)
// SSE 4.2 has an instruction for this polynomial.
[[gnu::target("sse4.2")]] std::uint32_t sum_by_instruction(std::string_view bytes,
                                                           std::uint32_t crc) {
  std::uint64_t sum = crc;
  for (; bytes.size() >= sizeof sum; bytes.remove_prefix(sizeof sum)) {
    std::uint64_t eight = 0;
    std::memcpy(&eight, bytes.data(), sizeof eight);
    sum = __builtin_ia32_crc32di(sum, eight);
  }
  crc = static_cast<std::uint32_t>(sum);
  for (const char c : bytes) crc = __builtin_ia32_crc32qi(crc, static_cast<unsigned char>(c));
  return crc;
}

const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t seed) {
#if defined(__x86_64__)
  if (kHasInstruction) return ~sum_by_instruction(bytes, ~seed);
#endif
  return ~sum_by_tables(bytes, ~seed);
}

std::uint32_t crc32c_by_tables(std::string_view bytes, std::uint32_t seed) {
  return ~sum_by_tables(bytes, ~seed);
}

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t seed) {
  return crc32c(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()), seed);
}

}  // namespace cgphase
