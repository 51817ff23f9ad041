#include "policy/safety/oom_memory.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "policy/phase/power_of_two.h"

namespace cgphase {
namespace {

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

Result<OomMemory> OomMemory::from_needs(Needs needs) {
  if (needs.size() > kImages) return refuse_ooms("more than 128 images");
  for (const auto& [name, need] : needs) {
    if (name.size() > kMostNameBytes) return refuse_ooms("a name is too long");
    if (!possible_need(need.bytes)) return refuse_ooms("a need is out of range");
  }
  OomMemory memory;
  memory.needs_ = std::move(needs);
  return memory;
}

}  // namespace cgphase
