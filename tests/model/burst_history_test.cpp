#include "model/burst_history.h"

#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

using namespace cgphase;

namespace {

constexpr auto kTx = static_cast<std::size_t>(BurstSource::network_transmit);
constexpr auto kIdle = static_cast<std::size_t>(BurstNumber::idle_seconds);
constexpr auto kBurst = static_cast<std::size_t>(BurstNumber::burst_seconds);

// A run with `count` idle times of `seconds` each.
RunBursts run_of(int count, double seconds) {
  RunBursts run;
  run[kTx].values = 1;
  for (int i = 0; i < count; ++i) run[kTx].numbers[kIdle].add(seconds);
  return run;
}

}  // namespace

TEST_CASE("nothing is predicted before a run had a segment") {
  BurstHistory history;
  CHECK(history.empty());
  CHECK_FALSE(history.predict(kTx, kIdle));
  history.add({});
  CHECK(history.empty());
  CHECK(predictions_to_json(history)["network_transmit"].is_null());
  history.add(run_of(3, 10));
  CHECK_FALSE(history.predict(kTx, kBurst));
}

TEST_CASE("the prediction is the mean of the runs, weighted by their segments") {
  BurstHistory history;
  history.add(run_of(1, 10));
  const auto first = history.predict(kTx, kIdle);
  REQUIRE(first);
  CHECK(first->value == 10);
  CHECK_FALSE(first->deviation);
  CHECK_FALSE(first->relative_error);
  history.add(run_of(3, 20));
  const auto second = history.predict(kTx, kIdle);
  REQUIRE(second);
  CHECK(second->value == doctest::Approx(17.5));
  CHECK(second->runs == 2);
  CHECK(second->count == 4);
  // (1 x 7.5^2 + 3 x 2.5^2) / 4, and one degree of freedom of two.
  CHECK(*second->deviation == doctest::Approx(std::sqrt(18.75 * 2)));
  CHECK(*second->relative_error == doctest::Approx(0.5));
  history.add(run_of(2, 35));
  CHECK(*history.predict(kTx, kIdle)->relative_error == doctest::Approx(0.5));
  CHECK(history.predict(kTx, kIdle)->predicted_runs == 2);
}

TEST_CASE("runs without a number do not count as wrong predictions") {
  BurstHistory history;
  history.add(run_of(2, 10));
  history.add({});
  history.add(run_of(2, 10));
  CHECK(history.predict(kTx, kIdle)->predicted_runs == 1);
  CHECK(*history.predict(kTx, kIdle)->relative_error == 0);
}

TEST_CASE("a history reads back as it was written and keeps only the newest runs") {
  BurstHistory history;
  for (std::size_t i = 0; i < kBurstRunsKept + 3; ++i)
    history.add(run_of(2, 10 + static_cast<double>(i)));
  const nlohmann::json json = history.to_json();
  CHECK(json["runs"].size() == kBurstRunsKept);
  CHECK(json["runs"].back()["network_transmit"]["idle_seconds"][1] == 28);
  const Result<BurstHistory> again = BurstHistory::from_json(json);
  REQUIRE(again);
  CHECK(again->to_json() == json);
  CHECK(again->predict(kTx, kIdle)->runs == kBurstRunsKept + 3);
}

TEST_CASE("a history with any numbers reads back as it was written") {
  for (int i = 0; i < 1000; ++i) {
    BurstHistory history;
    for (int run = 0; run < 3; ++run) {
      history.add(run_of(3 + (i + run) % 7, 0.5 + 0.0123 * i + 1e-9 * run));
      CHECK(BurstHistory::from_json(history.to_json()).has_value());
    }
  }
}

TEST_CASE("a damaged history is refused with the reason") {
  BurstHistory history;
  history.add(run_of(2, 10));
  const nlohmann::json good = history.to_json();
  const auto refusal = [&](const char* pointer, const nlohmann::json& value) {
    nlohmann::json bad = good;
    bad[nlohmann::json::json_pointer(pointer)] = value;
    const auto read = BurstHistory::from_json(bad);
    return read ? std::string() : read.error().text;
  };
  CHECK(refusal("/schema", 2) == "history of bursts: the schema is not 1");
  CHECK(refusal("/numbers", 1) == "history of bursts: \"numbers\" is not an object");
  CHECK(refusal("/numbers/network_transmit/idle_seconds/count", -1) ==
        "history of bursts: \"count\" is not a non-negative number");
  CHECK(refusal("/numbers/network_transmit/idle_seconds/count", 0) ==
        "history of bursts: runs are counted but no segments");
  CHECK(refusal("/runs", 1) == "history of bursts: \"runs\" is not a list of at most 16");
  CHECK(refusal("/runs/0", 5) == "history of bursts: a run is not an object");
  CHECK(refusal("/runs/0/network_transmit/idle_seconds", 5) ==
        "history of bursts: an entry of a run is not [count, mean, squares]");
  CHECK(refusal("/runs/0/network_transmit/idle_seconds/0", "x") ==
        "history of bursts: a number of a run is not valid");
  CHECK_FALSE(BurstHistory::from_json(nullptr));
}
