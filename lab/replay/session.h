// One call of `cgphase replay`, from its arguments to its report and pictures.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "lab/replay/contest.h"
#include "lab/replay/lineup.h"
#include "lab/replay/recorded.h"
#include "lab/replay/report.h"
#include "lab/replay/sweep_plan.h"

namespace cgphase {

// The arguments.
struct ReplayRequest {
  RecordedPaths paths;
  bool model_named = false;           // otherwise the model may be missing
  LineupOptions lineup;
  ReplaySettings settings;
  std::vector<std::string> compared;  // two policies, or none
  std::vector<std::string> assertions;
  std::string directory;              // directory of the pictures; empty: none
  BootstrapOptions bootstrap;
};

class ReplaySession {
 public:
  // Checks the arguments only. Errors: invalid; the text begins with the option.
  static Result<ReplaySession> create(const ReplayRequest& request);

  // Reads and replays everything, and evaluates the assertions. Errors: those of read_recorded();
  // invalid, if a policy that was named cannot run.
  Result<ReplayReport> run();

  // After run(): what `all` leaves out and why; empty if nothing.
  std::string left_out() const;
  // After run(): a sentence if the model was trained on what is replayed. Empty if its provenance
  // names no such trace, or if no policy uses phases.
  std::string model_knows() const;
  // After run(): writes the pictures. Returns the names of earlier ones that it cannot remove.
  // Errors: io, denied.
  Result<std::vector<std::string>> draw() const;

 private:
  // A plan and the indices of its entrants in the contest.
  struct EnteredPlan {
    SweepPlan plan;
    std::vector<std::size_t> places;
  };

  explicit ReplaySession(const ReplayRequest& request) : request_(request) {}
  Status take_words();
  Status read();
  void enter();
  Status take_results(ReplayReport& report) const;
  Status compare_sweeps(ReplayReport& report) const;
  ReplayReport empty_report() const;
  // Why a policy cannot run; empty if it can.
  std::string why_not(std::size_t entrant) const;
  bool asks_for_phases() const;
  bool lacks_model(const PolicySpec& policy) const;
  std::optional<double> value(const MeasureName& name) const;
  Result<Sweep> sweep_of(const EnteredPlan& entered) const;
  std::string source_name() const;

  ReplayRequest request_;
  Lineup lineup_;
  Recorded recorded_;
  Contest contest_;
  std::vector<std::size_t> places_;  // of the lineup's entrants
  std::vector<EnteredPlan> compared_;
};

}  // namespace cgphase
