#include "agent/metrics_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/fd.h"
#include "base/thread.h"

namespace cgphase {
namespace {

constexpr mode_t kMode = 0644;

}  // namespace

// By the directory's descriptor: it may be another user's, and no link in it is followed.
Status write_metrics_file(const std::string& path, const std::string& text) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1), temporary = "." + name + ".new";
  const Result<Fd> directory =
      open_path(slash == 0 ? "/" : path.substr(0, slash), O_PATH | O_DIRECTORY);
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
  const bool writing = shared_->writing;
  lock.unlock();
  shared_->wake.notify_one();
  if (writing) thread_.detach();
  else thread_.join();
}

void MetricsFile::run(Shared& shared, const std::string& path) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.wake.wait(lock, [&] { return shared.stopping || shared.text; });
    if (shared.stopping) return;
    const std::string text = *std::exchange(shared.text, std::nullopt);
    shared.writing = true;
    lock.unlock();
    const Status written = write_metrics_file(path, text);
    lock.lock();
    shared.writing = false;
    shared.failure = written ? "" : written.error().text;
  }
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
