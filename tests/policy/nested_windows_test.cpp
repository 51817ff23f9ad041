#include "policy/nested_windows.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

constexpr double kRisk = 0.001;

NestedWindows fed(double risk, int samples) {
  NestedWindows windows(risk);
  for (int i = 1; i <= samples; ++i) windows.add(i);
  return windows;
}

}  // namespace

TEST_CASE("no sample, no window") { CHECK(NestedWindows(kRisk).readings().empty()); }

TEST_CASE("less than a window is one window of everything") {
  const auto readings = fed(kRisk, 5).readings();
  REQUIRE(readings.size() == 1);
  CHECK(readings[0].samples == 5);
  CHECK(readings[0].top == 5);
  CHECK(readings[0].mean == 3);
  CHECK(readings[0].deviation == doctest::Approx(1.41421356));  // of 1..5
}

TEST_CASE("windows double, and are whole blocks and the one being filled") {
  const auto readings = fed(kRisk, 2005).readings();
  REQUIRE(readings.size() == NestedWindows::kWindows);
  CHECK(readings[0].samples == 65);
  CHECK(readings[1].samples == 125);
  CHECK(readings[4].samples == 965);
  for (const auto& reading : readings) CHECK(reading.top == 2005);
}

TEST_CASE("the shortest window forgets a peak, the longest one not yet") {
  NestedWindows windows(kRisk);
  windows.add(9);
  for (int i = 0; i < 300; ++i) windows.add(1);
  const auto readings = windows.readings();
  CHECK(readings.front().top == 1);
  CHECK(readings.back().top == 9);
}

TEST_CASE("a longest window after the peak has forgotten it") {
  NestedWindows windows(kRisk);
  windows.add(9);
  for (int i = 0; i < 1000; ++i) windows.add(1);
  CHECK(windows.readings().back().top == 1);
}

TEST_CASE("a window leaves out as many samples as the risk allows") {
  const auto readings = fed(0.1, 60).readings();  // six of 60
  REQUIRE(readings.size() == 1);
  CHECK(readings[0].top == 54);
}

TEST_CASE("negative samples are samples") {
  NestedWindows windows(kRisk);
  windows.add(-2);
  windows.add(-1);
  CHECK(windows.readings()[0].top == -1);
}
