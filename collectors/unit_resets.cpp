#include "collectors/unit_resets.h"

#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cgphase {
namespace {

constexpr std::size_t kWriteEventBytes = 4096;

// systemd writes each of these before one of our knobs, so that a reset that was read halfway is
// recognised.
constexpr const char* kWrittenFirst[] = {"cpu.idle", "memory.low"};

// Where systemd stores the properties that `systemctl set-property` set on a unit.
constexpr const char* kPropertyDirectories[] = {
    "/run/systemd/transient", "/run/systemd/system.control", "/etc/systemd/system.control"};

std::int64_t stamp_ns(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// True for units whose properties an engine updates. People set the properties of other units, and
// mean it: a Quadlet is a service that Podman only starts.
bool is_engines(const ContainerInfo& container) {
  const bool quadlet = container.engine == Engine::podman && container.path.ends_with(".service");
  return container.engine != Engine::service && container.engine != Engine::cgroup && !quadlet;
}

// Units of a user's service manager are below, with their properties elsewhere.
bool is_users(const CgroupPath& path) { return path.find("/user@") != CgroupPath::npos; }

int open_inotify() { return ::inotify_init1(IN_NONBLOCK | IN_CLOEXEC); }

}  // namespace

ChangeMark::ChangeMark(std::string path)
    : path_(std::move(path)), seen_(read_stamp().value_or(Stamp{})) {}

std::optional<ChangeMark::Stamp> ChangeMark::read_stamp() const {
  struct stat status;
  if (::stat(path_.c_str(), &status) == 0)
    return Stamp{status.st_ino, stamp_ns(status.st_mtim), stamp_ns(status.st_ctim)};
  return errno == ENOENT ? std::optional(Stamp{}) : std::nullopt;
}

bool ChangeMark::changed() {
  const std::optional<Stamp> now = read_stamp();
  return now && *now != std::exchange(seen_, *now);
}

WriteWatch::WriteWatch() : inotify_(open_inotify()) {}

WriteWatch::File::File(WriteWatch& owner, int directory_fd, const char* name)
    : owner_(&owner), name_(name) {
  watch(directory_fd);
}

void WriteWatch::File::watch(int directory_fd) {
  // The watch uses the descriptor, because the path may be another directory by now.
  const std::string path = "/proc/self/fd/" + std::to_string(directory_fd) + "/" + name_;
  watch_ = ::inotify_add_watch(owner_->inotify_.get(), path.c_str(), IN_MODIFY | IN_DONT_FOLLOW);
  missed_ = watch_ < 0 && errno != ENOENT;
  (void)written();  // clears an event of another file that had this watch
  if (watch_ >= 0) owner_->written_.insert_or_assign(watch_, false);
  if (missed_) ++owner_->unwatched_;
}

void WriteWatch::File::watch_again(int directory_fd) {
  if (!missed_) return;
  --owner_->unwatched_;
  if (!owner_->inotify_.valid()) owner_->inotify_ = Fd(open_inotify());
  watch(directory_fd);
}

WriteWatch::File::File(File&& other) noexcept
    : owner_(other.owner_), name_(other.name_), watch_(std::exchange(other.watch_, -1)),
      missed_(std::exchange(other.missed_, false)) {}

// A removed cgroup's files keep their watches until they are removed here.
WriteWatch::File::~File() {
  if (missed_) --owner_->unwatched_;
  (void)written();
  if (watch_ >= 0 && owner_->written_.erase(watch_) > 0)
    ::inotify_rm_watch(owner_->inotify_.get(), watch_);
}

bool WriteWatch::File::written() {
  if (owner_->unreported_ == 0) return false;
  const auto at = owner_->written_.find(watch_);
  if (at == owner_->written_.end() || !at->second) return false;
  at->second = false;
  --owner_->unreported_;
  return true;
}

void WriteWatch::poll() {
  if (!inotify_.valid()) return;
  alignas(inotify_event) char events[kWriteEventBytes];
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), events, sizeof events);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    for (const char* at = events; at < events + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      if (event->mask & IN_Q_OVERFLOW) ++overflows_;
      const auto file = written_.find(event->wd);
      if (file == written_.end() || !(event->mask & IN_MODIFY)) continue;
      if (!std::exchange(file->second, true)) ++unreported_;
    }
  }
}

UnitResets::UnitResets(const ContainerInfo& container, int directory_fd, WriteWatch& writes,
                       const std::string& root) {
  const bool engines = is_engines(container);
  if (!container.systemd_unit || (!engines && is_users(container.path))) return;
  for (const char* name : kWrittenFirst) files_.emplace_back(writes, directory_fd, name);
  if (engines) return;
  const CgroupPath unit = container.path.substr(container.path.rfind('/') + 1);
  for (const char* directory : kPropertyDirectories)
    properties_.emplace_back(root + directory + "/" + unit + ".d");
}

// Each is queried, so that none reports an old change later.
std::optional<MonotonicTime> UnitResets::last(MonotonicTime now) {
  bool written = false, set = false;
  for (auto& file : files_) written = file.written() || written;
  if (!written) return last_;
  for (auto& property : properties_) set = property.changed() || set;
  if (!set) last_ = now;
  return last_;
}

void UnitResets::watch_again(int directory_fd) {
  for (auto& file : files_) file.watch_again(directory_fd);
}

}  // namespace cgphase
