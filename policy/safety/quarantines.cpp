#include "policy/safety/quarantines.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::chrono::hours kLongest{366 * 24};

std::unexpected<Error> refuse_quarantines(const char* why) {
  return failure(ErrorKind::invalid, std::string("quarantines: ") + why);
}

}  // namespace

std::chrono::nanoseconds Quarantines::Quarantine::left(WallTime now) const {
  return std::max(length - begin.age(now), std::chrono::nanoseconds(0));
}

std::chrono::nanoseconds Quarantines::longest_left(const ByResource& of, WallTime now) {
  return std::max(of[0].left(now), of[1].left(now));
}

void Quarantines::keep(const std::string& container, Resource resource,
                       std::chrono::nanoseconds length, WallTime now) {
  const std::string name = escape_name(container);
  if (name.size() > kMostNameBytes) return;
  std::erase_if(containers_, [&](const auto& one) {
    return one.first != name && longest_left(one.second, now).count() == 0;
  });
  if (containers_.size() >= kContainers && !containers_.contains(name))
    containers_.erase(std::min_element(
        containers_.begin(), containers_.end(), [&](const auto& a, const auto& b) {
          return longest_left(a.second, now) < longest_left(b.second, now);
        }));
  Quarantine& one = containers_[name][static_cast<std::size_t>(resource)];
  if (one.left(now) < length) one = {{now}, length};
}

void Quarantines::add(const Quarantines& earlier, WallTime now) {
  for (const auto& [name, of] : earlier.containers_)
    for (const Resource resource : {Resource::cpu, Resource::memory})
      if (const auto left = of[static_cast<std::size_t>(resource)].left(now); left.count() > 0)
        keep(unescape_name(name), resource, left, now);
}

std::chrono::nanoseconds Quarantines::left(const std::string& container, Resource resource,
                                           WallTime now) const {
  if (containers_.empty()) return std::chrono::nanoseconds(0);
  const auto found = containers_.find(escape_name(container));
  return found == containers_.end() ? std::chrono::nanoseconds(0)
                                    : found->second[static_cast<std::size_t>(resource)].left(now);
}

bool Quarantines::follow_clock(WallTime now) {
  bool changed = false;
  for (auto& [name, of] : containers_)
    for (Quarantine& one : of)
      if (one.length.count() > 0) changed = one.begin.follow_clock(now) || changed;
  return changed;
}

Result<Quarantines> Quarantines::from_containers(Containers containers) {
  if (containers.size() > kContainers) return refuse_quarantines("more than 128 containers");
  for (const auto& [name, of] : containers) {
    if (name.size() > kMostNameBytes) return refuse_quarantines("a name is too long");
    for (const Quarantine& one : of)
      if (one.length.count() < 0 || one.length > kLongest)
        return refuse_quarantines("a length is out of range");
  }
  Quarantines quarantines;
  quarantines.containers_ = std::move(containers);
  return quarantines;
}

}  // namespace cgphase
