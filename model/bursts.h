// Idle and burst of a container's network and GPU: the twelve numbers of Driple (SIGMETRICS'22),
// {GPU utilisation, GPU memory utilisation, transmitted, received bytes} x {idle duration, burst
// duration, burst consumption}. Its rule for cutting is not published; ours is model/two_means.h.
// Pure: time comes with the samples, and the same samples give the same numbers.
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

// In the order in which everybody shows them.
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
// "gpu_utilisation", "idle_seconds": as in JSON.
std::string_view burst_source_name(std::size_t source);
std::string_view burst_number_name(std::size_t number);

// Count, mean and spread of one number (Welford).
struct Moments {
  double count = 0, mean = 0, squares = 0;  // squares: sum of them about the mean
  void add(double value);
  // Sample standard deviation; absent below two values.
  std::optional<double> deviation() const;
};

// One series of one run. `values` is how many there were: where it is 0 nothing tells the series.
struct SeriesBursts {
  double values = 0;
  std::array<Moments, kBurstNumbers> numbers;  // by BurstNumber
};
using RunBursts = std::array<SeriesBursts, kBurstSources>;  // by BurstSource
// Whether any idle time or burst of any series was counted.
bool has_segments(const RunBursts& run);

// Cuts one series into idle and burst segments. A segment counts if both its ends were seen: the
// one that a beginning, a gap, an absent value or the loss of the cut ends or precedes is not
// counted, for it was longer than what was seen of it. Which side a value is on is decided once,
// by the cut that it is the last part of.
class BurstCutter {
 public:
  explicit BurstCutter(double memory = kTwoMeansMemory) : means_(memory) {}

  // The mean of the series over the `seconds` (above 0) that end now.
  void add(double value, double seconds);
  // Nothing is known of the time until the next value.
  void interrupt();

  const SeriesBursts& bursts() const { return bursts_; }
  std::optional<TwoMeans::Cut> cut() const { return means_.cut(); }
  // Of the last value; absent where no cut is claimed and after interrupt().
  std::optional<bool> bursting() const;

 private:
  struct Segment {
    bool burst = false, begin_seen = false;
    double seconds = 0, consumption = 0;
  };
  void count(const Segment& segment);

  TwoMeans means_;
  std::optional<Segment> segment_;
  std::optional<double> last_;  // value before, where nothing lies between
  SeriesBursts bursts_;
};

// The four series of one container, from its samples: rates only where the counter did not fall,
// none over a gap of more than three sampling intervals, a backward step or another cgroup.
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
  double interval_seconds_ = 0;  // how far apart samples usually are; 0 = not known yet
  NetworkStat last_network_;
};

// {"gpu_utilisation": {"idle_seconds": {"count","mean","sd"}, ...}, ...}; null for a series that
// nothing tells, null for a mean of nothing and a spread of less than two.
nlohmann::json bursts_to_json(const RunBursts& bursts);

}  // namespace cgphase
