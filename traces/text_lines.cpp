#include "traces/text_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "base/crc32.h"
#include "base/temporary_file.h"
#include "traces/foreign_file.h"

namespace cgphase {
namespace {

constexpr unsigned kChunkBytes = 64 * 1024;
// Input from a pipe is copied to a temporary file, because it cannot be read twice.
constexpr std::uint64_t kMaxSpooledBytes = std::uint64_t{4} << 30;

Result<Fd> spooled(const Fd& from, const std::string& path) {
  Result<Fd> spool = unlinked_file();
  if (!spool)
    return failure(ErrorKind::io, path + ": is a pipe, and no temporary copy could be made: " +
                                      spool.error().text);
  std::vector<char> chunk(kChunkBytes);
  for (std::uint64_t total = 0;;) {
    const ssize_t count = ::read(from.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_failure(path, errno);
    if (count == 0) break;
    total += static_cast<std::uint64_t>(count);
    if (total > kMaxSpooledBytes)
      return failure(ErrorKind::invalid, path + ": more than 4 GiB through a pipe: save it to a "
                                                "file first");
    const std::string_view bytes(chunk.data(), static_cast<std::size_t>(count));
    if (Status written = write_all(spool->get(), bytes); !written)
      return failure(ErrorKind::io, path + ": cannot write a temporary copy in " +
                                        temporary_folder() + ": " + written.error().text);
  }
  if (::lseek(spool->get(), 0, SEEK_SET) != 0) return errno_failure(path, errno);
  return spool;
}

// Appends a code point as UTF-8.
void append_utf8(std::uint32_t point, std::string& out) {
  const auto byte = [](std::uint32_t value) { return static_cast<char>(value); };
  const auto trailing = [&](unsigned shift) { return byte(0x80U | (point >> shift & 0x3FU)); };
  if (point < 0x80) {
    out += byte(point);
  } else if (point < 0x800) {
    out += {byte(0xC0U | point >> 6), trailing(0)};
  } else if (point < 0x10000) {
    out += {byte(0xE0U | point >> 12), trailing(6), trailing(0)};
  } else {
    out += {byte(0xF0U | point >> 18), trailing(12), trailing(6), trailing(0)};
  }
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Position of the quote that opens a field, after optional blanks; npos if the field is not quoted.
std::size_t opening_quote(std::string_view line, std::size_t i, char separator) {
  while (i < line.size() && is_blank(line[i]) && line[i] != separator) ++i;
  return i < line.size() && line[i] == '"' ? i : line.npos;
}

// Moves `i` from the opening quote to the closing one. False if there is none.
bool find_closing_quote(std::string_view line, std::size_t& i) {
  for (++i; i < line.size(); ++i) {
    if (line[i] != '"') continue;
    if (i + 1 >= line.size() || line[i + 1] != '"') return true;
    ++i;
  }
  return false;
}

// `unquoted` is reserved for the whole line, so that views into it stay valid.
std::string_view without_quotes(std::string_view field, std::size_t line_size,
                                std::string& unquoted) {
  if (field.find('"') == std::string_view::npos) return field;
  unquoted.reserve(line_size);
  const std::size_t begin = unquoted.size();
  for (std::size_t i = 0; i < field.size(); ++i) {
    unquoted += field[i];
    if (field[i] == '"') ++i;
  }
  return std::string_view(unquoted).substr(begin);
}

}  // namespace

TextLines::TextLines(std::string path, gzFile_s* file, int fd)
    : path_(std::move(path)), file_(file), fd_(fd) {}

TextLines::TextLines(TextLines&& other) noexcept { *this = std::move(other); }

TextLines& TextLines::operator=(TextLines&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(fd_, other.fd_);
  std::swap(buffer_, other.buffer_);
  std::swap(position_, other.position_);
  std::swap(at_end_, other.at_end_);
  std::swap(encoding_, other.encoding_);
  std::swap(line_end_, other.line_end_);
  std::swap(undecoded_, other.undecoded_);
  std::swap(line_number_, other.line_number_);
  std::swap(crc_, other.crc_);
  return *this;
}

TextLines::~TextLines() {
  if (file_ != nullptr) gzclose(file_);
}

Result<TextLines> TextLines::open(const std::string& path) {
  Result<Fd> fd = open_path(path, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  struct stat status {};
  if (::fstat(fd->get(), &status) != 0) return errno_failure(path, errno);
  if (S_ISDIR(status.st_mode)) return failure(ErrorKind::invalid, path + ": is a directory");
  if (S_ISCHR(status.st_mode) || S_ISBLK(status.st_mode))
    return failure(ErrorKind::invalid, path + ": is a device, not a trace");
  if (!S_ISREG(status.st_mode)) fd = spooled(*fd, path);
  if (!fd) return std::unexpected(fd.error());
  return read(path, *std::move(fd));
}

Result<TextLines> TextLines::again() const {
  // A new open file description has its own position. /proc/self/fd names the same file even if the
  // path changed.
  Result<Fd> fd = open_path("/proc/self/fd/" + std::to_string(fd_), O_RDONLY);
  if (!fd) return failure(fd.error().kind, path_ + ": cannot be read again: " + fd.error().text);
  return read(path_, *std::move(fd));
}

Result<TextLines> TextLines::read(const std::string& path, Fd fd) {
  // zlib returns the bytes of a file without the gzip magic unchanged.
  gzFile_s* file = gzdopen(fd.get(), "rb");
  if (file == nullptr) return errno_failure(path, ENOMEM);
  return TextLines(path, file, fd.release());
}

Status TextLines::recognise(std::string_view head) {
  if (head.starts_with("\xFF\xFE")) encoding_ = Encoding::utf16_little;
  else if (head.starts_with("\xFE\xFF")) encoding_ = Encoding::utf16_big;
  else encoding_ = Encoding::utf8;
  if (const std::string why = foreign_file(head); !why.empty())
    return failure(ErrorKind::invalid, path_ + ": " + why);
  return {};
}

// An incomplete character is kept for the next chunk, or replaced at the end.
void TextLines::decode_utf16(std::string_view bytes, bool last) {
  constexpr std::uint32_t kReplacement = 0xFFFD;
  undecoded_ += bytes;
  const bool little = encoding_ == Encoding::utf16_little;
  const auto unit = [&](std::size_t at) {
    const auto first = static_cast<unsigned char>(undecoded_[at]);
    const auto second = static_cast<unsigned char>(undecoded_[at + 1]);
    return static_cast<std::uint32_t>(little ? first | second << 8 : first << 8 | second);
  };
  std::size_t at = 0;
  while (at + 1 < undecoded_.size()) {
    const std::uint32_t high = unit(at);
    const bool pair = high >= 0xD800 && high < 0xDC00;
    if (pair && at + 3 >= undecoded_.size() && !last) break;
    const std::uint32_t low = pair && at + 3 < undecoded_.size() ? unit(at + 2) : 0;
    const bool whole = low >= 0xDC00 && low < 0xE000;
    const bool lone = high >= 0xD800 && high < 0xE000 && !whole;
    append_utf8(whole  ? 0x10000U + ((high - 0xD800U) << 10) + (low - 0xDC00U)
                : lone ? kReplacement
                       : high,
                buffer_);
    at += whole ? 4 : 2;
  }
  undecoded_.erase(0, at);
}

Result<bool> TextLines::refill() {
  buffer_.erase(0, position_);
  position_ = 0;
  const std::size_t old_size = buffer_.size();
  buffer_.resize(old_size + kChunkBytes);
  const int count = gzread(file_, buffer_.data() + old_size, kChunkBytes);
  buffer_.resize(old_size + static_cast<std::size_t>(count > 0 ? count : 0));
  int code = Z_OK;
  std::string_view reason = gzerror(file_, &code);
  // zlib's text names the file by its descriptor, which is cut off.
  if (const auto colon = reason.find(">: "); colon != reason.npos) reason.remove_prefix(colon + 3);
  if (count < 0 || code == Z_BUF_ERROR)
    return failure(code == Z_ERRNO ? ErrorKind::io : ErrorKind::invalid,
                   path_ + ": line " + std::to_string(line_number_ + 1) +
                       ": cannot be read further: " + std::string(reason));
  const std::string_view chunk = std::string_view(buffer_).substr(old_size);
  crc_ = crc32c(chunk, crc_);
  const bool first = encoding_ == Encoding::unknown;
  if (first)
    if (Status known = recognise(chunk); !known) return std::unexpected(known.error());
  if (encoding_ != Encoding::utf8) {
    const std::string bytes(chunk);
    buffer_.resize(old_size);
    decode_utf16(bytes, count == 0);
  }
  if (first) {
    constexpr std::string_view kMark = "\xEF\xBB\xBF";
    if (buffer_.starts_with(kMark)) position_ = kMark.size();
    if (!buffer_.contains('\n') && buffer_.contains('\r')) line_end_ = '\r';
  }
  return count > 0;
}

Result<bool> TextLines::next(std::string_view& line) {
  std::size_t searched = position_;
  std::size_t end = buffer_.find(line_end_, searched);
  while (end == std::string::npos && !at_end_) {
    if (buffer_.size() - position_ > kMaxLineBytes) break;
    searched = buffer_.size() - position_;
    const Result<bool> more = refill();
    if (!more) return more;
    at_end_ = !*more;
    end = buffer_.find(line_end_, std::max(searched, position_));
  }
  if (end == std::string::npos && position_ == buffer_.size()) return false;
  ++line_number_;
  const std::size_t stop = end == std::string::npos ? buffer_.size() : end;
  line = std::string_view(buffer_).substr(position_, stop - position_);
  position_ = end == std::string::npos ? stop : end + 1;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line.size() > kMaxLineBytes)
    return failure(ErrorKind::invalid, path_ + ": line " + std::to_string(line_number_) +
                                           ": longer than " + std::to_string(kMaxLineBytes) +
                                           " bytes");
  return true;
}

bool split_csv(std::string_view line, std::vector<std::string_view>& fields,
               std::string& unquoted, char separator) {
  fields.clear();
  unquoted.clear();
  std::size_t i = 0;
  for (;;) {
    if (const std::size_t quote = opening_quote(line, i, separator); quote != line.npos) {
      i = quote;
      if (!find_closing_quote(line, i)) return false;
      fields.push_back(
          without_quotes(line.substr(quote + 1, i - quote - 1), line.size(), unquoted));
      for (++i; i < line.size() && is_blank(line[i]) && line[i] != separator;) ++i;
      if (i < line.size() && line[i] != separator) return false;
    } else {
      const std::size_t begin = i;
      while (i < line.size() && line[i] != separator) ++i;
      fields.push_back(line.substr(begin, i - begin));
    }
    if (i >= line.size()) return true;
    ++i;
  }
}

bool split_csv(std::string_view line, std::vector<std::string>& fields, char separator) {
  std::vector<std::string_view> views;
  std::string unquoted;
  const bool whole = split_csv(line, views, unquoted, separator);
  fields.assign(views.begin(), views.end());
  return whole;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c == '\n' || c == '\r' ? ' ' : c;
  }
  return quoted + '"';
}

}  // namespace cgphase
