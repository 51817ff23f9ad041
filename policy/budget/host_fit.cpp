#include "policy/budget/host_fit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "policy/ceiling.h"

namespace cgphase {
namespace {

using std::chrono::seconds;

using Known = std::function<std::vector<KnownContainer>(seconds)>;

constexpr int kShorterTries = 5;
constexpr seconds kShortestTry{60};
constexpr std::size_t kMostChanges = 8;  // maximum number of changes examined

Peak certain(double value) { return {{value, 1}}; }

// At most `peak` with probability 1 - risk, else up to the ceiling.
Peak forecast_peak(double peak, double risk, double ceiling) {
  if (!(peak < ceiling)) return certain(ceiling);
  risk = std::clamp(risk, 0.0, 1.0);
  return {{peak, 1 - risk}, {ceiling, risk}};
}

Peak peak_of(std::optional<double> forecast, double risk, std::optional<double> limit,
             std::optional<double> highest, double host, PeakBasis& basis) {
  basis = forecast  ? PeakBasis::forecast
          : limit   ? PeakBasis::limit
          : highest ? PeakBasis::highest_seen
                    : PeakBasis::nothing;
  const double ceiling = std::min(limit.value_or(host), host);
  if (forecast) return forecast_peak(*forecast, risk, ceiling);
  return certain(std::min(limit ? *limit : highest.value_or(0), host));
}

template <class Unit>
std::optional<double> number(const std::optional<Unit>& value) {
  return value ? std::optional(static_cast<double>(value->value)) : std::nullopt;
}

double lowest_level(const Peak& peak) { return peak.empty() ? 0 : peak.front().value; }

double used_by(const std::vector<FitDemand>& demands, Peak FitDemand::* resource, double capacity,
               double risk) {
  std::vector<Peak> peaks;
  for (const FitDemand& demand : demands) peaks.push_back(demand.*resource);
  return sum_of_peaks(peaks, capacity, risk);
}

// Computes everything that depends on one duration.
void weigh(FitAnswer& answer, const std::vector<KnownContainer>& containers) {
  const HostCapacity& capacity = answer.host.capacity;
  const double memory = static_cast<double>(capacity.memory.value);
  const double risk = answer.question.risk;
  answer.demands.clear();
  for (const KnownContainer& container : containers)
    answer.demands.push_back(demand_of(container, capacity));
  answer.containers_cpu_cores =
      used_by(answer.demands, &FitDemand::cpu_cores, capacity.cpu_cores, risk);
  answer.containers_memory_bytes =
      used_by(answer.demands, &FitDemand::memory_bytes, memory, risk);
  answer.free_cpu_cores =
      std::max(0.0, capacity.cpu_cores * (1 - kFitReserve) - answer.containers_cpu_cores -
                        answer.host.outside_cpu_cores.value_or(0));
  answer.free_memory_bytes =
      std::max(0.0, memory * (1 - kFitReserve) - answer.containers_memory_bytes -
                        answer.host.outside_memory_bytes.value_or(0));
  answer.fits = answer.question.cpu_cores <= answer.free_cpu_cores &&
                answer.question.memory_bytes <= answer.free_memory_bytes;
}

// The next phase of a container, if its probability is above one half and its time is known.
struct LikelyChange {
  std::size_t container = 0;
  Forecast::Next next;
};

std::vector<LikelyChange> likely_changes(const std::vector<KnownContainer>& containers) {
  constexpr double kLikely = 0.5;
  std::vector<LikelyChange> changes;
  for (std::size_t i = 0; i < containers.size(); ++i) {
    if (!containers[i].forecast) continue;
    const auto& next = containers[i].forecast->next;  // most probable first
    if (!next.empty() && next.front().probability > kLikely && next.front().in.count() > 0)
      changes.push_back({i, next.front()});
  }
  std::ranges::stable_sort(changes, {}, [](const LikelyChange& change) { return change.next.in; });
  return changes;
}

// Moves one container after the other into its next phase. A job that begins with the last change
// ends a whole duration later, so all forecasts must reach that far.
std::optional<ExpectedChange> change_with_room(const FitAnswer& answer,
                                               const std::vector<KnownContainer>& now,
                                               const Known& known) {
  std::vector<LikelyChange> changes = likely_changes(now);
  if (changes.size() > kMostChanges) changes.resize(kMostChanges);
  if (changes.empty()) return std::nullopt;
  std::vector<KnownContainer> later = known(answer.question.duration + changes.back().next.in);
  for (const auto& [place, next] : changes) {
    Forecast& forecast = later[place].forecast.value();
    const auto then = std::ranges::find(forecast.next, next.phase, &Forecast::Next::phase);
    if (then == forecast.next.end()) continue;
    if (then->cpu_peak) forecast.cpu_peak = then->cpu_peak;
    if (then->memory_peak) forecast.memory_peak = then->memory_peak;
    FitAnswer room{.question = answer.question, .host = answer.host, .demands = {}};
    weigh(room, later);
    if (room.fits) return ExpectedChange{later[place].name, next.probability, next.in};
  }
  return std::nullopt;
}

}  // namespace

double sum_of_peaks(std::span<const Peak> peaks, double capacity, double risk) {
  if (!(capacity > 0)) return 0;
  double lowest = 0;
  std::array<double, kFitBins + 1> beyond{};  // the last bin: capacity or more
  beyond[0] = 1;
  for (const Peak& peak : peaks) {
    const double base = lowest_level(peak);
    lowest += base;
    if (peak.size() < 2) continue;
    std::array<double, kFitBins + 1> sum{};
    for (const PeakLevel& level : peak) {
      const double steps = std::ceil((level.value - base) / capacity * kFitBins);
      const auto shift = static_cast<std::size_t>(std::clamp(steps, 0.0, double{kFitBins}));
      const std::size_t within = kFitBins - shift;
      for (std::size_t bin = 0; bin < within; ++bin)
        sum[bin + shift] += beyond[bin] * level.probability;
      for (std::size_t bin = within; bin <= kFitBins; ++bin)
        sum[kFitBins] += beyond[bin] * level.probability;
    }
    beyond = sum;
  }
  double above = 0;
  std::size_t bin = kFitBins;
  while (bin > 0 && above + beyond[bin] <= risk) above += beyond[bin--];
  return std::min(capacity, lowest + static_cast<double>(bin) * capacity / kFitBins);
}

const char* to_string(PeakBasis basis) {
  switch (basis) {
    case PeakBasis::forecast: return "forecast";
    case PeakBasis::limit: return "limit";
    case PeakBasis::highest_seen: return "highest use seen";
    case PeakBasis::nothing: return "not measured yet";
  }
  return "";
}

FitDemand demand_of(const KnownContainer& container, const HostCapacity& host) {
  FitDemand demand{.name = container.name, .cpu_cores = {}, .memory_bytes = {}};
  const std::optional<Forecast>& forecast = container.forecast;
  const double risk = forecast ? forecast->risk : 0;
  HostCapacity room = host;
  room.ancestor_limits = container.ancestor_limits;
  const AncestorLimits most = within_host(room);
  demand.cpu_cores =
      peak_of(forecast ? number(forecast->cpu_peak) : std::nullopt, risk,
              number(container.original.cpu_cores()), container.highest_cpu_cores, most.cpu_cores,
              demand.cpu_basis);
  demand.memory_bytes =
      peak_of(forecast ? number(forecast->memory_peak) : std::nullopt, risk,
              number(container.original.memory_bytes()), container.highest_memory_bytes,
              most.memory_bytes, demand.memory_basis);
  return demand;
}

FitAnswer answer_fit(const FitQuestion& question, const FitHost& host, const Known& known) {
  FitAnswer answer{.question = question, .host = host, .demands = {}};
  const std::vector<KnownContainer> containers = known(question.duration);
  weigh(answer, containers);
  if (answer.fits) return answer;
  answer.change = change_with_room(answer, containers, known);
  seconds shorter = question.duration;
  for (int i = 0; i < kShorterTries && !answer.fits_for; ++i) {
    shorter /= 2;
    if (shorter < kShortestTry) break;
    FitAnswer less{.question = question, .host = host, .demands = {}};
    weigh(less, known(shorter));
    if (less.fits) answer.fits_for = shorter;
  }
  return answer;
}

}  // namespace cgphase
