#include "policy/budget/host_fit.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace cgphase;
using std::chrono::seconds;

namespace {

constexpr double kBin = 10.0 / kFitBins;

KnownContainer forecasting(double cpu_peak, double limit, double risk) {
  KnownContainer container{.name = "job", .forecast = Forecast{}, .original = {},
                           .highest_cpu_cores = {}, .highest_memory_bytes = {}};
  container.forecast->cpu_peak = Cores{cpu_peak};
  container.forecast->risk = risk;
  container.original.cpu_max =
      CpuMax{Microseconds{static_cast<std::uint64_t>(limit * 100'000)}};
  container.original.memory_max = MemoryLimit{Bytes{1000}};
  return container;
}

const HostCapacity kNode{10, Bytes{100'000}};

FitAnswer fit(double cpus, std::vector<KnownContainer> containers, double risk = 0.01) {
  return answer_fit({.cpu_cores = cpus, .memory_bytes = 1, .duration = seconds(600), .risk = risk},
                    {.capacity = kNode, .outside_cpu_cores = {}, .outside_memory_bytes = {}},
                    [&](seconds) { return containers; });
}

}  // namespace

TEST_CASE("peaks with probability 1 add up exactly, up to the host's capacity") {
  const Peak a = {{1.25, 1}}, b = {{2.5, 1}};
  CHECK(sum_of_peaks(std::vector{a, b}, 10, 0.01) == 3.75);
  CHECK(sum_of_peaks(std::vector{a, b}, 3, 0.01) == 3);
  CHECK(sum_of_peaks({}, 10, 0.01) == 0);
  CHECK(sum_of_peaks(std::vector<Peak>{a}, 0, 0.01) == 0);
}

TEST_CASE("independent peaks are not all high at once") {
  // Ten peaks that are high one time in a hundred: none with 90 %, at most one with 99.6 %, ...
  const Peak peak = {{0.1, 0.99}, {1.1, 0.01}};
  const std::vector<Peak> ten(10, peak);
  const auto near = [](double value) { return doctest::Approx(value).epsilon(0.001); };
  CHECK(sum_of_peaks(ten, 100, 0.1) == near(1));
  CHECK(sum_of_peaks(ten, 100, 0.01) == doctest::Approx(2).epsilon(0.02));
  CHECK(sum_of_peaks(ten, 100, 0.001) == doctest::Approx(3).epsilon(0.02));
  CHECK(sum_of_peaks(ten, 100, 0) == doctest::Approx(11).epsilon(0.03));
}

TEST_CASE("the bound of a sum holds over all combinations") {
  // All 27 cases of three peaks with three levels. Their sum exceeds the bound with at most the
  // risk.
  const std::vector<Peak> peaks = {{{0.3, 0.5}, {0.7, 0.3}, {2, 0.2}},
                                   {{0, 0.6}, {1.3, 0.39}, {5, 0.01}},
                                   {{0.9, 0.7}, {1, 0.2}, {1.1, 0.1}}};
  for (const double risk : {0.5, 0.2, 0.05, 0.01, 0.001, 0.0}) {
    const double bound = sum_of_peaks(peaks, 10, risk);
    double beyond = 0;
    for (const PeakLevel& a : peaks[0])
      for (const PeakLevel& b : peaks[1])
        for (const PeakLevel& c : peaks[2])
          if (a.value + b.value + c.value > bound)
            beyond += a.probability * b.probability * c.probability;
    CHECK(beyond <= risk + 1e-12);
  }
}

TEST_CASE("a forecast counts with its peak, and with its risk as the whole limit") {
  const FitDemand demand = demand_of(forecasting(1, 4, 0.001), kNode);
  CHECK(demand.cpu_basis == PeakBasis::forecast);
  REQUIRE(demand.cpu_cores.size() == 2);
  CHECK(demand.cpu_cores[0].value == 1);
  CHECK(demand.cpu_cores[1].value == 4);
  CHECK(demand.cpu_cores[1].probability == 0.001);
  CHECK(demand.memory_basis == PeakBasis::limit);
  CHECK(demand.memory_bytes.front().value == 1000);
}

TEST_CASE("without a forecast the limit counts, else the highest use, else nothing is known") {
  KnownContainer container{.name = "a", .forecast = {}, .original = {},
                           .highest_cpu_cores = 0.5, .highest_memory_bytes = {}};
  FitDemand demand = demand_of(container, kNode);
  CHECK(demand.cpu_basis == PeakBasis::highest_seen);
  CHECK(demand.cpu_cores.front().value == 0.5);
  CHECK(demand.memory_basis == PeakBasis::nothing);
  container.original.cpu_max = CpuMax{Microseconds{5'000'000}};
  demand = demand_of(container, kNode);
  CHECK(demand.cpu_basis == PeakBasis::limit);
  CHECK(demand.cpu_cores.front().value == kNode.cpu_cores);  // not more than the host has
}

TEST_CASE("a container needs at most what the ancestor cgroups allow") {
  KnownContainer container = forecasting(1, 8, 0.01);
  container.ancestor_limits = {.cpu_cores = 3, .memory_bytes = 500};
  const FitDemand demand = demand_of(container, kNode);
  CHECK(demand.cpu_cores.back().value == 3);
  CHECK(demand.memory_bytes.back().value == 500);
}

TEST_CASE("a job fits up to the free capacity, and not beyond") {
  const std::vector<KnownContainer> one = {forecasting(1, 4, 0.001)};
  const double free = 10 * (1 - kFitReserve) - 1;
  CHECK(fit(0.1, one).free_cpu_cores == doctest::Approx(free));
  CHECK(fit(free - kBin, one).fits);
  CHECK_FALSE(fit(free + kBin, one).fits);
  // Below the forecast's own risk: the whole limit may be needed.
  CHECK(fit(0.1, one, 0.0001).free_cpu_cores == doctest::Approx(free - 3).epsilon(0.01));
}

TEST_CASE("if a job does not fit, the answer has a shorter duration or a later time") {
  const auto ask = [](bool soon, double next_peak = 1, seconds in = seconds(40)) {
    return answer_fit({.cpu_cores = 5, .memory_bytes = 1, .duration = seconds(1000)},
                      {.capacity = kNode, .outside_cpu_cores = 0.5, .outside_memory_bytes = {}},
                      [=](seconds duration) {
                        std::vector<KnownContainer> known = {forecasting(
                            soon && duration < seconds(300) ? 1 : 8, 9, 0.001)};
                        known[0].forecast->next = {{.phase = 1, .probability = 0.7,
                                                    .in = in,
                                                    .cpu_peak = Cores{next_peak}}};
                        return known;
                      });
  };
  const FitAnswer shorter = ask(true);
  CHECK_FALSE(shorter.fits);
  CHECK(shorter.fits_for == seconds(250));
  const FitAnswer later = ask(false);
  CHECK_FALSE(later.fits_for);
  REQUIRE(later.change);
  CHECK(later.change->in == seconds(40));
  // No room after the change, or the time of the change is unknown.
  CHECK_FALSE(ask(false, 7).change);
  CHECK_FALSE(ask(false, 1, seconds(0)).change);
}

TEST_CASE("if one change leaves too little room, the next change counts, too") {
  const auto ask = [](double cpus) {
    return answer_fit(
        {.cpu_cores = cpus, .memory_bytes = 1, .duration = seconds(1000)},
        {.capacity = kNode, .outside_cpu_cores = {}, .outside_memory_bytes = {}}, [](seconds) {
          std::vector<KnownContainer> known(3, forecasting(3, 4, 0.001));
          for (int i = 0; i < 3; ++i) {
            known[static_cast<std::size_t>(i)].name = "job-" + std::to_string(i);
            known[static_cast<std::size_t>(i)].forecast->next = {
                {.phase = 1, .probability = 0.9 - 0.1 * i, .in = seconds(90 - 30 * i),
                 .cpu_peak = Cores{1}}};
          }
          return known;
        });
  };
  CHECK(ask(2).change->name == "job-2");
  CHECK(ask(2).change->in == seconds(30));
  CHECK(ask(4).change->name == "job-1");
  CHECK(ask(4).change->probability == doctest::Approx(0.8));
  CHECK(ask(6).change->name == "job-0");
  CHECK_FALSE(ask(8).change);
}

TEST_CASE("a change leaves room only if it lasts as long as the job, for all containers") {
  // One container changes to 1 core at 40 s. A forecast that reaches beyond the question contains
  // what follows, for it and for the other.
  const auto ask = [](double behind, double other) {
    return answer_fit(
        {.cpu_cores = 5, .memory_bytes = 1, .duration = seconds(1000)},
        {.capacity = kNode, .outside_cpu_cores = {}, .outside_memory_bytes = {}},
        [=](seconds duration) {
          const bool beyond = duration >= seconds(1040);
          std::vector<KnownContainer> known = {forecasting(8, 9, 0.001),
                                               forecasting(beyond ? other : 1, 9, 0.001)};
          known[0].forecast->next = {{.phase = 1, .probability = 0.9, .in = seconds(40),
                                      .cpu_peak = Cores{beyond ? behind : 1}}};
          return known;
        });
  };
  CHECK(ask(1, 1).change->in == seconds(40));
  CHECK_FALSE(ask(8, 1).change);
  CHECK_FALSE(ask(1, 8).change);
}
