#include "traces/foreign_file.h"

namespace cgphase {
namespace {

using namespace std::string_view_literals;

struct Format {
  std::string_view magic, what, command;
  std::size_t offset = 0;
};

constexpr Format kFormats[] = {
    {"\xFD\x37zXZ\0"sv, "is compressed with xz", "xz -d"},
    {"BZh"sv, "is compressed with bzip2", "bzip2 -d"},
    {"\x28\xB5\x2F\xFD"sv, "is compressed with zstd", "zstd -d"},
    {"\x04\x22\x4D\x18"sv, "is compressed with lz4", "lz4 -d"},
    {"\x1F\x8B"sv, "is compressed with gzip twice", "gzip -d"},
    {"PK\x03\x04"sv, "is a zip archive", "unzip"},
    {"PK\x05\x06"sv, "is an empty zip archive", "unzip"},
    {"7z\xBC\xAF\x27\x1C"sv, "is a 7z archive", "7z x"},
    {"ustar"sv, "is a tar archive", "tar -xf", 257},
};

bool is_json(std::string_view head) {
  const std::size_t begin = head.find_first_not_of(" \t\r\n");
  if (begin == head.npos) return false;
  const std::string_view next = head.substr(begin, 2);
  return next == "{\"" || next == "{}" || next == "[{" || next == "[[" || next == "{\n";
}

}  // namespace

std::string foreign_file(std::string_view head) {
  for (const Format& format : kFormats)
    if (head.size() > format.offset && head.substr(format.offset).starts_with(format.magic))
      return std::string(format.what) + "; unpack it first (" + std::string(format.command) +
             "), then pass the CSV file in it";
  const bool utf16 = head.starts_with("\xFF\xFE"sv) || head.starts_with("\xFE\xFF"sv);
  if (utf16 && !head.starts_with("\xFF\xFE\0\0"sv)) return {};
  if (head.find('\0') != head.npos)
    return "is not text: it contains zero bytes; a trace is CSV in UTF-8, or in UTF-16 with a byte "
           "order mark";
  if (is_json(head))
    return "is JSON; a trace is CSV with a header line (docs/internals/trace-format.md)";
  return {};
}

}  // namespace cgphase
