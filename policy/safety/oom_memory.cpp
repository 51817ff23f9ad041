#include "policy/safety/oom_memory.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "policy/phase/power_of_two.h"

namespace cgphase {
namespace {

constexpr int kOomSchema = 1;
constexpr double kOomRatio = 1.2;
constexpr double kOomMarginBytes = 100 * kMiB;
constexpr double kMostNeedBytes = 1125899906842624.0;  // 1 PiB

std::unexpected<Error> refuse_ooms(const char* why) {
  return failure(ErrorKind::invalid, std::string("needs at an OOM: ") + why);
}

bool possible_need(double bytes) { return bytes > 0 && bytes <= kMostNeedBytes; }

}  // namespace

double oom_floor_bytes(double need_bytes) {
  return std::max(need_bytes * kOomRatio, need_bytes + kOomMarginBytes);
}

bool OomMemory::follow_clock(WallTime now) {
  bool changed = false;
  for (auto& [name, need] : needs_) changed = need.oom.follow_clock(now) || changed;
  return changed;
}

double OomMemory::floor_of(const Need& need, WallTime now) {
  const double age = std::chrono::duration<double>(need.oom.age(now)).count();
  const double half_lives = age / std::chrono::duration<double>(kHalfLife).count();
  return half_lives < kHalfLives ? oom_floor_bytes(need.bytes) * power_of_two(-half_lives) : 0;
}

// All floors decay at the same rate, so the higher one stays the higher one.
void OomMemory::remember(const std::string& image, const OomSeen& oom, WallTime time) {
  const std::string name = escape_name(image);
  const double standing = floor_bytes(image, time);
  double bytes = oom.limit_bytes;
  if (standing > 0 && bytes > 0) bytes = needs_[name].bytes;
  bytes = std::max(bytes, oom.measured_bytes);
  if (!possible_need(bytes) || name.size() > kMostNameBytes) return;
  if (standing > oom_floor_bytes(bytes)) return;
  set(name, {bytes, {time}}, time);
}

void OomMemory::set(const std::string& name, const Need& need, WallTime now) {
  if (needs_.size() >= kImages && !needs_.contains(name))
    needs_.erase(std::min_element(needs_.begin(), needs_.end(), [&](const auto& a, const auto& b) {
      return a.second.oom.begin(now) < b.second.oom.begin(now);
    }));
  needs_[name] = need;
}

void OomMemory::add(const OomMemory& earlier, WallTime now) {
  for (const auto& [name, need] : earlier.needs_) {
    const auto mine = needs_.find(name);
    if (mine == needs_.end() || floor_of(mine->second, now) < floor_of(need, now))
      set(name, need, now);
  }
}

double OomMemory::floor_bytes(const std::string& image, WallTime now) const {
  if (needs_.empty()) return 0;
  const auto found = needs_.find(escape_name(image));
  return found == needs_.end() ? 0 : floor_of(found->second, now);
}

nlohmann::json OomMemory::to_json() const {
  nlohmann::json images = nlohmann::json::object();
  for (const auto& [name, need] : needs_) {
    nlohmann::json& image = images[name] = {{"need_bytes", need.bytes}};
    need.oom.to_json(image);
  }
  return {{"schema", kOomSchema}, {"images", std::move(images)}};
}

Result<OomMemory> OomMemory::from_json(const nlohmann::json& json) {
  if (!json.is_object() || json.value("schema", nlohmann::json()) != kOomSchema)
    return refuse_ooms("the schema is not 1");
  const auto images = json.find("images");
  if (images == json.end() || !images->is_object() || images->size() > kImages)
    return refuse_ooms("not an object of at most 128 images");
  OomMemory memory;
  for (const auto& [name, entry] : images->items()) {
    if (name.size() > kMostNameBytes || !entry.is_object()) return refuse_ooms("a malformed entry");
    const auto bytes = entry.find("need_bytes");
    if (bytes == entry.end() || !bytes->is_number() || !possible_need(bytes->get<double>()))
      return refuse_ooms("a need is missing or out of range");
    const auto oom = RememberedTime::from_json(entry);
    if (!oom) return refuse_ooms("a time is missing or out of range");
    memory.needs_[name] = {bytes->get<double>(), *oom};
  }
  return memory;
}

}  // namespace cgphase
