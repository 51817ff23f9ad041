#include "traces/foreign_file.h"

#include <doctest/doctest.h>

using namespace cgphase;
using namespace std::string_view_literals;

namespace {

bool says(std::string_view head, std::string_view words) {
  const std::string why = foreign_file(head);
  CAPTURE(why);
  return why.contains(words);
}

}  // namespace

TEST_CASE("the error for compressed files and archives names the command that unpacks them") {
  CHECK(says("\xFD\x37zXZ\0rest"sv, "is compressed with xz; unpack it first (xz -d)"));
  CHECK(says("BZh91AY"sv, "bzip2 -d"));
  CHECK(says("\x28\xB5\x2F\xFDrest"sv, "zstd -d"));
  CHECK(says("\x1F\x8B\x08"sv, "gzip twice"));
  CHECK(says("PK\x03\x04rest"sv, "is a zip archive; unpack it first (unzip)"));
  std::string tar(512, '\0');
  tar.replace(0, 9, "trace.csv").replace(257, 5, "ustar");
  CHECK(says(tar, "is a tar archive; unpack it first (tar -xf)"));
}

TEST_CASE("the error names JSON and bytes that are not text") {
  CHECK(says("{\"CPUPerc\":\"12.50%\"}", "is JSON"));
  CHECK(says(" [{\"a\":1}]", "is JSON"));
  CHECK(says("SQLite format 3\0"sv, "is not text"));
  CHECK(says("\xFF\xFE\0\0t\0\0\0"sv, "is not text"));
}

TEST_CASE("CSV in UTF-8 and UTF-16 is accepted") {
  for (const std::string_view head :
       {""sv, "timestamp,a\n1,2\n"sv, "\xEF\xBB\xBFtimestamp\n"sv, "\xFF\xFEt\0i\0"sv,
        "\xFE\xFF\0t\0i"sv, "{__name__=\"x\"},timestamp\n"sv, "PKTS,timestamp\n"sv})
    CHECK(foreign_file(head).empty());
}
