// Statistics of each phase of one container or image: its demand, its duration and its successors.
// Policy `phase` uses them and passes them on to later runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/phase/histogram.h"

namespace cgphase {

// A slot is a phase index. The last slot is for all steps with an unknown phase, which has
// demand and successors, too.
inline constexpr int kPhaseSlots = 33;  // a model has at most 32 phases
inline constexpr int kUnknownSlot = kPhaseSlots - 1;

// How often each slot followed a phase. Mostly only one or two did.
class Successors {
 public:
  struct Entry {
    std::uint8_t slot;
    double count;
  };
  double operator[](std::size_t slot) const;  // 0 if it never followed
  double& operator[](std::size_t slot);
  // Ascending by slot; may include slots that never followed.
  std::vector<Entry>::const_iterator begin() const { return entries_.begin(); }
  std::vector<Entry>::const_iterator end() const { return entries_.end(); }

 private:
  std::vector<Entry> entries_;
};

struct PhaseRecord {
  PhaseRecord();
  DecayingHistogram cpu_cores;
  DecayingHistogram memory_bytes;  // need
  DecayingHistogram dwell_seconds;  // of completed visits
  Successors next;                  // visits followed by that slot
  int runs = 0;                     // runs that saw this phase

  double departures() const;
  bool departed() const;  // whether there are any
};

// Ascending by slot, so that every sum has one order.
using PhaseRecords = std::map<int, PhaseRecord>;

// Probability that each slot is visited within `horizon_seconds`, for a container that has been in
// `slot` for `age_seconds`. It is 1 for `slot` itself. This is a semi-Markov chain over the
// recorded dwell times and successors. It follows three changes and allows each the whole horizon,
// so it is an upper bound. A visit longer than any recorded one is assumed to end at any moment.
std::array<double, kPhaseSlots> visit_probabilities(const PhaseRecords& records, int slot,
                                                    double age_seconds, double horizon_seconds);

// The median remaining time of visits of that age. Absent if no visit lasted that long.
std::optional<double> usual_rest(const PhaseRecord& record, double age_seconds);

// The record as it is stored (histogram.h).
PhaseRecord without_times(const PhaseRecord& record);

// Adds `other` with its weights scaled by `factor`. The numbers of runs are not scaled.
void merge_records(PhaseRecords& records, const PhaseRecords& other, double factor);

// Errors: invalid (a slot, a count or a weight out of range).
Status check_records(const PhaseRecords& records);

}  // namespace cgphase
