#include "policy/safety/safety_memory_json.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

namespace cgphase {
namespace {

using nlohmann::json;

constexpr int kSafetyMemorySchema = 1;
constexpr double kMostSeconds = 1e9;  // Quarantines has a lower bound
constexpr std::array<Resource, 2> kQuarantined = {Resource::cpu, Resource::memory};

std::unexpected<Error> refuse_memory(const char* why) {
  return failure(ErrorKind::invalid, std::string("memory of the safety rules: ") + why);
}

std::optional<WallTime> wall_time(const json& ns) {
  if (!ns.is_number_integer() || ns.get<double>() < 0 || ns.get<double>() >= 9e18)
    return std::nullopt;
  return WallTime(std::chrono::nanoseconds(ns.get<std::int64_t>()));
}

void add_time(json& object, const RememberedTime& remembered) {
  object["time_ns"] = remembered.time.time_since_epoch().count();
  if (remembered.ages_from)
    object["ages_from_ns"] = remembered.ages_from->time_since_epoch().count();
}

// Absent if the members are missing or are not times.
std::optional<RememberedTime> time_in(const json& object) {
  const auto time = object.find("time_ns"), from = object.find("ages_from_ns");
  const auto known = time == object.end() ? std::nullopt : wall_time(*time);
  if (!known) return std::nullopt;
  if (from == object.end()) return RememberedTime{*known};
  const auto ages_from = wall_time(*from);
  if (!ages_from) return std::nullopt;
  return RememberedTime{*known, ages_from};
}

json ooms_to_json(const OomMemory& ooms) {
  json images = json::object();
  for (const auto& [name, need] : ooms.needs()) {
    json& image = images[name] = {{"need_bytes", need.bytes}};
    add_time(image, need.oom);
  }
  return images;
}

Result<OomMemory> ooms_from_json(const json& images) {
  if (!images.is_object()) return refuse_memory("\"images\" is not an object");
  OomMemory::Needs needs;
  for (const auto& [name, entry] : images.items()) {
    const auto bytes = entry.find("need_bytes");
    if (bytes == entry.end() || !bytes->is_number())
      return refuse_memory("the need of an image is missing");
    const auto oom = time_in(entry);
    if (!oom) return refuse_memory("the time of an OOM is missing or out of range");
    needs[name] = {bytes->get<double>(), *oom};
  }
  return OomMemory::from_needs(std::move(needs));
}

json quarantines_to_json(const Quarantines& quarantines) {
  json containers = json::object();
  for (const auto& [name, of] : quarantines.containers())
    for (const Resource resource : kQuarantined) {
      const Quarantines::Quarantine& one = of[static_cast<std::size_t>(resource)];
      if (one.length.count() == 0) continue;
      json& entry = containers[name][to_string(resource)];
      entry["seconds"] = std::chrono::duration<double>(one.length).count();
      add_time(entry, one.begin);
    }
  return containers;
}

Result<Quarantines::Quarantine> quarantine_from_json(const json& entry) {
  const auto length = entry.find("seconds");
  if (length == entry.end() || !length->is_number() ||
      !(length->get<double>() > 0 && length->get<double>() <= kMostSeconds))
    return refuse_memory("the length of a quarantine is missing or out of range");
  const auto begin = time_in(entry);
  if (!begin) return refuse_memory("the time of a quarantine is missing or out of range");
  return Quarantines::Quarantine{*begin,
                                 std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::duration<double>(length->get<double>()))};
}

Result<Quarantines> quarantines_from_json(const json& containers) {
  if (!containers.is_object()) return refuse_memory("\"quarantines\" is not an object");
  Quarantines::Containers known;
  for (const auto& [name, entry] : containers.items()) {
    if (!entry.is_object()) return refuse_memory("the quarantine of a container is not an object");
    for (const Resource resource : kQuarantined) {
      const auto found = entry.find(to_string(resource));
      if (found == entry.end()) continue;
      const auto one = quarantine_from_json(*found);
      if (!one) return std::unexpected(one.error());
      known[name][static_cast<std::size_t>(resource)] = *one;
    }
  }
  return Quarantines::from_containers(std::move(known));
}

json live_runs_to_json(const LiveRuns& runs) {
  json list = json::array();
  for (const auto& [id, run] : runs.runs())
    list.push_back({{"device", id.device},
                    {"inode", id.inode},
                    {"name", run.name},
                    {"need_bytes", run.need_bytes}});
  return list;
}

Result<LiveRuns> live_runs_from_json(const json& list) {
  if (!list.is_array()) return refuse_memory("\"runs\" is not a list");
  LiveRuns::Runs runs;
  for (const json& entry : list) {
    if (!entry.is_object()) return refuse_memory("a run is not an object");
    const auto at = [&](const char* key) { return entry.value(key, json()); };
    const json device = at("device"), inode = at("inode"), name = at("name"),
               need = at("need_bytes");
    if (!device.is_number_unsigned() || !inode.is_number_unsigned() || !name.is_string() ||
        !need.is_number())
      return refuse_memory("a number or the name of a run is missing");
    const double bytes = need.get<double>();
    runs[{device.get<std::uint64_t>(), inode.get<std::uint64_t>()}] = {name.get<std::string>(),
                                                                       bytes, bytes};
  }
  return LiveRuns::from_runs(std::move(runs));
}

// Reads the member `key` into `to`, if there is one.
template <class Part>
Status read_part(const json& object, const char* key, Result<Part> (*read)(const json&), Part& to) {
  const auto found = object.find(key);
  if (found == object.end()) return {};
  Result<Part> part = read(*found);
  if (!part) return std::unexpected(part.error());
  to = *std::move(part);
  return {};
}

}  // namespace

json safety_memory_to_json(const SafetyMemory& memory) {
  return {{"schema", kSafetyMemorySchema},
          {"images", ooms_to_json(memory.ooms)},
          {"quarantines", quarantines_to_json(memory.quarantines)},
          {"runs", live_runs_to_json(memory.runs)}};
}

Result<SafetyMemory> safety_memory_from_json(const json& value) {
  if (!value.is_object() || value.value("schema", json()) != kSafetyMemorySchema)
    return refuse_memory("the schema is not 1");
  if (!value.contains("images")) return refuse_memory("\"images\" is missing");
  SafetyMemory memory;
  Status read = read_part(value, "images", ooms_from_json, memory.ooms);
  if (read) read = read_part(value, "quarantines", quarantines_from_json, memory.quarantines);
  if (read) read = read_part(value, "runs", live_runs_from_json, memory.runs);
  if (!read) return std::unexpected(read.error());
  return memory;
}

}  // namespace cgphase
