#include "policy/phase/remembered_time.h"

namespace cgphase {
namespace {

std::optional<WallTime> wall_time(const nlohmann::json& ns) {
  if (!ns.is_number_integer() || ns.get<double>() < 0 || ns.get<double>() >= 9e18)
    return std::nullopt;
  return WallTime(std::chrono::nanoseconds(ns.get<std::int64_t>()));
}

}  // namespace

void RememberedTime::to_json(nlohmann::json& object) const {
  object["time_ns"] = time.time_since_epoch().count();
  if (ages_from) object["ages_from_ns"] = ages_from->time_since_epoch().count();
}

std::optional<RememberedTime> RememberedTime::from_json(const nlohmann::json& object) {
  const auto time = object.find("time_ns"), from = object.find("ages_from_ns");
  if (time == object.end()) return std::nullopt;
  const auto known = wall_time(*time);
  if (!known) return std::nullopt;
  if (from == object.end()) return RememberedTime{*known};
  const auto ages_from = wall_time(*from);
  if (!ages_from) return std::nullopt;
  return RememberedTime{*known, ages_from};
}

}  // namespace cgphase
