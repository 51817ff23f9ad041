#include "model/text_lines.h"

#include <sys/stat.h>
#include <zlib.h>

#include <cerrno>
#include <utility>

#include "base/crc32.h"

namespace cgphase {
namespace {

constexpr unsigned kChunkBytes = 64 * 1024;

}  // namespace

TextLines::TextLines(std::string path, gzFile_s* file) : path_(std::move(path)), file_(file) {}

TextLines::TextLines(TextLines&& other) noexcept { *this = std::move(other); }

TextLines& TextLines::operator=(TextLines&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  std::swap(buffer_, other.buffer_);
  std::swap(position_, other.position_);
  std::swap(at_end_, other.at_end_);
  std::swap(line_number_, other.line_number_);
  std::swap(crc_, other.crc_);
  return *this;
}

TextLines::~TextLines() {
  if (file_ != nullptr) gzclose(file_);
}

Result<TextLines> TextLines::open(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return errno_failure(path, errno);
  if (S_ISDIR(status.st_mode)) return failure(ErrorKind::invalid, path + ": is a directory");
  errno = 0;
  // zlib passes a file without the gzip magic through as it is. "e" is O_CLOEXEC.
  gzFile_s* file = gzopen(path.c_str(), "rbe");
  if (file == nullptr) return errno_failure(path, errno != 0 ? errno : ENOMEM);
  return TextLines(path, file);
}

Result<bool> TextLines::refill() {
  buffer_.erase(0, position_);
  position_ = 0;
  const std::size_t old_size = buffer_.size();
  buffer_.resize(old_size + kChunkBytes);
  const int count = gzread(file_, buffer_.data() + old_size, kChunkBytes);
  buffer_.resize(old_size + static_cast<std::size_t>(count > 0 ? count : 0));
  int code = Z_OK;
  const char* reason = gzerror(file_, &code);
  if (count < 0 || code == Z_BUF_ERROR)
    return failure(code == Z_ERRNO ? ErrorKind::io : ErrorKind::invalid,
                   path_ + ": line " + std::to_string(line_number_ + 1) +
                       ": cannot be read on: " + reason);
  crc_ = crc32c(std::string_view(buffer_).substr(old_size), crc_);
  return count > 0;
}

Result<bool> TextLines::next(std::string_view& line) {
  std::size_t searched = position_;
  std::size_t end = buffer_.find('\n', searched);
  while (end == std::string::npos && !at_end_) {
    if (buffer_.size() - position_ > kMaxLineBytes) break;
    searched = buffer_.size() - position_;
    const Result<bool> more = refill();
    if (!more) return more;
    at_end_ = !*more;
    end = buffer_.find('\n', searched);
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

bool split_csv(std::string_view line, std::vector<std::string>& fields) {
  fields.clear();
  std::size_t i = 0;
  for (;;) {
    std::string field;
    if (i < line.size() && line[i] == '"') {
      for (++i;; ++i) {
        if (i >= line.size()) return false;
        if (line[i] != '"') field += line[i];
        else if (i + 1 < line.size() && line[i + 1] == '"') field += line[i++];
        else break;
      }
      ++i;
      if (i < line.size() && line[i] != ',') return false;
    } else {
      const std::size_t end = std::min(line.find(',', i), line.size());
      field = line.substr(i, end - i);
      i = end;
    }
    fields.push_back(std::move(field));
    if (i >= line.size()) return true;
    ++i;
  }
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
