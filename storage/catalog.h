// Who the containers are, and what was learned of their images.
#pragma once

#include <cstdint>
#include <functional>
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
  // The row of a container of this boot; absent when there is none.
  Result<std::optional<std::int64_t>> find(CgroupId id);
  // The same, made with an empty name where there is none.
  Result<std::int64_t> find_or_add(CgroupId id, WallTime first_seen);
  Result<std::vector<StoredContainer>> list();
  // Of all boots, ascending, those above `after`; at most `limit`.
  Result<std::vector<StoredRecord>> records(std::int64_t after, int limit);
  // The rows below `before` of all containers of this name under this engine, of all boots: the
  // newest kMostNamed, newest first. None without a name.
  static constexpr int kMostNamed = 256;
  Result<std::vector<std::int64_t>> named(const std::string& name, Engine engine,
                                          std::int64_t before);
  // The row of a subject, and of those before it that go with it, the newest first.
  Result<std::vector<std::int64_t>> rows_of(const Store::Subject& subject);
  // As Store::last_container().
  Result<std::optional<StoredRecord>> last(const std::string& text);
  // Deletes containers of which nothing else is stored, that were first seen before `before` and of
  // which memory holds nothing, either: table recent is not searched.
  Status drop_forgotten(WallTime before, const std::function<bool(std::int64_t)>& holds);

  Result<nlohmann::json> load_learned(const std::string& image);
  Status save_learned(const std::string& image, const nlohmann::json& learned);

 private:
  std::string boot_id_;
  Statement add_, find_, list_, records_, named_, last_, forgotten_, drop_;
  Statement load_, save_, drop_learned_;
};

// The statement that read_records() runs.
inline constexpr const char* kSelectRecords =
    "SELECT device,inode,path,engine,engine_id,name,image,labels,systemd_unit,hands_off,"
    "first_seen_ns,container FROM container WHERE container > ? ORDER BY container LIMIT ?";
Result<std::vector<StoredRecord>> read_records(Statement& statement, std::int64_t after, int limit);

// As Store::runs(); `sampled` says of a row whether there are points of it in that time.
Result<std::vector<StoredRecord>> runs_of(Catalog& catalog, const Store::Subject& subject,
                                          const std::function<Result<bool>(std::int64_t)>& sampled);

}  // namespace cgphase
