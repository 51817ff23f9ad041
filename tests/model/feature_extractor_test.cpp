#include "model/feature_extractor.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "model/feature_schema.h"
#include "model/scalar_math.h"
#include "model/train/random.h"

using namespace cgphase;

namespace {

constexpr HostCapacity kHost{8, Bytes{16 * kGiB}};

Limits two_cores_one_gib() {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{200'000}};
  limits.memory_max = MemoryLimit{Bytes{kGiB}};
  return limits;
}

MonotonicTime at(double seconds) {
  return MonotonicTime(std::chrono::nanoseconds(std::llround(seconds * 1e9)));
}

// A container that uses one core, allocates 64 MiB/s and reads 1000 bytes/s.
Sample sample_at(double seconds) {
  Sample sample;
  sample.id = {1, 2};
  sample.cpu.usage_usec = static_cast<std::uint64_t>(1e6 * seconds);
  sample.memory.anon_bytes = static_cast<std::uint64_t>(64.0 * kMiB * seconds);
  sample.memory.pgfault = static_cast<std::uint64_t>(100 * seconds);
  sample.io.read_bytes = static_cast<std::uint64_t>(1000 * seconds);
  sample.io.write_bytes = 5;
  return sample;
}

FeatureExtractor::Step feed(FeatureExtractor& extractor, double seconds) {
  return extractor.add(sample_at(seconds), at(seconds), two_cores_one_gib(), kHost);
}

}  // namespace

TEST_CASE("a step of one sample gives ratios to the original limit and rates") {
  FeatureExtractor extractor(plain_schema(), 1);
  CHECK(!feed(extractor, 0).vector);
  const FeatureExtractor::Step step = feed(extractor, 1);
  REQUIRE(step.vector);
  CHECK(!step.gap);
  const auto& values = step.vector->values;
  REQUIRE(values.size() == 6);
  CHECK(values[0] == 0.5);
  CHECK(values[1] == 0.0625);
  CHECK(values[2] == 0.0625);
  CHECK(values[3] == portable_log1p(100));
  CHECK(values[4] == portable_log1p(1000));
  CHECK(values[5] == 0);
}

TEST_CASE("a schema consists of known names in their order") {
  const std::vector<std::string> names{"page_fault_log_rate", "cpu_usage_ratio"};
  const Result<FeatureSchema> schema = named_schema(names);
  REQUIRE(schema);
  REQUIRE(schema->entries.size() == 2);
  CHECK(schema->entries[0] == FeatureSchema::Entry{Feature::page_fault_log_rate, names[0]});
  CHECK(schema->entries[1] == FeatureSchema::Entry{Feature::cpu_usage_ratio, names[1]});
  const auto refusal = [](const std::vector<std::string>& wrong) {
    const Result<FeatureSchema> none = named_schema(wrong);
    REQUIRE(!none);
    return none.error().text;
  };
  CHECK(refusal({}) == "no feature is named");
  CHECK(refusal({"cpu_usage_rati"}) ==
        "there is no feature \"cpu_usage_rati\", did you mean \"cpu_usage_ratio\"?");
  CHECK(refusal({"cpu_usage_ratio", "cpu_usage_ratio"}) ==
        "feature cpu_usage_ratio is named twice");
}

TEST_CASE("the log schema has logarithms instead of the ratios and is otherwise equal") {
  const FeatureSchema plain = plain_schema(), logs = log_schema();
  REQUIRE(plain.entries.size() == 6);
  REQUIRE(logs.entries.size() == 6);
  CHECK(logs.entries[0].feature == Feature::cpu_usage_log_ratio);
  CHECK(logs.entries[1].feature == Feature::memory_need_log_ratio);
  for (std::size_t i = 2; i < 6; ++i) CHECK(logs.entries[i] == plain.entries[i]);
  for (const FeatureSchema& schema : {plain, logs})
    for (const FeatureSchema::Entry& entry : schema.entries)
      CHECK(feature_by_name(entry.name) == entry.feature);
}

TEST_CASE("a log ratio is the logarithm of the ratio plus a floor") {
  FeatureExtractor extractor(log_schema(), 1);
  feed(extractor, 0);
  const FeatureExtractor::Step step = feed(extractor, 1);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == portable_log(0.5 + 1.0 / 128));
  CHECK(step.vector->values[1] == portable_log(0.0625 + 1.0 / 128));
  CHECK(step.vector->values[2] == 0.0625);
}

TEST_CASE("the log ratio of zero use is that of the floor, and absent without a limit") {
  FeatureExtractor extractor(log_schema(), 1);
  Sample idle = sample_at(0);
  const auto add = [&](double seconds, const Limits& limits, const HostCapacity& host) {
    return extractor.add(idle, at(seconds), limits, host);
  };
  add(0, two_cores_one_gib(), kHost);
  const FeatureExtractor::Step step = add(1, two_cores_one_gib(), kHost);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == doctest::Approx(-4.852).epsilon(1e-4));
  const FeatureExtractor::Step unlimited = add(2, {}, {});
  REQUIRE(unlimited.vector);
  CHECK_FALSE(unlimited.vector->values[0]);
  CHECK_FALSE(unlimited.vector->values[1]);
}

TEST_CASE("without limits the host's capacity is used") {
  FeatureExtractor extractor(plain_schema(), 1);
  extractor.add(sample_at(0), at(0), {}, kHost);
  const FeatureExtractor::Step step = extractor.add(sample_at(1), at(1), {}, kHost);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == 1.0 / 8);
  CHECK(step.vector->values[1] == 1.0 / 256);
}

TEST_CASE("without limits and host the ratios are absent but the rates are not") {
  FeatureExtractor extractor(plain_schema(), 1);
  extractor.add(sample_at(0), at(0), {}, {});
  const FeatureExtractor::Step step = extractor.add(sample_at(1), at(1), {}, {});
  REQUIRE(step.vector);
  CHECK(!step.vector->values[0]);
  CHECK(!step.vector->values[1]);
  CHECK(step.vector->values[3]);
}

TEST_CASE("a model step spans several samples and its rates cover all of them") {
  FeatureExtractor extractor(plain_schema(), 5);
  for (const double t : {0.0, 1.0, 2.0, 3.01, 4.0}) CHECK(!feed(extractor, t).vector);
  const FeatureExtractor::Step step = feed(extractor, 5);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == 0.5);
  CHECK(step.vector->values[2] == 0.0625);
  for (const double t : {6.0, 7.0, 8.0, 9.0}) CHECK(!feed(extractor, t).vector);
  CHECK(feed(extractor, 9.9).vector);
}

TEST_CASE("a slightly early sample still completes its step") {
  FeatureExtractor extractor(plain_schema(), 2);
  feed(extractor, 0);
  feed(extractor, 0.999);
  CHECK(feed(extractor, 1.998).vector);
}

TEST_CASE("three sampling intervals are not a gap, more are") {
  FeatureExtractor extractor(plain_schema(), 1);
  for (int t = 0; t <= 10; ++t) CHECK(!feed(extractor, t).gap);
  CHECK(!feed(extractor, 13).gap);
  FeatureExtractor other(plain_schema(), 1);
  for (int t = 0; t <= 10; ++t) feed(other, t);
  const FeatureExtractor::Step step = feed(other, 13.1);
  CHECK(step.gap);
  CHECK(!step.vector);
  CHECK(feed(other, 14.1).vector);
}

TEST_CASE("time that does not advance or goes backwards is a gap") {
  FeatureExtractor extractor(plain_schema(), 1);
  feed(extractor, 1);
  feed(extractor, 2);
  CHECK(feed(extractor, 2).gap);
  CHECK(feed(extractor, 1).gap);
}

TEST_CASE("another cgroup under the same name is a gap") {
  FeatureExtractor extractor(plain_schema(), 1);
  feed(extractor, 0);
  Sample other = sample_at(1);
  other.id.inode = 3;
  const FeatureExtractor::Step step = extractor.add(other, at(1), two_cores_one_gib(), kHost);
  CHECK(step.gap);
  CHECK(!step.vector);
}

TEST_CASE("a slower cadence is learned after a few gaps") {
  FeatureExtractor extractor(plain_schema(), 1);
  for (int t = 0; t <= 10; ++t) feed(extractor, t);
  int gaps = 0;
  for (int i = 1; i <= 30; ++i) gaps += feed(extractor, 10 + 10.0 * i).gap;
  CHECK(gaps >= 1);
  CHECK(gaps < 10);
  CHECK(!feed(extractor, 320).gap);
}

TEST_CASE("a counter that fell gives no rate in that step and a rate in the next") {
  FeatureExtractor extractor(plain_schema(), 1);
  feed(extractor, 5);
  Sample fallen = sample_at(6);
  fallen.cpu.usage_usec = 0;
  FeatureExtractor::Step step = extractor.add(fallen, at(6), two_cores_one_gib(), kHost);
  REQUIRE(step.vector);
  CHECK(!step.vector->values[0]);
  CHECK(step.vector->values[3]);
  fallen = sample_at(7);
  fallen.cpu.usage_usec = 500'000;
  step = extractor.add(fallen, at(7), two_cores_one_gib(), kHost);
  CHECK(step.vector->values[0] == 0.25);
}

TEST_CASE("a counter that fell and passed its old value within one step gives no rate") {
  FeatureExtractor extractor(plain_schema(), 2);
  feed(extractor, 5);
  Sample middle = sample_at(6), end = sample_at(7);
  middle.cpu.usage_usec = 0;
  end.cpu.usage_usec = 9'000'000;
  extractor.add(middle, at(6), two_cores_one_gib(), kHost);
  const FeatureExtractor::Step step = extractor.add(end, at(7), two_cores_one_gib(), kHost);
  REQUIRE(step.vector);
  CHECK(!step.vector->values[0]);
}

TEST_CASE("an absent source is an absent feature, not zero") {
  FeatureExtractor extractor(plain_schema(), 1);
  Sample bare;
  bare.id = {1, 2};
  extractor.add(bare, at(0), two_cores_one_gib(), kHost);
  const FeatureExtractor::Step step = extractor.add(bare, at(1), two_cores_one_gib(), kHost);
  REQUIRE(step.vector);
  for (const auto& value : step.vector->values) CHECK(!value);
}

TEST_CASE("a column feature is absent in live samples") {
  FeatureSchema schema = plain_schema();
  schema.entries.push_back({Feature::column, "gpu.load"});
  FeatureExtractor extractor(schema, 1);
  feed(extractor, 0);
  CHECK(!feed(extractor, 1).vector->values[6]);
}

TEST_CASE("the optional features are known by name, and no default schema has them") {
  for (const FeatureSchema& schema : {plain_schema(), log_schema()})
    for (const auto& entry : schema.entries) CHECK_FALSE(is_optional(entry.feature));
  int optional = 0;
  for (const std::string_view name : feature_names()) {
    const auto feature = feature_by_name(name);
    REQUIRE(feature);
    CHECK(feature_name(*feature) == name);
    optional += is_optional(*feature);
  }
  CHECK(optional == 8);
  CHECK_FALSE(is_optional(Feature::column));
}

namespace {

// Per second: 0.25 s of waiting for 1 s of running, 50 and 5 switches, 3000 bytes received and 700
// sent, 4 requests of 2 ms each, and a half-used GPU.
Sample counted_sample(double seconds) {
  const auto times = [&](double rate) { return static_cast<std::uint64_t>(rate * seconds); };
  Sample sample = sample_at(seconds);
  sample.run_queue.wait_usec = times(250'000);
  sample.run_queue.voluntary_switches = times(50);
  sample.run_queue.involuntary_switches = times(5);
  sample.network.receive_bytes = times(3000);
  sample.network.transmit_bytes = times(700);
  sample.block.requests = times(4);
  sample.block.latency_usec = times(8000);
  sample.gpu.utilisation_ratio = 0.5;
  sample.gpu.memory_utilisation_ratio = 0.125;
  return sample;
}

FeatureSchema optional_schema() {
  FeatureSchema schema;
  for (const std::string_view name : feature_names())
    if (const auto feature = feature_by_name(name); is_optional(*feature))
      schema.entries.push_back({*feature, std::string(name)});
  return schema;
}

// The features of the step from second 1 to 2, whose second sample was modified by `change`.
std::vector<std::optional<double>> changed_step(const std::function<void(Sample&)>& change) {
  FeatureExtractor extractor(optional_schema(), 1);
  extractor.add(counted_sample(1), at(1), two_cores_one_gib(), kHost);
  Sample sample = counted_sample(2);
  change(sample);
  const auto step = extractor.add(sample, at(2), two_cores_one_gib(), kHost);
  REQUIRE(step.vector);
  return step.vector->values;
}

}  // namespace

TEST_CASE("optional features are ratios, log rates and means over the step") {
  const auto values = changed_step([](Sample&) {});
  REQUIRE(values.size() == 8);
  CHECK(*values[0] == doctest::Approx(0.2));
  CHECK(values[1] == portable_log1p(50));
  CHECK(values[2] == portable_log1p(5));
  CHECK(values[3] == portable_log1p(3000));
  CHECK(values[4] == portable_log1p(700));
  CHECK(values[5] == portable_log1p(2000));
  CHECK(values[6] == 0.5);
  CHECK(values[7] == 0.125);
}

TEST_CASE("only the optional feature whose counter fell or was not read is absent") {
  const std::pair<std::size_t, std::function<Counter&(Sample&)>> counters[] = {
      {0, [](Sample& sample) -> Counter& { return sample.run_queue.wait_usec; }},
      {1, [](Sample& sample) -> Counter& { return sample.run_queue.voluntary_switches; }},
      {2, [](Sample& sample) -> Counter& { return sample.run_queue.involuntary_switches; }},
      {3, [](Sample& sample) -> Counter& { return sample.network.receive_bytes; }},
      {4, [](Sample& sample) -> Counter& { return sample.network.transmit_bytes; }},
      {5, [](Sample& sample) -> Counter& { return sample.block.latency_usec; }},
      {5, [](Sample& sample) -> Counter& { return sample.block.requests; }}};
  for (const auto& [place, counter] : counters)
    for (const Counter now : {Counter(0), Counter()}) {
      const auto values = changed_step([&](Sample& sample) { counter(sample) = now; });
      for (std::size_t i = 0; i < values.size(); ++i) CHECK(values[i].has_value() == (i != place));
    }
  CHECK_FALSE(changed_step([](Sample& sample) { sample.gpu.utilisation_ratio.reset(); })[6]);
  CHECK_FALSE(changed_step([](Sample& sample) { sample.gpu.memory_utilisation_ratio = NAN; })[7]);
}

TEST_CASE("without waiting the ratio is 0, and without requests the latency is 0") {
  const auto values = changed_step([](Sample& sample) {
    const Sample before = counted_sample(1);
    sample.cpu.usage_usec = before.cpu.usage_usec;
    sample.run_queue = before.run_queue;
    sample.block = before.block;
  });
  CHECK(values[0] == 0);
  CHECK(values[1] == 0);
  CHECK(values[5] == 0);
}

TEST_CASE("GPU features are means over the time of all samples of a step") {
  FeatureExtractor extractor(optional_schema(), 4);
  const auto add = [&](double seconds, double utilisation) {
    Sample sample = counted_sample(seconds);
    sample.gpu.utilisation_ratio = utilisation;
    return extractor.add(sample, at(seconds), two_cores_one_gib(), kHost);
  };
  add(0, 1);
  add(1, 0.8);
  add(2, 0.8);
  const auto step = add(4, 0.2);
  REQUIRE(step.vector);
  CHECK(*step.vector->values[6] == doctest::Approx(0.5));
}

TEST_CASE("lacks_input is true if an optional feature is absent, or all features are") {
  const FeatureSchema plain = plain_schema(), optional = optional_schema();
  FeatureVector vector{std::vector<std::optional<double>>(6)};
  CHECK(lacks_input(plain, vector));
  vector.values[3] = 1;
  CHECK_FALSE(lacks_input(plain, vector));
  FeatureVector full{std::vector<std::optional<double>>(8, 1.0)};
  CHECK_FALSE(lacks_input(optional, full));
  for (std::size_t i = 0; i < 8; ++i) {
    FeatureVector one_missing = full;
    one_missing.values[i] = i % 2 == 0 ? std::nullopt : std::optional<double>(NAN);
    CHECK(lacks_input(optional, one_missing));
  }
}

TEST_CASE("no feature is ever nan or infinite for any samples") {
  Random random(1);
  FeatureSchema schema = plain_schema();
  for (const FeatureSchema::Entry& entry : log_schema().entries) schema.entries.push_back(entry);
  for (const auto& entry : optional_schema().entries) schema.entries.push_back(entry);
  FeatureExtractor extractor(schema, 1);
  double now = 0;
  bool finite = true;
  const auto wild = [&]() -> Counter {
    if (random.uniform() < 0.1) return std::nullopt;
    return random.next() >> random.below(64);
  };
  for (int i = 0; i < 20'000; ++i) {
    now += random.uniform() < 0.05 ? -random.uniform() : random.uniform() * 1e-3;
    Sample sample;
    sample.cpu.usage_usec = wild(), sample.memory.anon_bytes = wild();
    sample.memory.pgfault = wild(), sample.io.read_bytes = wild(), sample.io.write_bytes = wild();
    sample.run_queue = {wild(), wild(), wild(), wild(), wild()};
    sample.network = {wild(), wild(), wild(), wild(), wild()};
    sample.block = {wild(), wild(), wild()};
    sample.gpu.utilisation_ratio = random.uniform() < 0.1 ? NAN : random.uniform();
    Limits limits;
    if (random.uniform() < 0.5) limits.cpu_max = CpuMax{Microseconds{random.below(3)}};
    if (random.uniform() < 0.5) limits.memory_max = MemoryLimit{Bytes{random.below(3)}};
    const auto step =
        extractor.add(sample, at(now), limits, random.uniform() < 0.5 ? kHost : HostCapacity{});
    if (!step.vector) continue;
    for (const auto& value : step.vector->values)
      finite = finite && (!value || std::isfinite(*value));
  }
  CHECK(finite);
}
