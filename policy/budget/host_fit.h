// Whether a job fits into the free capacity of a host: the peak demand of all others while it runs,
// against the capacity (docs/operations.md). Pure; the same numbers give the same bits.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "model/forecast.h"

namespace cgphase {

// The peak of one container for one resource is at most `value` with this probability.
struct PeakLevel {
  double value = 0, probability = 1;
};
using Peak = std::vector<PeakLevel>;  // ascending; probabilities add up to 1

// An upper bound that the sum of independent peaks exceeds with probability `risk` at most. The
// result is at most `capacity`. It is a convolution on a grid of kFitBins; demand above the lowest
// level is rounded up to a bin. Time: peaks x levels x bins.
inline constexpr int kFitBins = 4096;
double sum_of_peaks(std::span<const Peak> peaks, double capacity, double risk);

// The source of a number.
enum class PeakBasis : std::uint8_t { forecast, limit, highest_seen, nothing };
const char* to_string(PeakBasis basis);

struct FitDemand {
  std::string name;
  Peak cpu_cores, memory_bytes;
  PeakBasis cpu_basis = PeakBasis::nothing, memory_basis = PeakBasis::nothing;
};

// Computes a container's demand. With a forecast: its peak, and with the forecast's risk the whole
// limit (the host's capacity without a limit). Without a forecast: its limit, else the highest use
// seen.
struct KnownContainer {
  std::string name;
  std::optional<Forecast> forecast;
  Limits original;
  AncestorLimits ancestor_limits = {};  // by the ancestor cgroups
  std::optional<double> highest_cpu_cores, highest_memory_bytes;
};
FitDemand demand_of(const KnownContainer& container, const HostCapacity& host);

struct FitQuestion {
  double cpu_cores = 0, memory_bytes = 0;
  std::chrono::seconds duration{0};
  double risk = 0.01;  // probability that a resource runs short while the job runs; for each
                       // resource
};
inline constexpr std::chrono::seconds kLongestFit = std::chrono::hours(24 * 30);

struct FitHost {
  HostCapacity capacity;
  std::optional<double> outside_cpu_cores, outside_memory_bytes;  // used outside of containers
};
// This share of each resource always stays free.
inline constexpr double kFitReserve = 0.05;

// A change of phase with a probability above one half, after which there is room for the whole job.
struct ExpectedChange {
  std::string name;
  double probability = 0;
  std::chrono::seconds in{0};
};

struct FitAnswer {
  FitQuestion question;
  FitHost host;
  bool fits = false;
  double free_cpu_cores = 0, free_memory_bytes = 0;
  double containers_cpu_cores = 0, containers_memory_bytes = 0;  // peak demand at once
  std::optional<std::chrono::seconds> fits_for;  // a shorter duration for which it would fit
  // The first change after which the job would fit until it ends. It counts the need of each
  // changed container in its next and later phases, and the demand of all others. Absent if no such
  // change is expected.
  std::optional<ExpectedChange> change;
  std::vector<FitDemand> demands;
};

// `known(duration)` returns all containers with forecasts over that duration. It is called at most
// seven times, and its results are evaluated at most fourteen times.
FitAnswer answer_fit(
    const FitQuestion& question, const FitHost& host,
    const std::function<std::vector<KnownContainer>(std::chrono::seconds)>& known);

}  // namespace cgphase
