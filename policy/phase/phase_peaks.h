// The demand that followed each moment in a phase: the forecast of `phase` and `proactive`, by
// counting. A moment is the phase and the age of the visit, optionally with the previous phase.
// This is a semi-Markov forecast with a memory beyond one step. It makes no assumption about
// distributions.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/phase/sliding_maximum.h"

namespace cgphase {

struct PhaseMoment {
  static constexpr int kAny = -1;
  int slot = 0;              // in the sense of phase_record.h
  int previous = kAny;       // slot of the visit before; kAny: any
  int age = 0;               // of this visit; 0: 0-3 samples, 1: 4-7, 2: 8-15 ...
  friend auto operator<=>(const PhaseMoment&, const PhaseMoment&) = default;

  static int age_of(int samples);
};

// The demand that followed such moments. CPU: soon, that is before a change could be detected and
// answered. Memory: while a lowering is in force. Both cover at least DemandBound::kAheadSamples
// samples.
struct PeakAhead {
  double moments = 0;   // number of moments
  double visits = 0;    // number of visits with such moments; moments of one visit are similar
  double cpu_cores = 0, memory_bytes = 0;  // the highest peak; 0: not measured
  // Number of moments that were soon followed by clearly more CPU than at the moment, and the sum
  // of what followed.
  double cpu_jumps = 0, cpu_jump_cores = 0;
  double memory_jumps = 0;  // moments followed by clearly more memory
};

// Ascending by moment, so that everything computed from it has one order.
using PhasePeaks = std::map<PhaseMoment, PeakAhead>;

// The moments of one run, counted as whole numbers. The layout is compact, because each container
// has dozens of them.
class RunMoments {
 public:
  std::optional<PeakAhead> find(const PhaseMoment& moment) const;
  PeakAhead at(const PhaseMoment& moment) const;  // the moment must exist
  bool contains(const PhaseMoment& moment) const { return find(moment).has_value(); }
  bool empty() const { return entries_.empty(); }
  std::size_t size() const { return entries_.size(); }
  operator PhasePeaks() const;

 private:
  friend class PhasePeakRecorder;
  // Encodes the parts of a moment in this order: slot, previous + 1, age.
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
  // The entry of the moment. It is created unless there are `most` entries already.
  Entry* entry_of(const PhaseMoment& moment, std::size_t most);

  std::vector<Entry> entries_;  // ascending
};

// Records the moments of one run, sample by sample.
class PhasePeakRecorder {
 public:
  struct Demand {
    std::optional<double> cpu_cores, memory_bytes;
  };
  // CPU is followed for `soon_seconds`, but at least to the next sample. Memory is followed for
  // `binding_seconds`.
  PhasePeakRecorder(double soon_seconds, double binding_seconds)
      : soon_seconds_(soon_seconds), binding_seconds_(binding_seconds) {}

  // `interval_seconds`: time since the previous sample; 0 for the first and after a gap.
  void add(int slot, double interval_seconds, const Demand& demand);

  // The moment of the sample last added.
  const PhaseMoment& now() const { return now_; }
  // Every moment is recorded with and without (kAny) the previous phase. The last few moments are
  // still open and not included.
  const RunMoments& peaks() const { return peaks_; }
  // All moments of a finished run, including the open ones.
  PhasePeaks of_whole_run() const;

 private:
  // A sample whose moment is still open. The samples after it are behind it in open_. The layout is
  // compact, because each container has a minute of them.
  struct Open {
    Open(const PhaseMoment& at, bool begins, const Demand& demand, double interval);
    PhaseMoment moment() const { return {slot, previous, age}; }
    double interval_seconds;  // since the previous sample
    double cpu_cores, memory_bytes;  // 0 if absent
    std::int8_t slot, previous, age;
    bool first;  // first of its visit
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
  SlidingMaximum peak_bytes_;    // of open_, by sample number
  double seconds_ = 0, front_seconds_ = 0;  // a clock: at the newest of open_ and at the first
  PhaseMoment now_;
  int visit_samples_ = 0;
};

// Keeps the higher peak. Counts add up.
void add_peak(PeakAhead& to, const PeakAhead& other);
// Adds the moments of one run to those of earlier runs.
void merge_peaks(PhasePeaks& earlier, const PhasePeaks& run);

// Errors: invalid (too many moments, a moment or a number out of range).
Status check_peaks(const PhasePeaks& peaks);

}  // namespace cgphase
