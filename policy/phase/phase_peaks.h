// What the samples after a moment in a phase reached: the forecast of `phase` and `proactive`, by
// counting. A moment is told by the phase and the time that the visit lasts already, and more
// closely by the phase before it as well: a semi-Markov forecast with a memory beyond one step,
// without an assumption on its distributions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/phase/sliding_maximum.h"

namespace cgphase {

struct PhaseMoment {
  static constexpr int kAny = -1;
  int slot = 0;              // of phase_record.h
  int previous = kAny;       // slot of the visit before; kAny: whichever
  int age = 0;               // of this visit. 0: 0-3 samples, 1: 4-7, 2: 8-15 ...
  friend auto operator<=>(const PhaseMoment&, const PhaseMoment&) = default;

  static int age_of(int samples);
};

// What followed such moments: CPU soon, that is before a change could be seen and answered, memory
// for as long as a lowering of it binds, and DemandBound::kAheadSamples samples at least.
struct PeakAhead {
  double moments = 0;   // counted
  double visits = 0;    // that had such moments: those of one visit say about the same
  double cpu_cores = 0, memory_bytes = 0;  // the highest peak; 0 where nothing was measured
  // Moments that were soon followed by clearly more CPU than there was at them, and the sum of what
  // came.
  double cpu_jumps = 0, cpu_jump_cores = 0;
  double memory_jumps = 0;  // moments that were followed by clearly more memory
};

// Ascending by moment, so that whatever is made of it has one order.
using PhasePeaks = std::map<PhaseMoment, PeakAhead>;

// Those of one run, where all is counted in whole moments: narrow and side by side, for there
// are dozens for each container.
class RunMoments {
 public:
  std::optional<PeakAhead> find(const PhaseMoment& moment) const;
  PeakAhead at(const PhaseMoment& moment) const;  // there is one
  bool contains(const PhaseMoment& moment) const { return find(moment).has_value(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  operator PhasePeaks() const;

 private:
  friend class PhasePeakRecorder;
  // Of what may be a moment, in this order: slot, previous + 1, age.
  using Key = std::uint32_t;
  static Key key_of(const PhaseMoment& moment);
  static PhaseMoment moment_of(Key key);
  struct Entry {
    Key key;
    std::uint32_t moments = 0, visits = 0, cpu_jumps = 0, memory_jumps = 0;
    double cpu_cores = 0, memory_bytes = 0, cpu_jump_cores = 0;
  };
  static PeakAhead peak_of(const Entry& entry);
  std::vector<Entry>::const_iterator place_of(Key key) const;
  // That of the moment, made where there is none and not `most` of them.
  Entry* entry_of(const PhaseMoment& moment, std::size_t most);

  std::vector<Entry> entries_;  // ascending
};

// Of one run, sample by sample.
class PhasePeakRecorder {
 public:
  struct Demand {
    std::optional<double> cpu_cores, memory_bytes;
  };
  // What comes within `soon_seconds`, or with the next sample, comes soon. Memory is looked at for
  // `binding_seconds`.
  PhasePeakRecorder(double soon_seconds, double binding_seconds)
      : soon_seconds_(soon_seconds), binding_seconds_(binding_seconds) {}

  // `interval_seconds` since the previous sample; 0 for the first and after a gap.
  void add(int slot, double interval_seconds, const Demand& demand);

  // The moment of the sample last added.
  const PhaseMoment& now() const { return now_; }
  // Told with the phase before and without it (kAny). The last few moments are still open and not
  // in it.
  const RunMoments& peaks() const { return peaks_; }
  // The same of a run that is over: nothing more follows those.
  PhasePeaks of_whole_run() const;

 private:
  // A sample whose moment is not over. What followed it are those behind it in open_.
  // Narrow, for each container has a minute of them.
  struct Open {
    Open(const PhaseMoment& at, bool begins, const Demand& demand, double interval);
    PhaseMoment moment() const { return {slot, previous, age}; }
    double interval_seconds;  // since the one before it
    double cpu_cores, memory_bytes;  // 0 where absent
    std::int8_t slot, previous, age;
    bool first;  // of its visit
    bool has_cores, has_bytes;
  };
  void close_front();
  void forget_open();
  bool front_over() const;
  double soon_cores() const;

  double soon_seconds_, binding_seconds_;
  RunMoments peaks_;
  std::deque<Open> open_;
  double number_ = 0;            // of the newest sample
  SlidingMaximum peak_bytes_;    // of open_, by number
  double seconds_ = 0, front_seconds_ = 0;  // of a clock: at the newest of open_, and at the first
  PhaseMoment now_;
  int visit_samples_ = 0;
};

// The highest of both; counts add up.
void add_peak(PeakAhead& to, const PeakAhead& other);
// Adds what one run saw to what earlier ones did.
void merge_peaks(PhasePeaks& earlier, const PhasePeaks& run);

nlohmann::json peaks_to_json(const PhasePeaks& peaks);
// Errors: invalid, naming what is wrong.
Result<PhasePeaks> peaks_from_json(const nlohmann::json& json);

}  // namespace cgphase
