#include "model/feature_extractor.h"

#include <doctest/doctest.h>

#include <cmath>

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

TEST_CASE("a schema is made of names, in their order, and of known ones only") {
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

TEST_CASE("the log schema has the ratios' logarithms in their places and the rest as it is") {
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

TEST_CASE("a log ratio is the logarithm of the ratio and a floor") {
  FeatureExtractor extractor(log_schema(), 1);
  feed(extractor, 0);
  const FeatureExtractor::Step step = feed(extractor, 1);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == portable_log(0.5 + 1.0 / 128));
  CHECK(step.vector->values[1] == portable_log(0.0625 + 1.0 / 128));
  CHECK(step.vector->values[2] == 0.0625);
}

TEST_CASE("the log ratio of nothing used is that of the floor, and absent without a limit") {
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

TEST_CASE("without limits the host stands in") {
  FeatureExtractor extractor(plain_schema(), 1);
  extractor.add(sample_at(0), at(0), {}, kHost);
  const FeatureExtractor::Step step = extractor.add(sample_at(1), at(1), {}, kHost);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == 1.0 / 8);
  CHECK(step.vector->values[1] == 1.0 / 256);
}

TEST_CASE("without limits and host the ratios are absent, the rates are not") {
  FeatureExtractor extractor(plain_schema(), 1);
  extractor.add(sample_at(0), at(0), {}, {});
  const FeatureExtractor::Step step = extractor.add(sample_at(1), at(1), {}, {});
  REQUIRE(step.vector);
  CHECK(!step.vector->values[0]);
  CHECK(!step.vector->values[1]);
  CHECK(step.vector->values[3]);
}

TEST_CASE("a model step spans several samples and its rates are over all of them") {
  FeatureExtractor extractor(plain_schema(), 5);
  for (const double t : {0.0, 1.0, 2.0, 3.01, 4.0}) CHECK(!feed(extractor, t).vector);
  const FeatureExtractor::Step step = feed(extractor, 5);
  REQUIRE(step.vector);
  CHECK(step.vector->values[0] == 0.5);
  CHECK(step.vector->values[2] == 0.0625);
  for (const double t : {6.0, 7.0, 8.0, 9.0}) CHECK(!feed(extractor, t).vector);
  CHECK(feed(extractor, 9.9).vector);
}

TEST_CASE("a sample a little early still completes its step") {
  FeatureExtractor extractor(plain_schema(), 2);
  feed(extractor, 0);
  feed(extractor, 0.999);
  CHECK(feed(extractor, 1.998).vector);
}

TEST_CASE("three sampling intervals are no gap, more are") {
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

TEST_CASE("time that stands still or goes backwards is a gap") {
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

TEST_CASE("no feature is ever nan or infinite, whatever the samples") {
  Random random(1);
  FeatureSchema schema = plain_schema();
  for (const FeatureSchema::Entry& entry : log_schema().entries) schema.entries.push_back(entry);
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
