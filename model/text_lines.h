// Lines of a text file, plain or compressed with gzip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/result.h"

struct gzFile_s;

namespace cgphase {

inline constexpr std::size_t kMaxLineBytes = 64 * 1024;

// Streams through one buffer: a file of any length needs the memory of its longest line. What can
// be read only once (a pipe) goes to an unlinked temporary file first. Owned and used by one
// thread.
class TextLines {
 public:
  // Errors: not_found, denied, io.
  static Result<TextLines> open(const std::string& path);
  // The same text from its beginning, whatever has become of the path meanwhile.
  Result<TextLines> again() const;
  TextLines(TextLines&& other) noexcept;
  TextLines& operator=(TextLines&& other) noexcept;
  ~TextLines();

  // The next line without LF or CRLF, valid until the next call; false at the end. Errors name file
  // and line: invalid (a line beyond kMaxLineBytes, a damaged or cut-off gzip stream), io.
  Result<bool> next(std::string_view& line);

  std::uint64_t line_number() const { return line_number_; }  // of the line last returned, from 1
  std::uint32_t crc() const { return crc_; }  // CRC-32C of the text read so far, uncompressed
  const std::string& path() const { return path_; }

 private:
  static Result<TextLines> read(const std::string& path, Fd fd);
  TextLines(std::string path, gzFile_s* file, int fd);
  Result<bool> refill();

  std::string path_;
  gzFile_s* file_ = nullptr;
  int fd_ = -1;  // that of file_
  std::string buffer_;
  std::size_t position_ = 0;
  bool at_end_ = false;
  std::uint64_t line_number_ = 0;
  std::uint32_t crc_ = 0;
};

// Cuts a CSV line into fields (RFC 4180: a field may be quoted, "" is a quote in it; line breaks
// within quotes are not supported). False when a quote does not end or is followed by text.
bool split_csv(std::string_view line, std::vector<std::string>& fields);

// The same without a copy: views into `line`, or into `unquoted` where "" stands for a quote. Both
// must outlive them.
bool split_csv(std::string_view line, std::vector<std::string_view>& fields,
               std::string& unquoted);

// A field as CSV: quoted where it must be.
std::string csv_field(std::string_view text);

}  // namespace cgphase
