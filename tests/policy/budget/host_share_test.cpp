#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

#include "policy/budget/host_share.h"

using namespace cgphase;

namespace {

constexpr auto kCritical = ServiceClass::critical;
constexpr auto kStandard = ServiceClass::standard;
constexpr auto kBatch = ServiceClass::batch;

double sum(const std::vector<double>& amounts) {
  return std::accumulate(amounts.begin(), amounts.end(), 0.0);
}

}  // namespace

// rule: BUDGET-01
TEST_CASE("needs are met in the order of the classes, and equally within one") {
  // 10 to divide: the critical 4, then 6 for two standard ones that need 2 and 8, nothing is left.
  const std::vector<ShareClaim> claims = {
      {kBatch, 0, 5, 5}, {kStandard, 0, 8, 8}, {kCritical, 0, 4, 4}, {kStandard, 0, 2, 2}};
  const std::vector<double> amounts = share_budget(10, claims);
  CHECK(amounts[2] == doctest::Approx(4));
  CHECK(amounts[3] == doctest::Approx(2));
  CHECK(amounts[1] == doctest::Approx(4));
  CHECK(amounts[0] == 0);
}

// rule: BUDGET-01
TEST_CASE("the minimum of batch comes before the need of critical") {
  const std::vector<ShareClaim> claims = {{kBatch, 3, 9, 9}, {kCritical, 0, 9, 9}};
  const std::vector<double> amounts = share_budget(10, claims);
  CHECK(amounts[0] == doctest::Approx(3));
  CHECK(amounts[1] == doctest::Approx(7));
  // Minimums count even where they do not fit.
  CHECK(share_budget(2, claims) == std::vector<double>{3, 0});
}

// rule: BUDGET-02
TEST_CASE("what is left goes to those who want more, up to what their owners agree to") {
  const double any = std::numeric_limits<double>::infinity();
  const std::vector<ShareClaim> claims = {{kStandard, 0, 1, 4, true},
                                     {kStandard, 0, 1, any, true},
                                     {kStandard, 0, 1, 8, false},
                                     {kBatch, 0, 2, 9, true}};
  const std::vector<double> amounts = share_budget(20, claims);
  CHECK(amounts[0] == doctest::Approx(4));
  CHECK(amounts[1] == doctest::Approx(13));
  CHECK(amounts[2] == doctest::Approx(1));
  CHECK(amounts[3] == doctest::Approx(2));
  const std::vector<double> rich = share_budget(1000, {claims.data(), 1});
  CHECK(rich[0] == doctest::Approx(4));
}

// rule: BUDGET-01
// rule: BUDGET-02
TEST_CASE("nothing is promised twice, and nobody has less than a neighbour who could give") {
  std::mt19937 random(7);
  const auto amount = [&] { return std::uniform_real_distribution(0.0, 10.0)(random); };
  for (int round = 0; round < 2000; ++round) {
    CAPTURE(round);
    std::vector<ShareClaim> claims(std::uniform_int_distribution(0, 8)(random));
    double least = 0;
    for (ShareClaim& claim : claims) {
      claim.service_class = static_cast<ServiceClass>(std::uniform_int_distribution(0, 2)(random));
      claim.most = amount();
      claim.need = std::min(claim.most, amount());
      claim.least = round % 3 == 0 ? std::min(claim.need, amount()) : 0;
      claim.wants_more = round % 2 == 0;
      least += claim.least;
    }
    const double budget = 4 * amount();
    const std::vector<double> amounts = share_budget(budget, claims);
    CHECK(sum(amounts) <= std::max(budget, least) * (1 + 1e-9));
    for (std::size_t i = 0; i < claims.size(); ++i) {
      const ShareClaim& one = claims[i];
      CHECK(amounts[i] >= std::min(one.least, one.most));
      CHECK(amounts[i] <= one.most * (1 + 1e-9));
      const bool short_of = amounts[i] < one.need * (1 - 1e-6);
      for (std::size_t j = 0; j < claims.size() && short_of; ++j) {
        const ShareClaim& other = claims[j];
        // A lower class has its minimum only, and an equal one no more than this one.
        if (other.service_class > one.service_class)
          CHECK(amounts[j] <= other.least * (1 + 1e-6) + 1e-9);
        if (other.service_class == one.service_class)
          CHECK(amounts[j] <= std::max(amounts[i] * (1 + 1e-6) + 1e-9, other.least));
      }
    }
  }
}
