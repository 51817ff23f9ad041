// Answers requests from the sockets: fills the reports of protocol/report.h from the agent, and
// carries out the changes that an administrator requests.
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
#include "protocol/requests.h"

namespace cgphase {

// Used by the agent's thread only. Answers from the history come later, through `post`.
class Answers {
 public:
  // The most new `fit` requests per user and second; fewer with many containers. The sampling
  // thread computes them: each adds up the peaks of all containers at most fourteen times.
  static constexpr std::size_t kMostFits = 8;
  // The most containers in `learned` replies per user and second, and per image. Each takes most of
  // a millisecond in that thread.
  static constexpr std::size_t kMostLearned = 400;
  using Respond = std::function<void(nlohmann::json)>;
  struct Facts {
    std::string version;
    MonotonicTime started;
    std::vector<Source> host_sources;            // found at start: cgroup root, controllers
    std::function<Result<std::string>()> take_model;  // loads the installed model; returns its name
    bool companion_needed = true;  // limits can be written here
    std::function<bool()> companion_alive;
    // One more sentence of "degraded", about parts outside of the agent.
    std::function<std::optional<std::string>()> complaint = {};
  };

  Answers(Agent& agent, const Clock& clock, Agent::Post post, Facts facts);
  ~Answers();

  void answer(const Request& request, const Peer& peer, const Respond& respond);
  StatusReport status() const;
  // Call once per tick. The cost of the start, before the first call, is not counted.
  void measure_overhead();
  std::vector<ContainerReport> reports() const;

 private:
  // The container of a request: a live one, or one that only the history knows.
  struct Asked {
    std::string text;  // the name in the request
    ContainerInfo container = {};
    Store::Subject subject = {};
    std::optional<Error> absent = {};  // the error if the history has no such container
    bool gone() const { return absent.has_value(); }
  };
  Result<Asked> asked_about(const std::string& name) const;
  // Completes it from the history, in the thread of the store. Errors: its `absent`.
  static Status find_asked(Store& store, Asked& asked);
  nlohmann::json no_store(const char* verb) const;
  // Returns the text that identifies this container in a command: its name, else its path.
  std::string found_by(const ContainerView& view) const;
  // Returns a clause if a pause or a mode applies to more containers than this one, else empty.
  std::string others_of_name(const ContainerInfo& info) const;
  std::vector<JournalEvent> events_in_memory(std::optional<CgroupId> only, const EventSpan& span,
                                             bool all) const;
  // One answer per request, so a request without one does not compile.
  void answer(const StatusRequest&, const Peer& peer, const Respond& respond);
  void answer(const ListRequest&, const Peer& peer, const Respond& respond);
  void answer(const ShowRequest& request, const Peer& peer, const Respond& respond);
  void answer(const ExplainRequest& request, const Peer&, const Respond& respond);
  void answer(const HistoryRequest& request, const Peer&, const Respond& respond);
  void answer(const EventsRequest& request, const Peer&, const Respond& respond);
  void answer(const ConfigRequest&, const Peer&, const Respond& respond);
  void answer(const RecordsRequest& request, const Peer&, const Respond& respond);
  void answer(const TableRequest& request, const Peer&, const Respond& respond);
  void answer(const LearnedRequest& request, const Peer& peer, const Respond& respond);
  void answer(const FitRequest& request, const Peer& peer, const Respond& respond);
  void answer(const SetModeRequest& request, const Peer&, const Respond& respond);
  void answer(const PauseRequest& request, const Peer&, const Respond& respond);
  void answer(const ResumeRequest& request, const Peer&, const Respond& respond);
  void answer(const RestoreRequest& request, const Peer&, const Respond& respond);
  void answer(const ModelRequest&, const Peer&, const Respond& respond);
  void answer(const PinRequest& request, const Peer&, const Respond& respond);
  std::vector<JournalEntry> recent_entries(CgroupId id, WallTime until) const;
  void record_rows(const HistoryRequest& request, const Respond& respond);
  void full_history(const HistoryRequest& request, CgroupId id, const Respond& respond);
  nlohmann::json fit(const FitRequest& request, const Peer& peer);
  // Rate limit of a verb per user and second: requests that together read this many containers, but
  // at least `fewest` and at most `most` requests.
  struct Share {
    std::size_t containers, fewest, most;
  };
  static const Share kStatusShare, kListShare, kShowShare, kLearnedShare, kFitShare;
  // Counts a request that reads this many containers. Returns an error reply above the limit.
  std::optional<nlohmann::json> refusal(Verb verb, const Peer& peer, const Share& share,
                                        std::size_t containers);
  const std::vector<KnownContainer>& known(std::chrono::seconds duration);
  // Sends the reply of a change once the change is saved.
  void respond_saved(nlohmann::json reply, const Respond& respond);
  nlohmann::json set_mode(const SetModeRequest& request);
  nlohmann::json set_host_mode(std::optional<Mode> mode, bool until_restart);
  nlohmann::json set_own_mode(const std::string& container_name, std::optional<Mode> mode,
                              bool until_restart);
  nlohmann::json set_paused(const std::string& container_name, bool pause);
  // Returns the reasons why cgphase changes nothing, or not everything, in this mode.
  std::vector<std::string> obstacles(const ContainerView& view, Mode mode) const;
  std::vector<std::string> capped_text() const;
  std::string still_pinned(const ContainerView& view) const;
  nlohmann::json restore(const std::string& container_name);
  nlohmann::json restore_all();
  nlohmann::json pin(const PinRequest& request);
  Result<const ContainerView*> container(const std::string& name) const;
  ContainerReport report(const ContainerView& view) const;  // but for `next`
  ContainerReport report_with_next(const ContainerView& view);

  std::optional<double> overhead_cpu_cores() const;

  Agent& agent_;
  const Clock& clock_;
  Agent::Post post_;
  Facts facts_;
  // Answers of `fit` since the last tick, and their forecasts by duration. Neither changes before
  // the next tick.
  MonotonicTime fits_of_;
  std::map<std::string, nlohmann::json> fits_;
  std::map<std::chrono::seconds, std::vector<KnownContainer>> known_;
  // Next phases of the containers that were reported since that tick.
  std::uint64_t next_of_ticks_ = 0;
  std::map<CgroupId, std::vector<NextPhase>> next_;
  // CPU seconds of this process by time, within kOverheadWindow.
  std::deque<std::pair<MonotonicTime, double>> cpu_seconds_;
  // Containers that requests read within a second.
  MonotonicTime asked_since_;
  std::map<std::pair<Verb, uid_t>, std::size_t> asked_;
  bool came_round_ = true;  // the loop handled all due work since that second began
};

}  // namespace cgphase
