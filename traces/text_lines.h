// Reads the lines of a text file, plain or gzip, as programs and spreadsheets write them.
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

// Streams a file through one buffer, so that memory depends on the longest line only. A pipe can be
// read only once and is copied to an unlinked temporary file first. UTF-16 with a byte order mark
// becomes UTF-8. A UTF-8 byte order mark is skipped. Lines end with LF or CRLF, or with CR if the
// first chunk has no LF. Owned and used by one thread.
class TextLines {
 public:
  // Errors: not_found, denied, io, invalid (a directory, a device).
  static Result<TextLines> open(const std::string& path);
  // Reads the same text from its beginning, even if the path was renamed or removed.
  Result<TextLines> again() const;
  TextLines(TextLines&& other) noexcept;
  TextLines& operator=(TextLines&& other) noexcept;
  ~TextLines();

  // Returns the next line without its line end, valid until the next call. False at the end. Errors
  // name the file: invalid (a line longer than kMaxLineBytes, a damaged or truncated gzip stream,
  // another compression, an archive, bytes that are not text), io.
  Result<bool> next(std::string_view& line);

  std::uint64_t line_number() const { return line_number_; }  // of the line last returned, from 1
  std::uint32_t crc() const { return crc_; }  // CRC-32C of the text read so far, uncompressed
  const std::string& path() const { return path_; }

 private:
  static Result<TextLines> read(const std::string& path, Fd fd);
  TextLines(std::string path, gzFile_s* file, int fd);
  enum class Encoding : std::uint8_t { unknown, utf8, utf16_little, utf16_big };
  Result<bool> refill();
  // Recognises the encoding by the first bytes. The error says why the file is not text.
  Status recognise(std::string_view head);
  void decode_utf16(std::string_view bytes, bool last);

  std::string path_;
  gzFile_s* file_ = nullptr;
  int fd_ = -1;  // the descriptor of file_
  std::string buffer_;
  std::size_t position_ = 0;
  bool at_end_ = false;
  Encoding encoding_ = Encoding::unknown;
  char line_end_ = '\n';
  std::string undecoded_;  // an incomplete UTF-16 character at the end of the last chunk
  std::uint64_t line_number_ = 0;
  std::uint32_t crc_ = 0;
};

// Splits a CSV line into fields (RFC 4180). A field may be quoted, and "" is a quote in it. Line
// breaks within quotes are not supported. Blanks around a quoted field are dropped. False if a
// quote is not closed or text follows it.
bool split_csv(std::string_view line, std::vector<std::string>& fields, char separator = ',');

// The same without copies. Fields are views into `line`, or into `unquoted` if they contain "".
// Both must outlive the fields.
bool split_csv(std::string_view line, std::vector<std::string_view>& fields,
               std::string& unquoted, char separator = ',');

// Formats a field as CSV, with quotes if it needs them.
std::string csv_field(std::string_view text);

}  // namespace cgphase
