#include "base/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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
      return failure(ErrorKind::invalid,
                     name + ": larger than the limit of " + std::to_string(limit_bytes) + " bytes");
  }
}

// A directory may be writable but not readable. It cannot be synced then, which is not an error.
Status sync_directory(int directory_fd, const std::string& path) {
  Result<Fd> fd = open_at(directory_fd, ".", O_RDONLY | O_DIRECTORY);
  if (!fd) return fd.error().kind == ErrorKind::denied ? Status{} : std::unexpected(fd.error());
  return ::fsync(fd->get()) == 0 ? Status{} : errno_failure(path, errno);
}

Status check_replaceable(const HeldPlace& place, const std::string& path) {
  struct stat there{};
  if (::fstatat(place.directory.get(), place.name.c_str(), &there, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status{} : errno_failure(path, errno);
  if (S_ISLNK(there.st_mode))
    return failure(ErrorKind::invalid, path + ": is a symbolic link: name the file it points to");
  if (!S_ISREG(there.st_mode))
    return failure(ErrorKind::invalid, path +
                                           ": is not a regular file and is not replaced: "
                                           "choose another name");
  return {};
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

Status replace_shared_file(const std::string& path, std::string_view content) {
  constexpr mode_t kReadByAll = 0644;
  Result<HeldPlace> place = hold_place(path, PlaceRule::shared);
  if (!place) return std::unexpected(place.error());
  Result<NewFile> made = create_new_file(place->directory.get(), kReadByAll);
  if (!made) return failure(made.error().kind, path + ": " + made.error().text);
  FileReplacement file(*std::move(place), path, *std::move(made));
  if (::fchmod(file.file_.fd.get(), kReadByAll) != 0) return errno_failure(path, errno);
  if (Status written = file.write(content); !written) return written;
  return file.rename_into_place();
}

void remove_shared_file(const std::string& path) {
  const Result<HeldPlace> place = hold_place(path, PlaceRule::shared);
  if (place) ::unlinkat(place->directory.get(), place->name.c_str(), 0);
}

FileReplacement::FileReplacement(HeldPlace place, std::string path, NewFile file)
    : place_(std::move(place)), path_(std::move(path)), file_(std::move(file)) {}

FileReplacement::FileReplacement(FileReplacement&& other) noexcept
    : place_(std::move(other.place_)),
      path_(std::move(other.path_)),
      file_{std::move(other.file_.fd), std::exchange(other.file_.name, {})} {}

FileReplacement::~FileReplacement() {
  if (!file_.name.empty()) ::unlinkat(place_.directory.get(), file_.name.c_str(), 0);
}

Result<FileReplacement> FileReplacement::create(const std::string& path, unsigned mode) {
  Result<HeldPlace> place = hold_place(path, PlaceRule::exclusive);
  if (!place) return std::unexpected(place.error());
  return create(*std::move(place), path, mode);
}

Result<FileReplacement> FileReplacement::create(HeldPlace place, const std::string& path,
                                                unsigned mode) {
  if (Status free = check_replaceable(place, path); !free) return std::unexpected(free.error());
  Result<NewFile> file = create_new_file(place.directory.get(), mode);
  if (!file) return failure(file.error().kind, path + ": " + file.error().text);
  return FileReplacement(std::move(place), path, *std::move(file));
}

Status FileReplacement::write(std::string_view content) {
  Status written = write_all(file_.fd.get(), content);
  if (written) return {};
  return failure(written.error().kind, path_ + ": " + written.error().text);
}

Status FileReplacement::commit() {
  if (::fsync(file_.fd.get()) != 0) return errno_failure(path_, errno);
  if (Status renamed = rename_into_place(); !renamed) return renamed;
  return sync_directory(place_.directory.get(), path_);
}

Status FileReplacement::rename_into_place() {
  const int directory = place_.directory.get();
  struct stat ours{}, named{};
  if (::fstat(file_.fd.get(), &ours) != 0) return errno_failure(path_, errno);
  if (::fstatat(directory, file_.name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0 ||
      named.st_dev != ours.st_dev || named.st_ino != ours.st_ino)
    return failure(ErrorKind::io, path_ +
                                      ": another process moved the new file away before the "
                                      "rename; the old content is unchanged");
  if (::renameat(directory, file_.name.c_str(), directory, place_.name.c_str()) != 0)
    return errno_failure(path_, errno);
  file_.name.clear();
  return {};
}

}  // namespace cgphase
