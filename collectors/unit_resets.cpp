#include "collectors/unit_resets.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace cgphase {
namespace {

std::int64_t stamp_ns(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// A user's own service manager lives below; the system's leaves its units alone.
bool is_system_unit(const ContainerInfo& container) {
  return container.systemd_unit && container.path.find("/user@") == CgroupPath::npos;
}

// What an engine updates: the properties of other units are set by people, who mean what they set.
bool is_engines(const ContainerInfo& container) {
  return container.engine != Engine::service && container.engine != Engine::cgroup;
}

}  // namespace

ChangeMark::ChangeMark(std::string path)
    : path_(std::move(path)), seen_(look().value_or(Stamp{})) {}

std::optional<ChangeMark::Stamp> ChangeMark::look() const {
  struct stat status;
  if (::stat(path_.c_str(), &status) == 0)
    return Stamp{status.st_ino, stamp_ns(status.st_mtim), stamp_ns(status.st_ctim)};
  return errno == ENOENT ? std::optional(Stamp{}) : std::nullopt;
}

bool ChangeMark::changed() {
  const std::optional<Stamp> now = look();
  return now && *now != std::exchange(seen_, *now);
}

ReloadWatch::ReloadWatch(const std::string& root)
    : mark_(root + "/run/systemd/systemd-units-load") {}

UnitResets::UnitResets(const ContainerInfo& container, const std::string& root)
    : is_unit_(is_system_unit(container)) {
  if (!is_unit_ || !is_engines(container)) return;
  const CgroupPath unit = container.path.substr(container.path.rfind('/') + 1);
  properties_.emplace(root + "/run/systemd/transient/" + unit + ".d");
}

std::optional<MonotonicTime> UnitResets::last(const Limits& limits, MonotonicTime now,
                                              const ReloadWatch& reloads) {
  if (!is_unit_) return std::nullopt;
  if (properties_ && std::exchange(limits_, limits) != limits && properties_->changed())
    properties_set_ = now;
  return std::max(properties_set_, reloads.last());
}

}  // namespace cgphase
