#include "tests/workloads/packing.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/workloads/random.h"

namespace cgphase::workloads {

namespace {

constexpr std::size_t kHeaderBytes = 3;
constexpr int kRectangles = 3;
constexpr int kContrastRadius = 3;

using Plane = std::array<float, kImageBytes>;

std::size_t at(int x, int y) { return static_cast<std::size_t>(y * kImageSide + x); }

void fill_rectangle(Random& shape, Random& noise, std::span<std::uint8_t, kImageBytes> image) {
  const auto place = [&](int span) {
    return static_cast<int>(shape.below(static_cast<std::uint64_t>(span)) + noise.below(3));
  };
  const int left = place(9), top = place(9);
  const int right = std::min(left + 3 + place(3), kImageSide);
  const int bottom = std::min(top + 3 + place(3), kImageSide);
  const auto brightness = static_cast<std::uint8_t>(96 + shape.below(96) + noise.below(64));
  for (int y = top; y < bottom; ++y)
    for (int x = left; x < right; ++x) image[at(x, y)] = brightness;
}

// Bilinear reading; outside the image is black.
float pixel(std::span<const std::uint8_t, kImageBytes> image, float x, float y) {
  const int x0 = static_cast<int>(std::floor(x)), y0 = static_cast<int>(std::floor(y));
  const float fx = x - static_cast<float>(x0), fy = y - static_cast<float>(y0);
  const auto value = [&](int px, int py) {
    if (px < 0 || py < 0 || px >= kImageSide || py >= kImageSide) return 0.0F;
    return static_cast<float>(image[at(px, py)]);
  };
  return (value(x0, y0) * (1 - fx) + value(x0 + 1, y0) * fx) * (1 - fy) +
         (value(x0, y0 + 1) * (1 - fx) + value(x0 + 1, y0 + 1) * fx) * fy;
}

Plane turned(std::span<const std::uint8_t, kImageBytes> image, Random& random) {
  const double angle = random.between(-0.25, 0.25);
  const float c = static_cast<float>(std::cos(angle)), s = static_cast<float>(std::sin(angle));
  const float dx = random.bell(), dy = random.bell(), middle = (kImageSide - 1) / 2.0F;
  Plane plane;
  for (int y = 0; y < kImageSide; ++y)
    for (int x = 0; x < kImageSide; ++x) {
      const float px = static_cast<float>(x) - middle, py = static_cast<float>(y) - middle;
      plane[at(x, y)] = pixel(image, c * px - s * py + middle + dx, s * px + c * py + middle + dy);
    }
  return plane;
}

float local_mean(const Plane& plane, int x, int y) {
  float sum = 0;
  int count = 0;
  for (int py = std::max(y - kContrastRadius, 0);
       py <= std::min(y + kContrastRadius, kImageSide - 1); ++py)
    for (int px = std::max(x - kContrastRadius, 0);
         px <= std::min(x + kContrastRadius, kImageSide - 1); ++px) {
      sum += plane[at(px, py)];
      ++count;
    }
  return sum / static_cast<float>(count);
}

}  // namespace

int make_image(std::uint64_t seed, std::uint64_t number,
               std::span<std::uint8_t, kImageBytes> image) {
  Random noise(derive_seed(seed, number));
  const int label = static_cast<int>(noise.below(kClasses));
  // The shapes of a class are the same for every seed, so the task is learnable across data sets.
  Random shape(derive_seed(7, static_cast<std::uint64_t>(label)));
  std::fill(image.begin(), image.end(), std::uint8_t{16});
  for (int i = 0; i < kRectangles; ++i) fill_rectangle(shape, noise, image);
  return label;
}

void pack_image(std::span<const std::uint8_t, kImageBytes> image, int label, std::string& out) {
  const std::size_t start = out.size();
  out.append(kHeaderBytes, static_cast<char>(label));
  std::uint8_t previous = 0;
  for (std::size_t i = 0; i < kImageBytes;) {
    const auto delta = static_cast<std::uint8_t>(image[i] - previous);
    std::size_t run = 1;
    const auto step = [&](std::size_t k) {
      return static_cast<std::uint8_t>(image[k] - image[k - 1]);
    };
    while (i + run < kImageBytes && run < 255 && step(i + run) == delta) ++run;
    out.push_back(static_cast<char>(run));
    out.push_back(static_cast<char>(delta));
    previous = image[i + run - 1];
    i += run;
  }
  const std::size_t length = out.size() - start - kHeaderBytes;
  out[start] = static_cast<char>(length & 0xFF);
  out[start + 1] = static_cast<char>(length >> 8);
}

Result<int> unpack_image(std::string_view& packed, std::span<std::uint8_t, kImageBytes> image) {
  const auto byte = [&](std::size_t i) { return static_cast<std::uint8_t>(packed[i]); };
  if (packed.size() < kHeaderBytes)
    return failure(ErrorKind::invalid, "packed image: header cut short");
  const std::size_t length = byte(0) + std::size_t{256} * byte(1);
  const int label = byte(2);
  if (label >= kClasses) return failure(ErrorKind::invalid, "packed image: no such class");
  if (length % 2 != 0 || packed.size() < kHeaderBytes + length)
    return failure(ErrorKind::invalid, "packed image: runs cut short");
  std::size_t filled = 0;
  std::uint8_t value = 0;
  for (std::size_t i = kHeaderBytes; i < kHeaderBytes + length; i += 2) {
    if (filled + byte(i) > kImageBytes)
      return failure(ErrorKind::invalid, "packed image: runs longer than the image");
    for (int k = 0; k < byte(i); ++k)
      image[filled++] = value = static_cast<std::uint8_t>(value + byte(i + 1));
  }
  if (filled != kImageBytes)
    return failure(ErrorKind::invalid, "packed image: runs shorter than the image");
  packed.remove_prefix(kHeaderBytes + length);
  return label;
}

void augment(std::span<const std::uint8_t, kImageBytes> image, std::uint64_t seed,
             std::span<float, kImageBytes> row) {
  Random random(seed);
  const Plane plane = turned(image, random);
  double sum = 0, squares = 0;
  for (int y = 0; y < kImageSide; ++y)
    for (int x = 0; x < kImageSide; ++x) {
      const float value = plane[at(x, y)] - 0.5F * local_mean(plane, x, y);
      row[at(x, y)] = value;
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
    }
  const double mean = sum / kImageBytes;
  const double deviation = std::sqrt(std::max(squares / kImageBytes - mean * mean, 1e-6));
  for (float& value : row)
    value = static_cast<float>((static_cast<double>(value) - mean) / deviation);
}

}  // namespace cgphase::workloads
