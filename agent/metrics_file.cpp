#include "agent/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <utility>

#include "base/fd.h"
#include "base/thread.h"

namespace cgphase {
namespace {

constexpr mode_t kMode = 0644;

// For a disk to remove the file.
constexpr std::chrono::milliseconds kRemovePatience{200};

// It may be another user's: files in it are reached by its descriptor, and no link is followed.
Result<Fd> textfile_directory(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return open_path(slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY);
}

std::string textfile_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Status write_metrics_file(const std::string& path, const std::string& text) {
  const std::string name = textfile_name(path), temporary = "." + name + ".new";
  const Result<Fd> directory = textfile_directory(path);
  if (!directory) return std::unexpected(directory.error());
  ::unlinkat(directory->get(), temporary.c_str(), 0);
  const Result<Fd> file = open_at(directory->get(), temporary.c_str(),
                                  O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, kMode);
  if (!file) return failure(file.error().kind, path + ": " + file.error().text);
  // Whatever the umask: others are to read it.
  Status written = ::fchmod(file->get(), kMode) == 0 ? write_all(file->get(), text)
                                                     : errno_failure(path, errno);
  if (written && ::renameat(directory->get(), temporary.c_str(), directory->get(), name.c_str()))
    written = errno_failure(path, errno);
  if (!written) ::unlinkat(directory->get(), temporary.c_str(), 0);
  return written;
}

void remove_metrics_file(const std::string& path) {
  const Result<Fd> directory = textfile_directory(path);
  if (directory) ::unlinkat(directory->get(), textfile_name(path).c_str(), 0);
}

MetricsFile::MetricsFile(std::string path) {
  Result<std::thread> thread =
      start_thread("cgphase-metrics", [shared = shared_, path = std::move(path)] {
        leave_descriptors();
        run(*shared, path);
      });
  if (thread) thread_ = std::move(*thread);
  else shared_->failure = thread.error().text;
}

MetricsFile::~MetricsFile() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->wake.notify_all();
  const bool removed =
      shared_->wake.wait_for(lock, kRemovePatience, [&] { return shared_->removed; });
  lock.unlock();
  if (removed) thread_.join();
  else thread_.detach();
}

void MetricsFile::run(Shared& shared, const std::string& path) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.wake.wait(lock, [&] { return shared.stopping || shared.text; });
    if (shared.stopping) break;
    const std::string text = *std::exchange(shared.text, std::nullopt);
    lock.unlock();
    const Status written = write_metrics_file(path, text);
    lock.lock();
    shared.failure = written ? "" : written.error().text;
  }
  lock.unlock();
  remove_metrics_file(path);
  lock.lock();
  shared.removed = true;
  shared.wake.notify_all();
}

void MetricsFile::put(std::string text) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(shared_->mutex);
  shared_->text = std::move(text);
  shared_->wake.notify_one();
}

std::string MetricsFile::failure() const {
  const std::lock_guard lock(shared_->mutex);
  return shared_->failure;
}

}  // namespace cgphase
