#include "agent/stored_runs.h"

#include <nlohmann/json.hpp>

#include "policy/learned_json.h"

namespace cgphase {
namespace {

constexpr const char* kUnended = "unended";

LearnedState learned_or_empty(const nlohmann::json& json) {
  return learned_from_json(json).value_or(LearnedState{});
}

}  // namespace

bool StoredRuns::has_lost_runs(const std::string& daemon) const {
  return unended && unended->daemon != daemon;
}

LearnedState StoredRuns::without_live_runs(const std::string& daemon) const {
  return has_lost_runs(daemon) ? merge_learned(ended, unended->learned) : ended;
}

nlohmann::json stored_runs_to_json(const StoredRuns& runs) {
  nlohmann::json row = learned_to_json(runs.ended);
  if (!runs.unended) return row;
  if (!row.is_object()) row = nlohmann::json::object();
  row[kUnended] = {{"daemon", runs.unended->daemon},
                   {"learned", learned_to_json(runs.unended->learned)}};
  return row;
}

StoredRuns stored_runs_from_json(nlohmann::json row) {
  StoredRuns runs;
  const auto unended = row.find(kUnended);
  if (unended == row.end()) return {learned_or_empty(row), {}};
  const auto learned = unended->find("learned"), daemon = unended->find("daemon");
  if (learned != unended->end())
    runs.unended = {daemon != unended->end() && daemon->is_string() ? daemon->get<std::string>()
                                                                    : "",
                    learned_or_empty(*learned)};
  row.erase(kUnended);
  runs.ended = learned_or_empty(row);
  return runs;
}

}  // namespace cgphase
