#include "policy/baselines/memory_segments.h"

#include <doctest/doctest.h>

using namespace cgphase;
using doctest::Approx;

namespace {

// One sample per second from second 0 on.
MemoryCourse course(const std::vector<double>& bytes) {
  MemoryCourse made;
  for (const double value : bytes) {
    made.seconds.push_back(static_cast<double>(made.seconds.size()));
    made.bytes.push_back(value);
  }
  return made;
}

}  // namespace

TEST_CASE("rising segments find the steps of a staircase, whatever falls between them") {
  CHECK(rising_segments(course({1, 1, 0, 5, 5, 2, 9}), 4) ==
        MemorySegments{{0, 1}, {3, 5}, {6, 9}});
}

TEST_CASE("the neighbours whose merging wastes least are merged first") {
  // Merging the first two wastes (2 - 1) x 3, the next two (6 - 2) x 1, the last two (7 - 6) x 2.
  const MemoryCourse staircase = course({1, 1, 1, 2, 6, 6, 7});
  CHECK(rising_segments(staircase, 3) == MemorySegments{{0, 1}, {3, 2}, {4, 7}});
  // Now (2 - 1) x 3 or (7 - 2) x 1.
  CHECK(rising_segments(staircase, 2) == MemorySegments{{0, 2}, {4, 7}});
  CHECK(rising_segments(staircase, 1) == MemorySegments{{0, 7}});
}

TEST_CASE("equal segments have the peak of each part of the run") {
  CHECK(equal_segments(course({1, 4, 2, 3, 1, 0, 0, 0, 7}), 4) ==
        MemorySegments{{0, 4}, {2, 3}, {4, 1}, {6, 7}});
  CHECK(equal_segments(course({5}), 2).back() == MemorySegment{0, 5});  // no length
}

TEST_CASE("KS+ predicts 0.85 x the mean start and 1.1 x the mean peak of two runs") {
  const MemoryCourse a = course({100, 100, 300, 300}), b = course({200, 200, 200, 200, 200, 200,
                                                                   500});
  const MemoryCourse* const runs[] = {&a, &b};
  const MemorySegments predicted = predict_ks_plus(runs, 2);
  REQUIRE(predicted.size() == 2);
  CHECK(predicted[0].start_seconds == 0);
  CHECK(predicted[0].peak_bytes == Approx(165));          // 1.1 x (100 + 200) / 2
  CHECK(predicted[1].start_seconds == Approx(3.4));       // 0.85 x (2 + 6) / 2
  CHECK(predicted[1].peak_bytes == Approx(440));          // 1.1 x (300 + 500) / 2
}

TEST_CASE("in KS+ a run with fewer segments keeps its last peak from its end on") {
  const MemoryCourse flat = course({10, 10, 10, 10, 10});
  const MemoryCourse* const runs[] = {&flat};
  const MemorySegments predicted = predict_ks_plus(runs, 2);
  REQUIRE(predicted.size() == 2);
  CHECK(predicted[1].start_seconds == Approx(3.4));
  CHECK(predicted[1].peak_bytes == Approx(11));
}

TEST_CASE("k-Segments predicts the largest peaks, never falling, over the shortest run") {
  const MemoryCourse a = course({1, 6, 2, 2, 2}), b = course({3, 3, 3, 3, 3, 3, 3, 3, 4});
  const MemoryCourse* const runs[] = {&a, &b};
  // Parts of 2 s and of 4 s: peaks 6, 2 and 3, 4.
  CHECK(predict_k_segments(runs, 2) == MemorySegments{{0, 6}, {2, 6}});
  const MemoryCourse* const only[] = {&b};
  CHECK(predict_k_segments(only, 2) == MemorySegments{{0, 3}, {4, 4}});
}

TEST_CASE("without runs nothing is predicted") {
  CHECK(predict_ks_plus({}, 4).empty());
  CHECK(predict_k_segments({}, 4).empty());
}
