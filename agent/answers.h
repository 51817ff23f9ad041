// Answers to what is asked on the sockets: fills the reports of agent/report.h from the agent, and
// carries out what an administrator asks for.
#pragma once

#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "agent/agent.h"
#include "agent/peer.h"
#include "agent/protocol.h"
#include "agent/report.h"

namespace cgphase {

// Used by the agent's thread alone; an answer out of the history comes later, by `post`.
class Answers {
 public:
  // Different questions of `fit` that are answered between two ticks. Each looks at every container
  // six times in the thread that samples, so that no client may ask as many as it likes.
  static constexpr std::size_t kMostFitsPerTick = 8;
  using Respond = std::function<void(nlohmann::json)>;
  struct Facts {
    std::string version;
    std::string model_path;
    MonotonicTime started;
    std::vector<Source> host_sources;            // found at start: cgroup root, controllers
    std::function<bool()> companion_alive;
  };

  Answers(Agent& agent, const Clock& clock, Agent::Post post, Facts facts);

  void answer(const Request& request, const Peer& peer, Respond respond);
  StatusReport status() const;
  std::vector<ContainerReport> reports() const;

 private:
  void explain(const Request& request, Respond respond);
  void history(const Request& request, Respond respond);
  void full_history(const Request& request, CgroupId id, Respond respond);
  void records(const Request& request, Respond respond);
  void learned(const Request& request, Respond respond);
  nlohmann::json fit(const Request& request);
  nlohmann::json weighed(const Request& request) const;
  void events(const Request& request, Respond respond);
  nlohmann::json act(const Request& request, const Peer& peer);
  nlohmann::json set_mode(const Request& request);
  nlohmann::json restore(const Request& request);
  Result<const ContainerView*> container(const Request& request) const;
  ContainerReport report(const ContainerView& view) const;

  Agent& agent_;
  const Clock& clock_;
  Agent::Post post_;
  Facts facts_;
  // The answers of `fit` since the last tick; what they are made of does not change before the
  // next.
  MonotonicTime fits_of_;
  std::map<std::string, nlohmann::json> fits_;
};

}  // namespace cgphase
