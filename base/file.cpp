#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

namespace cgphase {
namespace {

Result<std::string> read_all(int fd, const std::string& name, std::size_t limit_bytes) {
  std::string content;
  char chunk[16384];
  for (;;) {
    const ssize_t count = ::read(fd, chunk, sizeof chunk);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_failure(name, errno);
    if (count == 0) return content;
    content.append(chunk, static_cast<std::size_t>(count));
    if (content.size() > limit_bytes)
      return failure(ErrorKind::invalid, name + ": larger than the bound of " +
                                             std::to_string(limit_bytes) + " bytes");
  }
}

Status sync_directory(const std::string& directory) {
  Result<Fd> fd = open_path(directory, O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(fd.error());
  if (::fsync(fd->get()) != 0) return errno_failure(directory, errno);
  return {};
}

// Whose place is taken.
Result<std::string> replaced_path(const std::string& path) {
  struct stat itself{}, target{};
  if (::lstat(path.c_str(), &itself) != 0) {
    if (errno == ENOENT) return path;
    return errno_failure(path, errno);
  }
  if (::stat(path.c_str(), &target) != 0) {
    if (errno == ENOENT)
      return failure(ErrorKind::invalid, path + ": is a link to nothing: name the file itself");
    return errno_failure(path, errno);
  }
  if (!S_ISREG(target.st_mode))
    return failure(ErrorKind::invalid,
                   path + ": is no regular file, and only such a one is replaced");
  if (!S_ISLNK(itself.st_mode)) return path;
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return errno_failure(path, error.value());
  return real.string();
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit_bytes) {
  Result<Fd> fd = open_path(path, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  return read_all(fd->get(), path, limit_bytes);
}

Result<std::string> read_file_at(int directory_fd, const char* name, std::size_t limit_bytes) {
  Result<Fd> fd = open_at(directory_fd, name, O_RDONLY);
  if (!fd) return std::unexpected(fd.error());
  return read_all(fd->get(), name, limit_bytes);
}

Status replace_file(const std::string& path, std::string_view content, unsigned mode) {
  Result<FileReplacement> file = FileReplacement::create(path, mode);
  if (!file) return std::unexpected(file.error());
  if (Status written = file->write(content); !written) return written;
  return file->commit();
}

FileReplacement::FileReplacement(std::string path, std::string temporary, Fd fd)
    : path_(std::move(path)), temporary_(std::move(temporary)), fd_(std::move(fd)) {}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : path_(std::move(other.path_)),
      temporary_(std::exchange(other.temporary_, {})),
      fd_(std::move(other.fd_)) {}

FileReplacement::~FileReplacement() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<FileReplacement> FileReplacement::create(const std::string& path, unsigned mode) {
  Result<std::string> replaced = replaced_path(path);
  if (!replaced) return std::unexpected(replaced.error());
  std::string temporary = *replaced + ".new." + std::to_string(::getpid());
  ::unlink(temporary.c_str());
  Result<Fd> fd = open_path(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
  if (!fd) return std::unexpected(fd.error());
  return FileReplacement(*std::move(replaced), std::move(temporary), *std::move(fd));
}

Status FileReplacement::write(std::string_view content) { return write_all(fd_.get(), content); }

Status FileReplacement::commit() {
  if (::fsync(fd_.get()) != 0) return errno_failure(temporary_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return errno_failure(path_, errno);
  temporary_.clear();
  const std::filesystem::path parent = std::filesystem::path(path_).parent_path();
  return sync_directory(parent.empty() ? "." : parent.string());
}

}  // namespace cgphase
