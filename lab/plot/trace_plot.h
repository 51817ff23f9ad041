// Draws executions of a trace: CPU and memory over time with their limits, and the phases below.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lab/plot/envelope.h"
#include "lab/plot/phase_lane.h"
#include "model/feature_extractor.h"
#include "model/model.h"
#include "model/phase.h"
#include "traces/trace.h"

namespace cgphase {

inline constexpr std::size_t kMostPlottedExecutions = 8;
inline constexpr std::size_t kMostPlottedPolicies = 3;

// Limits that a policy would have set, over time.
struct PlottedLimits {
  Envelope cores, gib;
};

// Time span of the rows of an execution. It must be known before any row is drawn.
struct PlotSpan {
  MonotonicTime first, last;  // the earliest and the latest of all rows
  WallTime start;             // of the first row in the file
  std::size_t rows = 0;

  void add(const TraceRow& row);
};

// Curves of one execution, built row by row; rows are not stored.
class PlottedExecution {
 public:
  // `span` has at least one row.
  PlottedExecution(const ExecutionHeader& execution, const PlotSpan& span);

  // `phase` is an index or a constant of phase_lane.h.
  void add(const TraceRow& row, int phase);
  // Limits of policy number `policy` (below kMostPlottedPolicies) in force from `time` on; absent
  // if nothing was measured.
  void add_limits(std::size_t policy, MonotonicTime time, std::optional<double> cores,
                  std::optional<double> bytes);

  const std::string& id() const { return id_; }
  const std::string& service() const { return service_; }
  const PlotSpan& span() const { return span_; }
  double seconds() const { return seconds_; }  // from the earliest row to the latest
  const Lane& lane() const { return lane_; }
  const Envelope& cores() const { return cores_; }
  const Envelope& core_limit() const { return core_limit_; }
  const Envelope& gib() const { return gib_; }  // memory need
  const Envelope& gib_limit() const { return gib_limit_; }
  std::span<const PlottedLimits> policies() const { return policies_; }

 private:
  std::string id_, service_;
  PlotSpan span_;
  double seconds_;
  Lane lane_;
  Envelope cores_, core_limit_, gib_, gib_limit_;
  std::vector<PlottedLimits> policies_;
  FeatureExtractor extractor_;
};

struct TracePlot {
  std::string kind = "Trace";  // kind of `source`
  std::string source;       // the trace's name, not escaped
  std::string phase_source; // "phases of model M", not escaped
  std::vector<std::string> phase_names;  // by index, not escaped; "": use the letter
  std::vector<std::string> policies;     // policies whose limits are drawn, not escaped
  std::string nothing_name = "not enough history";
  std::vector<PlottedExecution> executions;  // at most kMostPlottedExecutions
  std::size_t total = 0;                     // number of executions in the trace
};

// Returns the mark of a phase in the lane.
int lane_phase(const Phase& phase);
// Returns the use of each phase in training, relative to the limits: "(CPU 41 %, memory 52 %)"; ""
// if the model does not contain it.
std::vector<std::string> phase_names_of(const Model& model);

// Returns the SVG. Its size is bounded for any number of rows: each line has at most two points per
// two pixels.
std::string draw_trace(const TracePlot& plot);

}  // namespace cgphase
