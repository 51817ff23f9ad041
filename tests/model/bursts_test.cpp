#include "model/bursts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/units.h"
#include "model/train/random.h"
#include "tests/model/test_data.h"
#include "traces/trace.h"

using namespace cgphase;

namespace {

const Moments& moments_of(const SeriesBursts& bursts, BurstNumber which) {
  return bursts.numbers[static_cast<std::size_t>(which)];
}
const Moments& idle_of(const SeriesBursts& bursts) {
  return moments_of(bursts, BurstNumber::idle_seconds);
}
const Moments& burst_of(const SeriesBursts& bursts) {
  return moments_of(bursts, BurstNumber::burst_seconds);
}
const Moments& consumption_of(const SeriesBursts& bursts) {
  return moments_of(bursts, BurstNumber::burst_consumption);
}

// `periods` times: `idle` values of `low`, then `burst` values of `high`.
std::vector<double> square_wave(int periods, int idle, int burst, double low, double high) {
  std::vector<double> values;
  for (int period = 0; period < periods; ++period) {
    values.insert(values.end(), static_cast<std::size_t>(idle), low);
    values.insert(values.end(), static_cast<std::size_t>(burst), high);
  }
  return values;
}

SeriesBursts cut_up(const std::vector<double>& values, double seconds = 1) {
  BurstCutter cutter;
  for (const double value : values) cutter.add(value, seconds);
  return cutter.bursts();
}

// Two-means of all values at once, slow and obviously right: it tries each cut between two
// neighbours of the sorted values and computes its sum of squares from scratch.
TwoMeans::Cut whole_cut(std::vector<double> values) {
  std::ranges::sort(values);
  const auto mean = [&](std::size_t from, std::size_t to) {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += values[i];
    return sum / static_cast<double>(to - from);
  };
  const auto squares = [&](std::size_t from, std::size_t to) {
    const double middle = mean(from, to);
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += (values[i] - middle) * (values[i] - middle);
    return sum;
  };
  double least = INFINITY;
  TwoMeans::Cut cut;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double within = squares(0, i) + squares(i, values.size());
    if (within >= least) continue;
    least = within;
    cut = {mean(0, i), mean(i, values.size())};
  }
  return cut;
}

// A numeric column of each execution of a trace, or its growth from row to row. Absent values are
// skipped.
enum class As : std::uint8_t { value, growth };
std::vector<std::vector<double>> columns_of(const std::string& path, const std::string& column,
                                            As as) {
  const Result<Trace> trace = read_trace(path, {.columns = {column}});
  REQUIRE_MESSAGE(trace, trace.error().text);
  std::vector<std::vector<double>> series;
  for (const Execution& execution : trace->executions) {
    series.emplace_back();
    std::optional<double> before;
    for (const TraceRow& row : execution.rows) {
      const std::optional<double> last = std::exchange(before, row.columns[0]);
      if (as == As::value && row.columns[0]) series.back().push_back(*row.columns[0]);
      if (as == As::growth && row.columns[0] && last)
        series.back().push_back(std::max(*row.columns[0] - *last, 0.0));
    }
  }
  return series;
}

struct CutAgreement {
  int claimed = 0;           // executions in which both have a cut at the end
  double same = 0, all = 0;  // values after the first quarter on the same side of both cuts
  double worst_level = 0;    // error of the online cut at the end against the cut of all values
};

CutAgreement compare_cuts(const std::vector<std::vector<double>>& executions) {
  CutAgreement found;
  for (const std::vector<double>& values : executions) {
    if (values.size() < 64) continue;
    TwoMeans online(1e9);
    const TwoMeans::Cut truth = whole_cut(values);
    double same = 0, all = 0;
    for (std::size_t i = 0; i < values.size(); ++i) {
      online.add(values[i]);
      const auto cut = online.cut();
      if (!cut || i < values.size() / 4) continue;
      all += 1;
      same += cut->is_high(values[i]) == truth.is_high(values[i]);
    }
    const auto last = online.cut();
    if (!last) continue;
    found.claimed += 1;
    found.same += same;
    found.all += all;
    const double apart = truth.high - truth.low;
    const double wrong = std::abs(last->low + last->high - truth.low - truth.high) / 2 / apart;
    found.worst_level = std::max(found.worst_level, wrong);
  }
  return found;
}

Sample network_sample(std::uint64_t received, std::uint64_t sent) {
  Sample sample;
  sample.id = {1, 2};
  sample.network.receive_bytes = received;
  sample.network.transmit_bytes = sent;
  return sample;
}

MonotonicTime burst_time(double seconds) {
  return MonotonicTime(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

constexpr auto kReceive = static_cast<std::size_t>(BurstSource::network_receive);
constexpr auto kTransmit = static_cast<std::size_t>(BurstSource::network_transmit);
constexpr auto kGpu = static_cast<std::size_t>(BurstSource::gpu_utilisation);

}  // namespace

TEST_CASE("the durations and consumption of a square wave are measured exactly") {
  const SeriesBursts bursts = cut_up(square_wave(20, 30, 10, 0, 5), 2);
  // The first idle time began before the first sample, and the last burst is not over.
  CHECK(burst_of(bursts).count == 19);
  CHECK(burst_of(bursts).mean == doctest::Approx(20));
  CHECK(*burst_of(bursts).deviation() == doctest::Approx(0));
  CHECK(consumption_of(bursts).mean == doctest::Approx(100));
  CHECK(idle_of(bursts).count == 19);
  CHECK(idle_of(bursts).mean == doctest::Approx(60));
}

TEST_CASE("idle may be above zero, and its use is not part of a burst") {
  const SeriesBursts bursts = cut_up(square_wave(20, 30, 10, 100, 500));
  CHECK(idle_of(bursts).mean == doctest::Approx(30));
  CHECK(consumption_of(bursts).mean == doctest::Approx(5000));
}

TEST_CASE("bursts of different lengths have a mean and a deviation") {
  std::vector<double> values;
  for (int i = 0; i < 40; ++i) {
    values.insert(values.end(), 20, 0.0);
    values.insert(values.end(), i % 2 == 0 ? 4 : 8, 1.0);
  }
  values.push_back(0);
  const SeriesBursts bursts = cut_up(values);
  CHECK(burst_of(bursts).count == 40);
  CHECK(burst_of(bursts).mean == doctest::Approx(6));
  CHECK(*burst_of(bursts).deviation() == doctest::Approx(2).epsilon(0.03));
}

TEST_CASE("noise on both levels does not split bursts") {
  Random random(11);
  std::vector<double> values = square_wave(60, 25, 15, 100, 1000);
  for (double& value : values) value += 80 * random.normal();
  const SeriesBursts bursts = cut_up(values);
  CHECK(burst_of(bursts).count == 59);
  CHECK(burst_of(bursts).mean == doctest::Approx(15));
  CHECK(idle_of(bursts).mean == doctest::Approx(25));
  CHECK(consumption_of(bursts).mean == doctest::Approx(15000).epsilon(0.02));
}

TEST_CASE("a constant, noise of one level and a small ripple have no burst") {
  const auto none = [](const std::vector<double>& values) {
    const SeriesBursts bursts = cut_up(values);
    return bursts.values > 0 && idle_of(bursts).count == 0 && burst_of(bursts).count == 0;
  };
  CHECK(none(std::vector<double>(500, 7.0)));
  CHECK(none(std::vector<double>(500, 0.0)));
  Random random(12);
  std::vector<double> normal;
  for (int i = 0; i < 5000; ++i) normal.push_back(100 + 30 * random.normal());
  CHECK(none(normal));
  std::vector<double> uniform;
  for (int i = 0; i < 5000; ++i) uniform.push_back(random.uniform());
  CHECK(none(uniform));
  // Two well separated levels, neither of which is idle.
  CHECK(none(square_wave(50, 10, 10, 90, 100)));
}

TEST_CASE("a slow ramp has no bursts, but waves on it have") {
  std::vector<double> ramp, waves = square_wave(100, 20, 10, 0, 1000);
  for (int i = 0; i < 3000; ++i) ramp.push_back(i);
  CHECK(burst_of(cut_up(ramp)).count == 0);
  for (std::size_t i = 0; i < waves.size(); ++i) waves[i] += static_cast<double>(i) / 10;
  const SeriesBursts bursts = cut_up(waves);
  CHECK(burst_of(bursts).count == 99);
  CHECK(burst_of(bursts).mean == doctest::Approx(10));
}

TEST_CASE("new levels are found once the old ones are forgotten") {
  std::vector<double> values = square_wave(50, 20, 10, 0, 1000);
  const std::vector<double> later = square_wave(200, 20, 10, 50, 150);
  values.insert(values.end(), later.begin(), later.end());
  BurstCutter cutter;
  for (const double value : values) cutter.add(value, 1);
  const double until_then = burst_of(cutter.bursts()).count;
  for (const double value : later) cutter.add(value, 1);
  CHECK(burst_of(cutter.bursts()).count >= until_then + 199);
}

TEST_CASE("a segment that a gap or an absent value interrupts is not counted") {
  BurstCutter cutter;
  const std::vector<double> wave = square_wave(10, 10, 10, 0, 1);
  for (const double value : wave) cutter.add(value, 1);
  const SeriesBursts before = cutter.bursts();
  CHECK(cutter.bursting() == true);
  cutter.interrupt();
  CHECK_FALSE(cutter.bursting());
  // The rest of a burst, then a complete idle time, then a truncated burst.
  for (const double value : {1.0, 1.0, 0.0, 0.0, 0.0, 1.0}) cutter.add(value, 1);
  cutter.add(NAN, 1);
  cutter.add(0, 1);
  const SeriesBursts after = cutter.bursts();
  CHECK(burst_of(after).count == burst_of(before).count);
  CHECK(idle_of(after).count == idle_of(before).count + 1);
  CHECK(idle_of(after).mean * idle_of(after).count ==
        doctest::Approx(idle_of(before).mean * idle_of(before).count + 3));
}

TEST_CASE("the online cut equals brute force while there are no more values than bins") {
  Random random(13);
  for (int round = 0; round < 50; ++round) {
    TwoMeans online(1e12);
    std::vector<double> values;
    for (int i = 0; i < 200; ++i) {
      const double level = random.uniform() < 0.3 ? 100 : 10;
      values.push_back(level + std::floor(4 * random.uniform()));
      online.add(values.back());
    }
    const auto cut = online.cut();
    REQUIRE(cut);
    const TwoMeans::Cut truth = whole_cut(values);
    CHECK(cut->low == doctest::Approx(truth.low));
    CHECK(cut->high == doctest::Approx(truth.high));
  }
}

TEST_CASE("there is a cut from the minimum number of values on") {
  TwoMeans means;
  for (int i = 0; i < static_cast<int>(kTwoMeansLeast) - 1; ++i) {
    CHECK_FALSE(means.cut());
    means.add(i % 2);
  }
  CHECK_FALSE(means.cut());
  means.add(1);
  REQUIRE(means.cut());
  CHECK(means.cut()->low == 0);
  CHECK(means.cut()->high == 1);
}

TEST_CASE("the online cut agrees with brute force on recorded page faults and writes") {
  for (const std::string name : {"batch-11", "serve-11", "train-11", "batch-15-heldout"})
    for (const std::string column : {"memory.pgfault", "io.wbytes"}) {
      const CutAgreement found = compare_cuts(columns_of(
          CGPHASE_SOURCE_DIR "/tests/data/" + name + ".csv.gz", column, As::growth));
      const double alike = found.all > 0 ? found.same / found.all : 0;
      MESSAGE(name << " " << column << ": alike " << alike << ", level off by "
                   << found.worst_level);
      CHECK(found.claimed == 1);
      CHECK(alike >= 0.97);
      CHECK(found.worst_level < 0.05);
    }
}

TEST_CASE("the online cut agrees with brute force on the network of recorded services") {
  const std::string path = test_data("nezha/nezha.csv");
  if (path.empty()) return;
  for (const std::string column : {"net.rx.bytes", "net.tx.bytes"}) {
    const CutAgreement found = compare_cuts(columns_of(path, column, As::value));
    MESSAGE(column << ": " << found.claimed << " of 50 with bursts, alike "
                   << found.same / found.all << ", level off by " << found.worst_level);
    CHECK(found.claimed >= 10);
    // Late values of a day move the cut of the whole day, and no online cut can know that.
    CHECK(found.same >= 0.95 * found.all);
    CHECK(found.worst_level < 0.05);
  }
}

TEST_CASE("the meter uses rates of the network counters, one series per direction") {
  BurstMeter meter;
  std::uint64_t received = 1'000'000, sent = 0;
  for (int t = 0; t <= 400; ++t) {
    meter.add(network_sample(received, sent), burst_time(t));
    if (t % 40 >= 30) received += 1000;
    sent += 77;
  }
  const RunBursts bursts = meter.bursts();
  CHECK(burst_of(bursts[kReceive]).count == 9);  // the tenth is not over
  CHECK(burst_of(bursts[kReceive]).mean == doctest::Approx(10));
  CHECK(consumption_of(bursts[kReceive]).mean == doctest::Approx(10'000));
  CHECK(idle_of(bursts[kReceive]).mean == doctest::Approx(30));
  CHECK(bursts[kTransmit].values == 400);
  CHECK(burst_of(bursts[kTransmit]).count == 0);
  CHECK(bursts[kGpu].values == 0);
}

TEST_CASE("a counter that fell, a gap and another cgroup end a segment in the meter") {
  const auto idle_times = [](auto&& disturb) {
    BurstMeter meter;
    std::uint64_t received = 0;
    double time = 0;
    for (int t = 0; t < 400; ++t) {
      if (t % 40 >= 30) received += 1000;
      Sample sample = network_sample(received, 0);
      time += 1;
      if (t == 215) disturb(sample, time, received);
      meter.add(sample, burst_time(time));
    }
    return idle_of(meter.bursts()[kReceive]).count;
  };
  const double undisturbed = idle_times([](Sample&, double&, std::uint64_t&) {});
  CHECK(undisturbed == 9);
  CHECK(idle_times([](Sample& sample, double&, std::uint64_t& received) {
          received = 5;
          sample.network.receive_bytes = received;
        }) == undisturbed - 1);
  CHECK(idle_times([](Sample& sample, double&, std::uint64_t&) {
          sample.network.receive_bytes.reset();
        }) == undisturbed - 1);
  CHECK(idle_times([](Sample&, double& time, std::uint64_t&) { time += 3; }) == undisturbed - 1);
  CHECK(idle_times([](Sample&, double& time, std::uint64_t&) { time += 1; }) == undisturbed);
  CHECK(idle_times([](Sample& sample, double&, std::uint64_t&) { sample.id.inode = 9; }) ==
        undisturbed - 1);
}

TEST_CASE("GPU consumption is in seconds of a whole GPU") {
  BurstMeter meter;
  for (int t = 0; t < 400; ++t) {
    Sample sample;
    sample.id = {1, 2};
    sample.gpu.utilisation_ratio = t % 20 >= 15 ? 0.8 : 0.05;
    meter.add(sample, burst_time(t));
  }
  const SeriesBursts bursts = meter.bursts()[kGpu];
  CHECK(burst_of(bursts).mean == doctest::Approx(5));
  CHECK(consumption_of(bursts).mean == doctest::Approx(4));
}

TEST_CASE("the JSON of the twelve numbers has null for unknown values") {
  RunBursts bursts;
  bursts[kReceive].values = 10;
  bursts[kReceive].numbers[0].add(3);
  const nlohmann::json json = bursts_to_json(bursts);
  CHECK(json["gpu_utilisation"].is_null());
  CHECK(json["network_receive"]["idle_seconds"]["count"] == 1);
  CHECK(json["network_receive"]["idle_seconds"]["mean"] == 3);
  CHECK(json["network_receive"]["idle_seconds"]["sd"].is_null());
  CHECK(json["network_receive"]["burst_seconds"]["mean"].is_null());
}
