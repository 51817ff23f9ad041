// Lines of a text file, plain or compressed with gzip, as programs and spreadsheets write them.
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
// be read only once (a pipe) goes to an unlinked temporary file first. UTF-16 with a byte order
// mark becomes UTF-8, and the mark of UTF-8 is skipped. Lines end with LF, CRLF, or CR where the
// first chunk has no LF. Owned and used by one thread.
class TextLines {
 public:
  // Errors: not_found, denied, io.
  static Result<TextLines> open(const std::string& path);
  // The same text from its beginning, whatever has become of the path meanwhile.
  Result<TextLines> again() const;
  TextLines(TextLines&& other) noexcept;
  TextLines& operator=(TextLines&& other) noexcept;
  ~TextLines();

  // The next line without its end, valid until the next call; false at the end. Errors name the
  // file: invalid (a line beyond kMaxLineBytes, a damaged or cut-off gzip stream, another
  // compression, an archive, bytes that are no text), io.
  Result<bool> next(std::string_view& line);

  std::uint64_t line_number() const { return line_number_; }  // of the line last returned, from 1
  std::uint32_t crc() const { return crc_; }  // CRC-32C of the text read so far, uncompressed
  const std::string& path() const { return path_; }

 private:
  static Result<TextLines> read(const std::string& path, Fd fd);
  TextLines(std::string path, gzFile_s* file, int fd);
  enum class Encoding : std::uint8_t { unknown, utf8, utf16_little, utf16_big };
  Result<bool> refill();
  // Of the first bytes of the text: what they are, or why this is no text.
  Status recognise(std::string_view head);
  void decode_utf16(std::string_view bytes, bool last);

  std::string path_;
  gzFile_s* file_ = nullptr;
  int fd_ = -1;  // that of file_
  std::string buffer_;
  std::size_t position_ = 0;
  bool at_end_ = false;
  Encoding encoding_ = Encoding::unknown;
  char line_end_ = '\n';
  std::string undecoded_;  // a character of UTF-16 that the last chunk cut
  std::uint64_t line_number_ = 0;
  std::uint32_t crc_ = 0;
};

// Cuts a CSV line into fields (RFC 4180: a field may be quoted, "" is a quote in it; line breaks
// within quotes are not supported). Blanks around a quoted field are not part of it. False when a
// quote does not end or is followed by text.
bool split_csv(std::string_view line, std::vector<std::string>& fields, char separator = ',');

// The same without a copy: views into `line`, or into `unquoted` where "" stands for a quote. Both
// must outlive them.
bool split_csv(std::string_view line, std::vector<std::string_view>& fields,
               std::string& unquoted, char separator = ',');

// A field as CSV: quoted where it must be.
std::string csv_field(std::string_view text);

}  // namespace cgphase
