#include "policy/phase/nested_windows.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

using namespace cgphase;

namespace {

constexpr double kAtMost = 0.001;

NestedWindows fed(int samples) {
  NestedWindows windows;
  for (int i = 1; i <= samples; ++i) windows.add(i);
  return windows;
}

}  // namespace

TEST_CASE("without a sample there is no window") { CHECK(NestedWindows().windows() == 0); }

TEST_CASE("before the first window is full, one window contains everything") {
  NestedWindows windows = fed(5);
  REQUIRE(windows.windows() == 1);
  CHECK(windows.samples(0) == 5);
  CHECK(windows.top(0, kAtMost) == 5);
  CHECK(windows.mean(0) == 3);
  CHECK(windows.deviation(0) == doctest::Approx(1.41421356));  // of 1..5
}

TEST_CASE("window sizes double, and each contains exactly its newest samples") {
  NestedWindows windows = fed(2005);
  REQUIRE(windows.windows() == NestedWindows::kWindows);
  CHECK(windows.samples(0) == 60);
  CHECK(windows.samples(1) == 120);
  CHECK(windows.samples(4) == 960);
  for (std::size_t i = 0; i < windows.windows(); ++i) CHECK(windows.top(i, kAtMost) == 2005);
  CHECK(windows.mean(0) == 1975.5);  // of 1946..2005
}

TEST_CASE("a longer window counts once it contains more than a shorter one") {
  CHECK(fed(60).windows() == 1);
  CHECK(fed(61).windows() == 2);
  CHECK(fed(961).windows() == NestedWindows::kWindows);
}

TEST_CASE("the shortest window drops a peak before the longest one does") {
  NestedWindows windows;
  windows.add(9);
  for (int i = 0; i < 300; ++i) windows.add(1);
  CHECK(windows.top(0, kAtMost) == 1);
  CHECK(windows.top(windows.windows() - 1, kAtMost) == 9);
}

TEST_CASE("the longest window drops a peak after 960 samples") {
  NestedWindows windows;
  windows.add(9);
  for (int i = 0; i < 960; ++i) windows.add(1);
  CHECK(windows.top(windows.windows() - 1, kAtMost) == 1);
}

TEST_CASE("a window leaves out as many samples as the risk allows") {
  NestedWindows windows = fed(60);
  CHECK(windows.top(0, 0.1) == 54);  // six of 60
  CHECK(windows.top(0, 0.5) == 30);
}

TEST_CASE("negative samples count") {
  NestedWindows windows;
  windows.add(-2);
  windows.add(-1);
  CHECK(windows.top(0, kAtMost) == -1);
}

TEST_CASE("a sample is never stored as a smaller value") {
  NestedWindows windows;
  const double bytes = 1234567891;  // not representable as float
  windows.add(bytes);
  CHECK(windows.top(0, kAtMost) >= bytes);
  CHECK(windows.top(0, kAtMost) < bytes * (1 + 1e-6));
}

TEST_CASE("incremental windows equal sorted and newly summed ones") {
  NestedWindows windows;
  std::vector<double> all;
  std::uint64_t state = 7;
  for (int i = 0; i < 5000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const auto draw = static_cast<double>(state >> 60);  // 0 to 15, so that many are equal
    const double value = i % 700 == 5 ? 1e9 : draw - 4;
    windows.add(value);
    all.push_back(value);
    if (i % 97 != 0) continue;
    for (std::size_t w = 0; w < windows.windows(); ++w) {
      const std::size_t length = std::min(all.size(), NestedWindows::kShortest << w);
      std::vector<double> sorted(all.end() - static_cast<std::ptrdiff_t>(length), all.end());
      std::ranges::sort(sorted);
      double sum = 0;
      for (const double one : sorted) sum += one;
      REQUIRE(windows.samples(w) == static_cast<double>(length));
      CHECK(windows.top(w, kAtMost) == sorted.back());
      const auto left_out = static_cast<std::size_t>(static_cast<double>(length) * 0.3);
      CHECK(windows.top(w, 0.3) == sorted[length - 1 - left_out]);
      CHECK(windows.mean(w) ==
            doctest::Approx(sum / static_cast<double>(length)).epsilon(1e-9));
    }
  }
}

TEST_CASE("an earlier answer of a window is reused only while no sample changes it") {
  constexpr double kRisk = 0.05;
  NestedWindows windows;
  std::vector<double> all;
  std::uint64_t state = 11;
  for (int i = 0; i < 3000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const auto draw = static_cast<double>(state >> 59);  // 0 to 31, so that equal values come and
                                                         // go
    all.push_back(i % 1300 < 400 ? draw : 100 + draw);
    windows.add(all.back());
    for (std::size_t w = 0; w < windows.windows(); ++w) {
      const std::size_t length = std::min(all.size(), NestedWindows::kShortest << w);
      std::vector<double> window(all.end() - static_cast<std::ptrdiff_t>(length), all.end());
      const auto left_out = static_cast<std::size_t>(static_cast<double>(length) * kRisk);
      const auto place = window.end() - 1 - static_cast<std::ptrdiff_t>(left_out);
      std::ranges::nth_element(window, place);
      REQUIRE(windows.top(w, kRisk) == *place);
    }
  }
}

// The answer is reused between calls. Alternating risks must not affect it.
TEST_CASE("a window answers each risk correctly, regardless of earlier queries") {
  NestedWindows windows;
  std::vector<double> all;
  std::uint64_t state = 23;
  for (int i = 0; i < 4000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const auto draw = static_cast<double>(state >> 40);
    all.push_back((i % 3 == 0 ? -1 : 1) * (i / 500 % 2 == 0 ? std::floor(draw / 4e6) : draw));
    windows.add(all.back());
    const double risk = static_cast<double>(state % 7) / 13;
    const std::size_t w = state / 7 % windows.windows();
    const std::size_t length = std::min(all.size(), NestedWindows::kShortest << w);
    std::vector<double> window(all.end() - static_cast<std::ptrdiff_t>(length), all.end());
    const auto left_out = static_cast<std::size_t>(static_cast<double>(length) * risk);
    const auto place = window.end() - 1 - static_cast<std::ptrdiff_t>(left_out);
    std::ranges::nth_element(window, place);
    REQUIRE(windows.top(w, risk) == *place);
  }
}
