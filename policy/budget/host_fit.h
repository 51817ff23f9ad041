// Whether a job fits into what is really free on a host: what all others may need at once while it
// runs, against what the host has (docs/operations.md). Pure; the same numbers give the same bits.
#pragma once

#include <chrono>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cgroupfs/limits.h"
#include "collectors/sample.h"
#include "model/forecast.h"

namespace cgphase {

// The most that one container may need of one resource: at most `value` with this probability.
struct PeakLevel {
  double value = 0, probability = 1;
};
using Peak = std::vector<PeakLevel>;  // ascending; probabilities add up to 1

// An upper bound of what the sum of independent peaks passes with at most `risk`; `capacity` where
// it is that or more. Convolution on a grid of kFitBins: what each may need beyond its lowest level
// is rounded up to a bin. Time: peaks x levels x bins.
inline constexpr int kFitBins = 4096;
double sum_of_peaks(std::span<const Peak> peaks, double capacity, double risk);

// Where a number comes from.
enum class PeakBasis : std::uint8_t { forecast, limit, highest_seen, nothing };
const char* to_string(PeakBasis basis);

struct FitDemand {
  std::string name;
  Peak cpu_cores, memory_bytes;
  PeakBasis cpu_basis = PeakBasis::nothing, memory_basis = PeakBasis::nothing;
};

// What is known of a container, as its demand: the forecast's peak, or with its risk all of its
// limit (of the host where it has none); without a forecast its limit, else the highest use seen.
struct KnownContainer {
  std::string name;
  std::optional<Forecast> forecast;
  Limits original;
  Granted granted = {};  // by the cgroups around it
  std::optional<double> highest_cpu_cores, highest_memory_bytes;
};
FitDemand demand_of(const KnownContainer& container, const HostCapacity& host);

struct FitQuestion {
  double cpu_cores = 0, memory_bytes = 0;
  std::chrono::seconds duration{0};
  double risk = 0.01;  // that a resource runs short while the job runs; of either resource
};
inline constexpr std::chrono::seconds kLongestFit = std::chrono::hours(24 * 30);

struct FitHost {
  HostCapacity capacity;
  std::optional<double> outside_cpu_cores, outside_memory_bytes;  // used outside of containers
};
// Kept free always: this share of either resource.
inline constexpr double kFitReserve = 0.05;

// A change of a phase, more likely than not, from which on there is room for the job's duration.
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
  double containers_cpu_cores = 0, containers_memory_bytes = 0;  // what they may need at once
  std::optional<std::chrono::seconds> fits_for;  // a shorter time that it would fit for
  // The first from which on the job would fit until it ends, by what each container needs that
  // changed by then, in its next phase and in those after it, and what the others may need; absent
  // where none is foreseen.
  std::optional<ExpectedChange> change;
  std::vector<FitDemand> demands;
};

// `known(duration)`: all containers with their forecasts over so long; asked at most seven times,
// and what it says is weighed at most fourteen times.
FitAnswer answer_fit(
    const FitQuestion& question, const FitHost& host,
    const std::function<std::vector<KnownContainer>(std::chrono::seconds)>& known);

// {"schema":1, "fits", "sentence", ...}.
nlohmann::json to_json(const FitAnswer& answer);

}  // namespace cgphase
