// 2^x with a fixed order of operations. The C library's exp2 depends on the processor.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace cgphase {

// The relative error is below 1e-15. The result is 0 below -1000; x must not be above 1000.
inline double power_of_two(double x) {
  if (x < -1000) return 0;
  constexpr double kLn2 = 0.69314718055994530942;
  // ln(2)^i / i!. The series of e^(y ln 2) for y in [-1/2, 1/2] is exact with these terms.
  constexpr int kTerms = 14;
  constexpr auto kCoefficients = [] {
    struct { double at[kTerms + 1]; } series{};
    double term = series.at[0] = 1;
    for (int i = 1; i <= kTerms; ++i) series.at[i] = term = term * kLn2 / i;
    return series;
  }();
  const double whole = std::floor(x + 0.5);
  const double y = x - whole;
  double sum = kCoefficients.at[kTerms];
  for (int i = kTerms - 1; i >= 0; --i) sum = sum * y + kCoefficients.at[i];
  const auto exponent = static_cast<std::int64_t>(whole) + 1023;
  return sum * std::bit_cast<double>(exponent << 52);
}

}  // namespace cgphase
