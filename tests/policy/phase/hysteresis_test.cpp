#include "policy/phase/hysteresis.h"

#include <doctest/doctest.h>

#include "policy/policy_spec.h"

using namespace cgphase;

namespace {

void feed(Hysteresis& limit, double wanted, int samples) {
  for (int i = 0; i < samples; ++i) limit.update(wanted, wanted);
}

}  // namespace

TEST_CASE("the limit starts with the first recommendation") {
  Hysteresis limit(false, kShippedRisk);
  CHECK_FALSE(limit.level().has_value());
  limit.update(1, 2);
  CHECK(limit.level() == 2);
}

TEST_CASE("the limit rises at once to the coming demand") {
  Hysteresis limit(false, kShippedRisk);
  feed(limit, 1, 5);
  limit.update(3, 4);
  CHECK(limit.level() == 4);
}

TEST_CASE("a lower recommendation does not lower the limit at once") {
  Hysteresis limit(false, kShippedRisk);
  feed(limit, 10, 1);
  feed(limit, 5, 9);
  CHECK(limit.level() == 10);
}

TEST_CASE("half of the limit is given back once it has cost as much as a write") {
  Hysteresis limit(false, kShippedRisk);
  feed(limit, 10, 20);
  // Nine samples still remember 10. Then half a sample of limit is wasted with each, until the sum
  // is 4 and a five-hundredth of the 38 so far.
  feed(limit, 5, 17);
  CHECK(limit.level() == 10);
  feed(limit, 5, 1);
  CHECK(limit.level() == 5);
}

TEST_CASE("a hundredth of the limit is not worth a write for a long time") {
  Hysteresis limit(false, kShippedRisk);
  feed(limit, 100, 20);
  feed(limit, 99, 250);
  CHECK(limit.level() == 100);
  feed(limit, 99, 300);
  CHECK(limit.level() == 99);
}

TEST_CASE("a limit falls to the highest recommendation of the last ten samples") {
  Hysteresis limit(false, kShippedRisk);
  feed(limit, 10, 20);
  for (int i = 0; i < 40; ++i) limit.update(i % 5 == 0 ? 4 : 2, i % 5 == 0 ? 4 : 2);
  CHECK(limit.level() == 4);
}

TEST_CASE("steady growth gets room for more than one step") {
  Hysteresis plain(false, kShippedRisk), steady(true, kShippedRisk);
  int plain_writes = 0, steady_writes = 0;
  for (int i = 0; i < 1000; ++i) {
    const double wanted = 1000 + i;
    const auto before_plain = plain.level(), before_steady = steady.level();
    plain.update(wanted, wanted);
    steady.update(wanted, wanted);
    if (plain.level() != before_plain) plain_writes += 1;
    if (steady.level() != before_steady) steady_writes += 1;
    CHECK(steady.level() >= wanted);
  }
  CHECK(plain_writes == 1000);
  CHECK(steady_writes < 250);
  CHECK(*steady.level() < 2000 * 1.02);
}

TEST_CASE("a higher accepted risk shortens the wait before a lowering") {
  Hysteresis limit(false, 0.01);
  feed(limit, 10, 20);
  feed(limit, 5, 1);  // one sample is remembered; 0.4 and a five-hundredth of 21 are wasted
  CHECK(limit.level() == 5);
}
