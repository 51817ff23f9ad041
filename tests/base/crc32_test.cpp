#include "base/crc32.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("crc32c of the check string is the published value") {
  CHECK(crc32c(std::string_view("123456789")) == 0xE3069283U);
}

TEST_CASE("crc32c of nothing is zero") { CHECK(crc32c(std::string_view{}) == 0); }

TEST_CASE("crc32c of two parts continues the first") {
  CHECK(crc32c(std::string_view("456789"), crc32c(std::string_view("123"))) == 0xE3069283U);
}
