// Measures idle times and bursts of a container's network and GPU. These are the twelve numbers of
// Driple (SIGMETRICS'22): {GPU utilisation, GPU memory utilisation, transmitted, received bytes} x
// {idle duration, burst duration, burst consumption}. Driple's rule for the cut is not published;
// ours is in model/two_means.h. Pure: time comes with the samples, and the same samples give the
// same numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string_view>

#include "collectors/sample.h"
#include "model/two_means.h"

namespace cgphase {

// In the order in which they are printed.
enum class BurstSource : std::uint8_t {
  gpu_utilisation,         // ratio, 1 = one GPU
  gpu_memory_utilisation,  // ratio
  network_transmit,        // bytes per second
  network_receive,         // bytes per second
};
inline constexpr std::size_t kBurstSources = 4;
enum class BurstNumber : std::uint8_t {
  idle_seconds,
  burst_seconds,
  burst_consumption,  // value x seconds of one burst: GPU seconds, or bytes
};
inline constexpr std::size_t kBurstNumbers = 3;
// The JSON names, such as "gpu_utilisation" and "idle_seconds".
std::string_view burst_source_name(std::size_t source);
std::string_view burst_number_name(std::size_t number);

// Count, mean and spread of one number (Welford).
struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: sum of squared deviations
  void add(double value);
  // Sample standard deviation; absent for fewer than two values.
  std::optional<double> deviation() const;
};

// One series of one run. `values` counts its values; 0 means that the series was not measured.
struct SeriesBursts {
  double values = 0;
  std::array<Moments, kBurstNumbers> numbers;  // by BurstNumber
};
using RunBursts = std::array<SeriesBursts, kBurstSources>;  // by BurstSource
// True if any idle time or burst of any series was counted.
bool has_segments(const RunBursts& run);

// Cuts one series into idle and burst segments. A segment counts only if both its ends were seen.
// Otherwise it was longer than its visible part: the series began or ended there, or there was a
// gap, an absent value, or no cut. The side of a value is decided once, by the cut that includes it
// as the newest value.
class BurstCutter {
 public:
  explicit BurstCutter(double memory = kTwoMeansMemory) : means_(memory) {}

  // Adds the mean of the series over the last `seconds` (above 0).
  void add(double value, double seconds);
  // Marks the time until the next value as unknown.
  void interrupt();

  const SeriesBursts& bursts() const { return bursts_; }
  std::optional<TwoMeans::Cut> cut() const { return means_.cut(); }
  // Whether the last value is in a burst; absent if there is no cut and after interrupt().
  std::optional<bool> bursting() const;

 private:
  struct Segment {
    bool burst = false, begin_seen = false;
    double seconds = 0, consumption = 0;
  };
  void count(const Segment& segment);

  TwoMeans means_;
  std::optional<Segment> segment_;
  std::optional<double> last_;  // the previous value, if nothing is missing since then
  SeriesBursts bursts_;
};

// The four series of one container, from its samples. A rate exists only if the counter did not
// fall. There is none over a gap of more than three sampling intervals, a backward step or another
// cgroup.
class BurstMeter {
 public:
  void add(const Sample& sample, MonotonicTime time);
  RunBursts bursts() const;
  const BurstCutter& cutter(BurstSource source) const {
    return cutters_[static_cast<std::size_t>(source)];
  }

 private:
  std::array<BurstCutter, kBurstSources> cutters_;
  bool started_ = false;
  CgroupId id_;
  MonotonicTime last_time_;
  double interval_seconds_ = 0;  // usual interval between samples; 0 = not known yet
  NetworkStat last_network_;
};

// {"gpu_utilisation": {"idle_seconds": {"count","mean","sd"}, ...}, ...}. A series without values
// is null. So is a mean without values, and a deviation of fewer than two.
nlohmann::json bursts_to_json(const RunBursts& bursts);

}  // namespace cgphase
