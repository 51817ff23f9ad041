// What the samples after a moment in a phase reached: the forecast of `phase` and `proactive`, by
// counting. A moment is told by the phase and the time that the visit lasts already, and more
// closely by the phase before it as well: a semi-Markov forecast with a memory beyond one step,
// without an assumption on its distributions.
#pragma once

#include <compare>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "base/result.h"

namespace cgphase {

struct PhaseMoment {
  static constexpr int kAny = -1;
  int slot = 0;              // of phase_record.h
  int previous = kAny;       // slot of the visit before; kAny: whichever
  int age = 0;               // of this visit. 0: 0-3 samples, 1: 4-7, 2: 8-15 ...
  friend auto operator<=>(const PhaseMoment&, const PhaseMoment&) = default;

  static int age_of(int samples);
};

// Of the next DemandBound::kAheadSamples samples after such moments.
struct PeakAhead {
  double moments = 0;   // counted
  double cpu_cores = 0, memory_bytes = 0;  // the highest peak; 0 where nothing was measured
};

// Ascending by moment, so that whatever is made of it has one order.
using PhasePeaks = std::map<PhaseMoment, PeakAhead>;

// Of one run, sample by sample.
class PhasePeakRecorder {
 public:
  struct Demand {
    std::optional<double> cpu_cores, memory_bytes;
  };
  // `follows` is false for the first sample and after a gap.
  void add(int slot, bool follows, const Demand& demand);

  // The moment of the sample last added.
  const PhaseMoment& now() const { return now_; }
  // Told with the phase before and without it (kAny). The last few moments are still open and not
  // in it.
  const PhasePeaks& peaks() const { return peaks_; }

 private:
  struct Open {
    PhaseMoment moment;
    Demand peak;
    int samples = 0;  // that followed
  };
  void close(const Open& open);

  PhasePeaks peaks_;
  std::deque<Open> open_;
  PhaseMoment now_;
  int visit_samples_ = 0;
};

// Adds what one run saw to what earlier ones did.
void merge_peaks(PhasePeaks& earlier, const PhasePeaks& run);

nlohmann::json peaks_to_json(const PhasePeaks& peaks);
// Errors: invalid, naming what is wrong.
Result<PhasePeaks> peaks_from_json(const nlohmann::json& json);

}  // namespace cgphase
