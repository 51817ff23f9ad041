#include "tests/workloads/phase_score.h"

#include <doctest/doctest.h>

using cgphase::workloads::PhaseScore;

TEST_CASE("score: the same partition under other names is perfect") {
  PhaseScore score;
  for (int i = 0; i < 10; ++i) score.add(i % 2, i % 2 ? "train" : "idle");
  CHECK(score.purity() == 1);
  CHECK(score.nmi() == doctest::Approx(1));
  CHECK(score.ari() == doctest::Approx(1));
}

TEST_CASE("score: independent partitions share no information") {
  PhaseScore score;
  for (int i = 0; i < 8; ++i) score.add(i % 2, i / 2 % 2 ? "train" : "idle");
  CHECK(score.purity() == 0.5);
  CHECK(score.nmi() == doctest::Approx(0));
  // 8 samples in 4 cells of 2: 4 pairs together where 12 * 12 / 28 are expected.
  CHECK(score.ari() == doctest::Approx((4 - 36 / 7.0) / (12 - 36 / 7.0)));
}

TEST_CASE("score: one phase for all is as pure as the most frequent truth and has no information") {
  PhaseScore score;
  for (int i = 0; i < 4; ++i) score.add(0, i == 0 ? "train" : "idle");
  CHECK(score.purity() == 0.75);
  CHECK(score.nmi() == doctest::Approx(0));
  CHECK(score.ari() == doctest::Approx(0));
}

TEST_CASE("score: a worked example") {
  // Manning et al., figure 16.4: purity 0.71, NMI 0.36.
  PhaseScore score;
  const auto add = [&score](int phase, const char* truth, int times) {
    for (int i = 0; i < times; ++i) score.add(phase, truth);
  };
  add(1, "x", 5);
  add(1, "o", 1);
  add(2, "x", 1);
  add(2, "o", 4);
  add(2, "d", 1);
  add(3, "x", 2);
  add(3, "d", 3);
  CHECK(score.purity() == doctest::Approx(12.0 / 17));
  CHECK(score.nmi() == doctest::Approx(0.36).epsilon(0.02));
  // Pairs: 20 together in both, 40 in phases, 44 in truths, 136 in all.
  CHECK(score.ari() == doctest::Approx((20 - 40 * 44 / 136.0) / (42 - 40 * 44 / 136.0)));
  CHECK(score.information() / score.mean_entropy() == doctest::Approx(score.nmi()));
}

TEST_CASE("score: without samples it is 0") {
  const PhaseScore score;
  CHECK(score.purity() == 0);
  CHECK(score.nmi() == 0);
  CHECK(score.ari() == 0);
}
