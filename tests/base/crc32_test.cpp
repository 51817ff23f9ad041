#include "base/crc32.h"

#include <doctest/doctest.h>

#include <string>

using namespace cgphase;

TEST_CASE("crc32c of the check string is the published value") {
  CHECK(crc32c(std::string_view("123456789")) == 0xE3069283U);
}

TEST_CASE("crc32c of nothing is zero") { CHECK(crc32c(std::string_view{}) == 0); }

TEST_CASE("crc32c of two parts continues the first") {
  CHECK(crc32c(std::string_view("456789"), crc32c(std::string_view("123"))) == 0xE3069283U);
}

TEST_CASE("crc32c of texts of all lengths is that of the definition, bit by bit") {
  std::string text;
  for (int length = 0; length <= 40; ++length) {
    std::uint32_t crc = 0xFFFFFFFFU;
    for (const char c : text) {
      crc ^= static_cast<unsigned char>(c);
      for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? (crc >> 1) ^ 0x82F63B78U : crc >> 1;
    }
    CHECK(crc32c(text) == ~crc);
    CHECK(crc32c_by_tables(text) == ~crc);
    CHECK(crc32c(std::string_view(text).substr(text.size() / 3),
                 crc32c(std::string_view(text).substr(0, text.size() / 3))) == ~crc);
    text += static_cast<char>(37 * length + 200);
  }
}
