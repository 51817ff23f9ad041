// What is known of each phase of one container or one image: how much it needs, how long it lasts
// and what follows. The statistics of policy `phase`, and what it passes on to later runs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "base/result.h"
#include "policy/phase/histogram.h"

namespace cgphase {

// A slot is a phase index, or the last one for every step in which the phase was not known: the
// unknown has needs and successors as well.
inline constexpr int kPhaseSlots = 33;  // a model has at most 32 phases
inline constexpr int kUnknownSlot = kPhaseSlots - 1;

// How often a phase went on to each slot: mostly to one or two of them.
class Successors {
 public:
  struct Entry {
    std::uint8_t slot;
    double count;
  };
  double operator[](std::size_t slot) const;  // 0 where it never did
  double& operator[](std::size_t slot);
  // Ascending; those it went on to, and perhaps others.
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
  Successors next;                  // visits that went on to that slot
  int runs = 0;                     // runs that saw this phase

  double departures() const;
  bool departed() const;  // there are any
};

// Ascending by slot, so that every sum over it has one order.
using PhaseRecords = std::map<int, PhaseRecord>;

// Probability that each slot is visited within `horizon_seconds`, for a container that has been in
// `slot` for `age_seconds`: 1 for `slot` itself. A semi-Markov chain over the recorded dwell times
// and successors, followed over three changes, each granted the whole horizon: an upper bound.
// A visit longer than any before it is taken to end at any moment.
std::array<double, kPhaseSlots> visit_probabilities(const PhaseRecords& records, int slot,
                                                    double age_seconds, double horizon_seconds);

// How much longer visits of that age usually last: the median; absent where none lasted so long.
std::optional<double> usual_rest(const PhaseRecord& record, double age_seconds);

// Adds `other`, its weights scaled by `factor`; runs add up unscaled.
void merge_records(PhaseRecords& records, const PhaseRecords& other, double factor);

nlohmann::json records_to_json(const PhaseRecords& records);
// Errors: invalid, naming what is wrong.
Result<PhaseRecords> records_from_json(const nlohmann::json& json);

}  // namespace cgphase
