// The history and the journal: one SQLite database, one connection, WAL, EXCLUSIVE
// (docs/storage.md). Owned by one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "base/units.h"
#include "collectors/containers/container_info.h"
#include "collectors/sample.h"
#include "model/phase.h"
#include "policy/decision.h"

namespace cgphase {

// One container in one tick, as history keeps it.
struct HistoryPoint {
  WallTime time;
  Sample sample;
  Phase phase;
};

struct JournalDecision {
  WallTime time;
  Decision decision;
};
struct JournalOutcome {
  WallTime time;
  Outcome outcome;
};

class Store {
 public:
  struct Options {
    std::string path;                       // ":memory:" in tests
    std::string boot_id;
    Bytes cap{256 * kMiB};                  // set as max_page_count at every open
  };
  // A corrupt file is renamed to PATH.corrupt-N and a new one begun; `quarantined()` says so.
  // Errors: denied, io, unsupported (a newer schema), invalid (another process has it open).
  static Result<Store> open(const Options& options);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // One transaction each. A container is named once per boot.
  Status add_container(const ContainerInfo& info, WallTime first_seen);
  Status append(const std::vector<HistoryPoint>& points,
                const std::vector<JournalDecision>& decisions,
                const std::vector<JournalOutcome>& outcomes);

  // What earlier runs of an image learned (policy/policy.h). not_found where there is none.
  Result<nlohmann::json> load_learned(const std::string& image);
  Status save_learned(const std::string& image, const nlohmann::json& learned);

  // Newest first, at most `limit`. A container is chosen by CgroupId of this boot.
  Result<std::vector<JournalDecision>> decisions(std::optional<CgroupId> container, WallTime until,
                                                 int limit);
  Result<std::vector<JournalOutcome>> outcomes(std::optional<CgroupId> container, WallTime until,
                                               int limit);
  // Oldest first.
  Result<std::vector<HistoryPoint>> history(CgroupId container, WallTime from, WallTime until,
                                            int limit);

  std::uint64_t size_bytes() const;
  const std::optional<std::string>& quarantined() const;

 private:
  class Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
