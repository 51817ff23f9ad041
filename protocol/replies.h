// Replies about the configuration, what was learned, and whether a job fits. Like
// protocol/report.h: plain structs that the agent fills and the command reads. Pure, any thread.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "collectors/sample.h"
#include "policy/budget/host_fit.h"

namespace cgphase {

struct ConfigEntry {
  std::string key, value, origin;  // value as in the file
};
struct ConfigReply {
  std::vector<ConfigEntry> config, modes;  // modes of containers, by a command
};
nlohmann::json to_json(const ConfigReply& reply);

// The command's answer to `config diff`: "config" of the reply, reduced to what differs.
struct ConfigDifference : ConfigEntry {
  std::optional<std::string> shipped;  // "default": null for a key that the command does not know
};
struct ConfigDifferences {
  std::vector<ConfigDifference> config;
};
nlohmann::json to_json(const ConfigDifferences& differences);

struct LearnedReply {
  std::string name, policy;
  HostCapacity host;
  nlohmann::json learned;  // policy/learned_json.h
};
nlohmann::json to_json(const LearnedReply& reply);

// Cores and bytes.
struct Amount {
  std::optional<double> cpu_cores, memory_bytes;
};

struct FitReply {
  struct Demand {
    double peak = 0, at_most = 0;
    PeakBasis basis = PeakBasis::nothing;
  };
  struct Container {
    std::string name;
    Demand cpu_cores, memory_bytes;
  };
  struct Change {
    std::string name;
    double probability = 0;
    std::int64_t in_seconds = 0;
  };
  bool fits = false;
  std::string sentence;
  double risk = 0;
  std::int64_t seconds = 0;
  Amount asked, free, reserve, outside, containers_need;
  HostCapacity host;
  std::optional<std::int64_t> fits_for_seconds;  // a shorter duration for which it would fit
  std::optional<Change> next_change;
  std::vector<Container> containers;
};
FitReply fit_reply(const FitAnswer& answer);
nlohmann::json to_json(const FitReply& reply);

}  // namespace cgphase
