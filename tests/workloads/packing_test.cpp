#include "tests/workloads/packing.h"

#include <doctest/doctest.h>

#include <array>
#include <cmath>

using namespace cgphase;
using namespace cgphase::workloads;

namespace {
using Image = std::array<std::uint8_t, kImageBytes>;
using Row = std::array<float, kImageBytes>;
}  // namespace

TEST_CASE("packing: what was packed unpacks to the same image and class") {
  std::string packed;
  for (std::uint64_t number = 0; number < 100; ++number) {
    Image image, back;
    const int label = make_image(5, number, image);
    packed.clear();
    pack_image(image, label, packed);
    std::string_view rest = packed;
    const auto unpacked = unpack_image(rest, back);
    REQUIRE(unpacked.has_value());
    CHECK(*unpacked == label);
    CHECK(back == image);
    CHECK(rest.empty());
  }
}

TEST_CASE("packing: a flat image is two runs, one per 255 pixels") {
  Image image;
  image.fill(0);
  std::string packed;
  pack_image(image, 3, packed);
  CHECK(packed.size() == 3 + 2 * 2);
}

TEST_CASE("packing: records follow each other") {
  std::string packed;
  Image image;
  for (std::uint64_t number = 0; number < 3; ++number)
    pack_image(image, make_image(1, number, image), packed);
  std::string_view rest = packed;
  for (int i = 0; i < 3; ++i) CHECK(unpack_image(rest, image).has_value());
  CHECK(rest.empty());
}

TEST_CASE("packing: a record cut short at any byte is invalid") {
  Image image;
  std::string packed;
  pack_image(image, make_image(1, 1, image), packed);
  for (std::size_t length = 0; length < packed.size(); ++length) {
    std::string_view cut(packed.data(), length);
    CHECK_FALSE(unpack_image(cut, image).has_value());
  }
}

TEST_CASE("packing: a class past the last is invalid") {
  Image image;
  image.fill(9);
  std::string packed;
  pack_image(image, kClasses, packed);
  std::string_view rest = packed;
  CHECK_FALSE(unpack_image(rest, image).has_value());
}

TEST_CASE("packing: runs that do not fill the image exactly are invalid") {
  Image image;
  using namespace std::string_literals;
  for (const std::string& runs : {"\xFF\x01"s, "\xFF\x01\x02\x01"s, "\xFF\x01\x01\x01\x01\x01"s}) {
    const std::string packed = std::string(1, static_cast<char>(runs.size())) + "\0\1"s + runs;
    std::string_view rest = packed;
    CHECK_FALSE(unpack_image(rest, image).has_value());
  }
}

TEST_CASE("packing: an augmented row has mean 0 and standard deviation 1") {
  Image image;
  Row row;
  make_image(2, 7, image);
  augment(image, 11, row);
  double sum = 0, squares = 0;
  for (const float value : row) {
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::abs(sum / kImageBytes) < 1e-5);
  CHECK(std::abs(squares / kImageBytes - 1) < 1e-4);
}

TEST_CASE("packing: augmentation is decided by its seed") {
  Image image;
  Row first, again, other;
  make_image(2, 7, image);
  augment(image, 11, first);
  augment(image, 11, again);
  augment(image, 12, other);
  CHECK(first == again);
  CHECK(first != other);
}
