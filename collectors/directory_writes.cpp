#include "collectors/directory_writes.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

namespace cgphase {
namespace {

constexpr std::size_t kChangeEventBytes = 8192;

constexpr DirectoryChange kAllChanged{true, true};

}  // namespace

DirectoryChange change_of(std::string_view file_name) {
  if (file_name.starts_with("memory.events") || file_name == "cgroup.events")
    return {.events = true};
  if (file_name == "cgroup.freeze") return {.limits = true};
  // cgroup.subtree_control creates and removes files, but in the children.
  if (file_name.starts_with("cgroup.") || file_name.ends_with(".pressure") ||
      file_name.ends_with(".events") || file_name == "memory.reclaim")
    return {};
  return {.limits = true};
}

DirectoryWrites::DirectoryWrites() : inotify_(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

int DirectoryWrites::add(int directory_fd) {
  if (!inotify_.valid()) return -1;
  // The watch uses the descriptor, because the path may be another directory by now.
  const std::string path = "/proc/self/fd/" + std::to_string(directory_fd);
  const int watch = ::inotify_add_watch(inotify_.get(), path.c_str(), IN_MODIFY | IN_ONLYDIR);
  if (watch < 0) return -1;
  if (find(watch) == nullptr) {
    const auto at = std::ranges::lower_bound(watched_, watch, {}, &Watched::watch);
    watched_.insert(at, {watch, kAllChanged});
  }
  return watch;
}

// A removed cgroup's directory keeps its watch while a descriptor of it is open.
void DirectoryWrites::remove(int place) {
  if (std::erase_if(watched_, [&](const Watched& one) { return one.watch == place; }) > 0)
    ::inotify_rm_watch(inotify_.get(), place);
}

DirectoryWrites::Watched* DirectoryWrites::find(int watch) {
  const auto at = std::ranges::lower_bound(watched_, watch, {}, &Watched::watch);
  return at != watched_.end() && at->watch == watch ? &*at : nullptr;
}

void DirectoryWrites::add_event(int watch, std::string_view name) {
  Watched* one = find(watch);
  if (one == nullptr) return;
  const DirectoryChange change = change_of(name);
  one->change.events |= change.events;
  one->change.limits |= change.limits;
}

void DirectoryWrites::poll() {
  if (!inotify_.valid()) return;
  alignas(inotify_event) char events[kChangeEventBytes];
  for (;;) {
    const ssize_t count = ::read(inotify_.get(), events, sizeof events);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return;
    for (const char* at = events; at < events + count;) {
      const auto* event = reinterpret_cast<const inotify_event*>(at);
      at += sizeof *event + event->len;
      if (event->mask & IN_Q_OVERFLOW)
        for (Watched& one : watched_) one.change = kAllChanged;
      else if (event->mask & IN_MODIFY)
        add_event(event->wd, event->len > 0 ? event->name : "");
    }
  }
}

DirectoryChange DirectoryWrites::drain(int place) {
  Watched* one = find(place);
  return one == nullptr ? kAllChanged : std::exchange(one->change, {});
}

void DirectoryWrites::mark_changed(int place) {
  if (Watched* one = find(place)) one->change = kAllChanged;
}

}  // namespace cgphase
