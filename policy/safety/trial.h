// The time after a lowering in which it must prove harmless, and what was normal before.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "policy/safety/rail_senses.h"

namespace cgphase {

// The recent measures of each phase of one container, taken while no trial ran.
class Baselines {
 public:
  static constexpr std::size_t kTicks = 60;   // the newest, per phase
  static constexpr std::size_t kPhases = 33;  // more are not kept; a model has at most 32
  static constexpr std::size_t kFewest = 5;   // fewer ticks have no median

  void add(const Phase& phase, const Measures& measures);
  static constexpr std::size_t kFewestOfSpread = 20;  // fewer tell little of how low it goes

  std::optional<double> median(const Phase& phase, Measure measure) const;
  // What only one tick in twenty is below.
  std::optional<double> low(const Phase& phase, Measure measure) const;

 private:
  // A ring of kTicks, as long as needed; not a number: not measured.
  struct Ticks {
    std::vector<std::array<float, kMeasureCount>> ring;
    std::size_t next = 0;
  };
  std::map<int, Ticks> ticks_;  // by phase index
};

class Trial {
 public:
  // Begins when the limit was in force.
  Trial(const Decision& decision, MonotonicTime begin, std::chrono::nanoseconds length);

  void add(const Phase& phase, const Measures& measures);
  // Phases have other meanings from now on: what was measured has none to be compared with.
  void forget_phase();
  // Long enough, and seen often enough; or so long without that it must end.
  bool over(MonotonicTime now) const;
  bool measured() const { return stayed() || elsewhere_.size() >= kFewestTicks; }

  struct Judgement {
    bool worse = false;
    std::string detail;
  };
  // The measures that this resource can hurt, against their median in the phase it began in. Where
  // the container left that phase too soon there is nothing to compare with but the allowances.
  Judgement judge(const Baselines& baselines, const RailsConfig& config) const;

  // Ticks that tell something.
  static constexpr std::size_t kFewestTicks = 3;

  const Decision& decision() const { return decision_; }

 private:
  static constexpr std::size_t kMostTicks = 4096;
  bool stayed() const { return ticks_.size() >= kFewestTicks; }
  std::optional<double> median(Measure measure) const;

  Decision decision_;
  bool phase_known_ = true;  // that of the decision
  MonotonicTime begin_;
  std::chrono::nanoseconds length_;
  std::vector<Measures> ticks_;      // in the phase it began in
  std::vector<Measures> elsewhere_;  // in others
};

}  // namespace cgphase
