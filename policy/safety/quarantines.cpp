#include "policy/safety/quarantines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::array<Resource, 2> kQuarantined = {Resource::cpu, Resource::memory};
constexpr double kLongestSeconds = 366.0 * 24 * 3600;

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

nlohmann::json Quarantines::to_json() const {
  nlohmann::json containers = nlohmann::json::object();
  for (const auto& [name, of] : containers_)
    for (const Resource resource : kQuarantined) {
      const Quarantine& one = of[static_cast<std::size_t>(resource)];
      if (one.length.count() == 0) continue;
      nlohmann::json& told = containers[name][to_string(resource)];
      told["seconds"] = std::chrono::duration<double>(one.length).count();
      one.begin.to_json(told);
    }
  return containers;
}

Result<Quarantines> Quarantines::from_json(const nlohmann::json& json) {
  if (!json.is_object() || json.size() > kContainers)
    return refuse_quarantines("not an object of at most 128 containers");
  Quarantines quarantines;
  for (const auto& [name, entry] : json.items()) {
    if (name.size() > kMostNameBytes || !entry.is_object())
      return refuse_quarantines("a malformed entry");
    for (const Resource resource : kQuarantined) {
      const auto told = entry.find(to_string(resource));
      if (told == entry.end()) continue;
      const auto length = told->is_object() ? told->find("seconds") : told->end();
      if (!told->is_object() || length == told->end() || !length->is_number() ||
          !(length->get<double>() > 0 && length->get<double>() <= kLongestSeconds))
        return refuse_quarantines("a length is missing or out of range");
      const auto begin = RememberedTime::from_json(*told);
      if (!begin) return refuse_quarantines("a time is missing or out of range");
      quarantines.containers_[name][static_cast<std::size_t>(resource)] = {
          *begin, std::chrono::duration_cast<std::chrono::nanoseconds>(
                      std::chrono::duration<double>(length->get<double>()))};
    }
  }
  return quarantines;
}

}  // namespace cgphase
