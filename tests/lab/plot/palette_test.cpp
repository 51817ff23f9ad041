#include "lab/plot/palette.h"

#include <doctest/doctest.h>

#include <cmath>
#include <set>

#include "model/phase.h"

using namespace cgphase;

namespace {

// Relative luminance of "#rrggbb" and contrast (WCAG 2.1, 1.4.3).
double luminance(std::string_view color) {
  REQUIRE(color.size() == 7);
  double sum = 0;
  for (const auto& [place, weight] : {std::pair{1, 0.2126}, {3, 0.7152}, {5, 0.0722}}) {
    const std::string digits(color.substr(static_cast<std::size_t>(place), 2));
    const double part = std::stoi(digits, nullptr, 16) / 255.0;
    sum += weight * (part <= 0.04045 ? part / 12.92 : std::pow((part + 0.055) / 1.055, 2.4));
  }
  return sum;
}

double contrast(std::string_view a, std::string_view b) {
  const double one = luminance(a) + 0.05, other = luminance(b) + 0.05;
  return std::max(one, other) / std::min(one, other);
}

}  // namespace

TEST_CASE("letters on phases and text on paper have enough contrast") {
  for (const std::size_t count : {std::size_t{6}, std::size_t{9}})
    for (std::size_t i = 0; i < count; ++i) {
      const PhaseColor& color = phase_color(i, count);
      CAPTURE(color.fill);
      CHECK(contrast(color.fill, color.ink) >= 4.5);
    }
  CHECK(contrast(kInk, kPaper) >= 4.5);
  CHECK(contrast(kFaintInk, kPaper) >= 4.5);
}

TEST_CASE("no two phases look the same, up to the maximum of a model") {
  for (const std::size_t count : {6, 7, 9, 10, 32}) {
    CAPTURE(count);
    std::set<std::pair<std::string_view, std::size_t>> looks;
    std::set<std::string> letters;
    for (std::size_t i = 0; i < count; ++i) {
      looks.emplace(phase_color(i, count).fill, phase_round(i));
      letters.insert(phase_letter(static_cast<int>(i)));
    }
    CHECK(looks.size() == count);
    CHECK(letters.size() == count);
  }
}

TEST_CASE("six phases have the colours of Okabe and Ito, seven those of Tol") {
  CHECK(phase_color(0, 6).fill == "#0072b2");
  CHECK(phase_color(0, 7).fill == "#332288");
  CHECK(phase_color(9, 12).fill == phase_color(0, 12).fill);
}
