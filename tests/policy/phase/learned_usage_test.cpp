#include "policy/phase/learned_usage.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

using namespace cgphase;

namespace {

constexpr UsageShapes kShapes{{0.01, 100}, {1e7, 400}};

LearnedUsage usage_of(double cores, double bytes) {
  LearnedUsage usage(kShapes);
  usage.cpu_cores.add(cores, 2, 0);
  usage.memory_bytes.add(bytes, 3, 0);
  usage.runs = 1;
  return usage;
}

nlohmann::json good() { return usage_to_json(usage_of(1, 1e8), "vpa"); }

bool taken(const nlohmann::json& json) {
  return usage_from_json(json, "vpa", kShapes).has_value();
}

nlohmann::json with(const char* key, const nlohmann::json& value) {
  nlohmann::json json = good();
  json[key] = value;
  return json;
}

}  // namespace

TEST_CASE("learned usage is read back as written") {
  const auto back = usage_from_json(good(), "vpa", kShapes);
  REQUIRE(back.has_value());
  CHECK(usage_to_json(*back, "vpa") == good());
  CHECK(back->cpu_cores.total_weight() == 2);
  CHECK(back->memory_bytes.total_weight() == 3);
}

TEST_CASE("learned usage with another half-life keeps its weights") {
  const UsageShapes other{{0.01, 7}, {1e7, 28}};
  const auto back = usage_from_json(good(), "vpa", other);
  REQUIRE(back.has_value());
  CHECK(back->cpu_cores.total_weight() == 2);
  CHECK(back->cpu_cores.shape() == other.cpu);
}

TEST_CASE("learned usage in a foreign format is refused") {
  CHECK_FALSE(taken(nullptr));
  CHECK_FALSE(taken(nlohmann::json::array()));
  CHECK_FALSE(taken(with("schema", 2)));
  CHECK_FALSE(taken(with("policy", "autopilot")));
  CHECK_FALSE(taken(with("policy", 5)));
  CHECK_FALSE(taken(with("runs", -1)));
  CHECK(taken(with("runs", 1'000'000)));
  CHECK_FALSE(taken(with("runs", 1'000'001)));
  CHECK_FALSE(taken(with("cpu_cores", nullptr)));
  CHECK_FALSE(taken(with("memory_bytes", good()["cpu_cores"])));  // other buckets
}

TEST_CASE("a half-life out of bounds is refused") {
  for (const double half_life : {0.0, -1.0, 1e10}) {
    nlohmann::json json = good();
    json["cpu_cores"]["half_life_seconds"] = half_life;
    CHECK_FALSE(taken(json));
  }
  nlohmann::json json = good();
  json["cpu_cores"]["half_life_seconds"] = 1e9;
  CHECK(taken(json));
}

TEST_CASE("merged usage is four fifths of the earlier and all of the new one") {
  const nlohmann::json later = usage_to_json(usage_of(2, 2e8), "vpa");
  const nlohmann::json merged = merge_usage(good(), later, 0.01, 1e7);
  const auto usage = usage_from_json(merged, "vpa", kShapes);
  REQUIRE(usage.has_value());
  CHECK(usage->runs == 2);
  CHECK(usage->cpu_cores.total_weight() == doctest::Approx(0.8 * 2 + 2));
  CHECK(usage->memory_bytes.total_weight() == doctest::Approx(0.8 * 3 + 3));
}

TEST_CASE("broken usage is not merged, and broken earlier usage is dropped") {
  CHECK(merge_usage(good(), nullptr, 0.01, 1e7) == good());
  CHECK(merge_usage(good(), with("runs", -1), 0.01, 1e7) == good());
  CHECK(merge_usage(good(), with("policy", 5), 0.01, 1e7) == good());
  CHECK(merge_usage({{"schema", 9}}, good(), 0.01, 1e7) == good());
}

TEST_CASE("the half-life of a job has bounds") {
  CHECK(bounded_half_life(0.5) == 1);
  CHECK(bounded_half_life(600) == 600);
  CHECK(bounded_half_life(1e12) == 1e8);
}
