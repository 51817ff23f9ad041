// A data set as it is transferred: small grey images, each row delta coded, runs packed; and the
// work of a loader before training. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase::workloads {

inline constexpr int kImageSide = 16;
inline constexpr std::size_t kImageBytes = std::size_t{kImageSide} * kImageSide;
inline constexpr int kClasses = 10;

// Image `number` of the data set `seed` and its class: a few rectangles that belong to the class,
// with noise in place and brightness.
int make_image(std::uint64_t seed, std::uint64_t number,
               std::span<std::uint8_t, kImageBytes> image);

// Appends one record: two bytes of length, the class, then (count, delta) pairs.
void pack_image(std::span<const std::uint8_t, kImageBytes> image, int label, std::string& out);

// Takes one record from the front of `packed` and returns its class. Invalid: a truncated record,
// runs that do not fill the image exactly, or a class out of range.
Result<int> unpack_image(std::string_view& packed, std::span<std::uint8_t, kImageBytes> image);

// One training row: the image is rotated and shifted a little (seeded), local contrast over 7x7
// pixels is removed, then the row gets mean 0 and standard deviation 1.
void augment(std::span<const std::uint8_t, kImageBytes> image, std::uint64_t seed,
             std::span<float, kImageBytes> row);

}  // namespace cgphase::workloads
