// The trial after a lowering, and the values that were normal before.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/safety/usage_tracker.h"

namespace cgphase {

// The recent measures of each phase of one container, collected while no trial runs.
class Baselines {
 public:
  static constexpr std::size_t kTicks = 60;   // the newest ticks per phase
  static constexpr std::size_t kPhases = 33;  // further phases are ignored; a model has at most 32
  static constexpr std::size_t kFewest = 5;   // with fewer ticks there is no median

  void add(const Phase& phase, const Measures& measures);
  static constexpr std::size_t kFewestOfSpread = 20;  // with fewer ticks there is no low value

  std::optional<double> median(const Phase& phase, Measure measure) const;
  // The value that only one tick in twenty is below.
  std::optional<double> low(const Phase& phase, Measure measure) const;

 private:
  // A ring of up to kTicks; NaN: not measured.
  struct Ticks {
    std::vector<std::array<float, kMeasureCount>> ring;
    std::size_t next = 0;
  };
  std::map<int, Ticks> ticks_;  // by phase index
};

class Trial {
 public:
  // Starts when the limit takes effect.
  Trial(const Decision& decision, MonotonicTime begin, std::chrono::nanoseconds length);

  void add(const Phase& phase, const Measures& measures);
  // Phases get another meaning, so there are no baselines to compare with.
  void forget_phase();
  // Whether the trial is long enough and has enough ticks, or has lasted too long without them.
  bool over(MonotonicTime now) const;
  bool measured() const { return stayed() || elsewhere_.size() >= kFewestTicks; }

  struct Judgement {
    bool worse = false;
    std::string detail;
  };
  // Compares the measures that this resource can worsen with their medians in the phase of the
  // decision. If the container left that phase too soon, only the allowances are compared.
  Judgement judge(const Baselines& baselines, const SafetyConfig& config) const;

  // Minimum number of measured ticks.
  static constexpr std::size_t kFewestTicks = 3;

  const Decision& decision() const { return decision_; }

 private:
  static constexpr std::size_t kMostTicks = 4096;
  bool stayed() const { return ticks_.size() >= kFewestTicks; }
  std::optional<double> median(Measure measure) const;

  Decision decision_;
  bool phase_known_ = true;  // whether the phase of the decision still has a meaning
  MonotonicTime begin_;
  std::chrono::nanoseconds length_;
  std::vector<Measures> ticks_;      // in the phase of the decision
  std::vector<Measures> elsewhere_;  // in other phases
};

}  // namespace cgphase
