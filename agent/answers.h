// Answers to what is asked on the sockets: fills the reports of protocol/report.h from the agent,
// and carries out what an administrator asks for.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent.h"
#include "agent/server/peer.h"
#include "policy/budget/host_fit.h"
#include "protocol/protocol.h"
#include "protocol/report.h"

namespace cgphase {

// Used by the agent's thread alone; an answer out of the history comes later, by `post`.
class Answers {
 public:
  // New questions of `fit` that one user is answered per second; fewer with many containers. They
  // are weighed in the thread that samples: each adds up the peaks of all containers at most
  // fourteen times.
  static constexpr std::size_t kMostFits = 8;
  // Containers whose learning one user is told within a second, and of one image at once: each
  // takes most of a millisecond in that thread.
  static constexpr std::size_t kMostLearned = 400;
  using Respond = std::function<void(nlohmann::json)>;
  struct Facts {
    std::string version;
    MonotonicTime started;
    std::vector<Source> host_sources;            // found at start: cgroup root, controllers
    std::function<Result<std::string>()> take_model;  // that is installed now; says which it is
    bool companion_needed = true;  // limits can be written here
    std::function<bool()> companion_alive;
    // Of what is no part of the agent; one more sentence of "degraded".
    std::function<std::optional<std::string>()> complaint = {};
  };

  Answers(Agent& agent, const Clock& clock, Agent::Post post, Facts facts);

  void answer(const Request& request, const Peer& peer, Respond respond);
  StatusReport status() const;
  // Once per tick; what it costs before the first call, to start, is not counted.
  void measure_overhead();
  std::vector<ContainerReport> reports() const;

 private:
  // Whom a question is about: a container that lives, or one that only the history knows.
  struct Asked {
    std::string text;  // as it was named
    ContainerInfo container = {};
    Store::Subject subject = {};
    std::optional<Error> absent = {};  // what to say where the history does not know it, either
    bool gone() const { return absent.has_value(); }
  };
  Result<Asked> asked_about(const Request& request) const;
  // In the storage's thread: completes it out of the history. Errors: its `absent`.
  static Status find_asked(Store& store, Asked& asked);
  // With "unreadable" where only what waits in memory could be asked.
  static nlohmann::json told(const Store& store, nlohmann::json reply);
  nlohmann::json no_store(const char* verb) const;
  // The text that a command finds this container by, and no other: its name, else its path.
  std::string found_by(const ContainerView& view) const;
  // What to add where a pause or a mode that is set or lifted is of more containers than this one;
  // else empty.
  std::string others_of_name(const ContainerInfo& info) const;
  std::vector<JournalEvent> events_in_memory(std::optional<CgroupId> only, const EventSpan& span,
                                             bool all) const;
  void explain(const Request& request, Respond respond);
  nlohmann::json explain_from_memory(ExplainReport explained, WallTime until) const;
  void history(const Request& request, Respond respond);
  void record_rows(const Request& request, Respond respond);
  void full_history(const Request& request, CgroupId id, Respond respond);
  void records(const Request& request, Respond respond);
  void table(const Request& request, Respond respond);
  void learned(const Request& request, const Peer& peer, Respond respond);
  nlohmann::json fit(const Request& request, const Peer& peer);
  // What one user is answered of a verb within a second: questions that look at so many containers
  // together, but at least the fewest and at most the most of them.
  struct Share {
    std::size_t containers, fewest, most;
  };
  static const Share kStatusShare, kListShare, kShowShare, kLearnedShare, kFitShare;
  // Why this question, which looks at so many, is not answered now; else it is counted.
  std::optional<nlohmann::json> refusal(Verb verb, const Peer& peer, const Share& share,
                                        std::size_t containers);
  const std::vector<KnownContainer>& known(std::chrono::seconds duration);
  void events(const Request& request, Respond respond);
  void act(const Request& request, Respond respond);
  nlohmann::json acted(const Request& request);
  nlohmann::json set_mode(const Request& request);
  nlohmann::json set_host_mode(std::optional<Mode> mode, bool until_restart);
  nlohmann::json set_own_mode(const Request& request, std::optional<Mode> mode,
                              bool until_restart);
  nlohmann::json pause(const Request& request);
  nlohmann::json config() const;
  // What keeps a container in this mode from being changed, or part of it; one sentence each.
  std::vector<std::string> obstacles(const ContainerView& view, Mode mode) const;
  std::vector<std::string> capped_text() const;
  std::string still_pinned(const ContainerView& view) const;
  nlohmann::json restore(const Request& request);
  nlohmann::json restore_all();
  nlohmann::json pin(const Request& request);
  Result<const ContainerView*> container(const Request& request) const;
  ContainerReport report(const ContainerView& view) const;  // but for `next`
  ContainerReport report_with_next(const ContainerView& view);

  std::optional<double> overhead_cpu_cores() const;

  Agent& agent_;
  const Clock& clock_;
  Agent::Post post_;
  Facts facts_;
  // Answers of `fit` since the last tick, and the forecasts by duration that they are made of:
  // neither changes before the next.
  MonotonicTime fits_of_;
  std::map<std::string, nlohmann::json> fits_;
  std::map<std::chrono::seconds, std::vector<KnownContainer>> known_;
  // What may follow, of the containers that were told of since that tick.
  std::uint64_t next_of_ticks_ = 0;
  std::map<CgroupId, std::vector<Forecast::Next>> next_;
  // CPU seconds of this process by time, within kOverheadWindow.
  std::deque<std::pair<MonotonicTime, double>> cpu_seconds_;
  // Containers that questions looked at within a second.
  MonotonicTime asked_since_;
  std::map<std::pair<Verb, uid_t>, std::size_t> asked_;
  bool came_round_ = true;  // the loop, since that second began
};

}  // namespace cgphase
