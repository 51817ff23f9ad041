// The recorded containers, and statistics learned of their images.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "storage/sqlite.h"
#include "storage/store.h"

namespace cgphase {

class Catalog {
 public:
  static Result<Catalog> prepare(Connection& connection, std::string boot_id);

  Status add(const ContainerInfo& info, WallTime first_seen);
  // The row of a container of this boot, if it is known.
  Result<std::optional<std::int64_t>> find(CgroupId id);
  // The same; an unknown container is added with an empty name.
  Result<std::int64_t> find_or_add(CgroupId id, WallTime first_seen);
  // Of all boots, ascending, above `after`; at most `limit`.
  Result<std::vector<StoredRecord>> records(std::int64_t after, int limit);
  // The rows below `before` of all containers with this name and engine, of all boots, newest
  // first; at most kMostNamed. An empty name has no rows.
  static constexpr int kMostNamed = 256;
  Result<std::vector<std::int64_t>> named(const std::string& name, Engine engine,
                                          std::int64_t before);
  // The row of a subject and those of earlier containers that belong to it, newest first.
  Result<std::vector<std::int64_t>> rows_of(const Store::Subject& subject);
  // As Store::last_container().
  Result<std::optional<StoredRecord>> last(const std::string& text);
  // Deletes containers first seen before `before` that no other table refers to.
  Status drop_unused(WallTime before);

  Result<nlohmann::json> load_learned(const std::string& image);
  Status save_learned(const std::string& image, const nlohmann::json& learned);

 private:
  std::string boot_id_;
  Statement add_, find_, records_, named_, last_, drop_unused_, load_, save_, drop_learned_;
};

}  // namespace cgphase
