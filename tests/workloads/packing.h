// A data set as it travels: small grey images, each row delta coded, runs packed; and what a loader
// does with them before training. Pure.
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

// Takes one record from the front of `packed` and returns its class. A record that is cut short,
// whose runs do not fill the image exactly, or whose class is out of range is invalid.
Result<int> unpack_image(std::string_view& packed, std::span<std::uint8_t, kImageBytes> image);

// One training row: the image turned and shifted a little (seeded), local contrast taken out over
// 7x7 pixels, then mean 0 and standard deviation 1 over the row.
void augment(std::span<const std::uint8_t, kImageBytes> image, std::uint64_t seed,
             std::span<float, kImageBytes> row);

}  // namespace cgphase::workloads
