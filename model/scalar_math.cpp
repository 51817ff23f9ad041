#include "model/scalar_math.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "model/clones.h"

namespace cgphase {
namespace {

// ln 2 in two parts. The first has 33 significant bits, so that its product with an exponent is
// exact.
constexpr double kLn2High = 0x1.62e42fefap-1;
constexpr double kLn2Low = 0x1.cf79abc9e3b3ap-40;
constexpr double kLog2E = 0x1.71547652b82fep+0;
constexpr double kLeastExponent = -745.2;  // e to a smaller power is 0
constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr int kMantissaBits = 52;
constexpr int kExponentBias = 1023;

double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kExponentBias)
                               << kMantissaBits);
}

constexpr int kExpTerms = 14;  // for |r| <= ln(2) / 2 the first term left out is below 2^-58
constexpr std::array<double, kExpTerms> kInverseFactorials = [] {
  std::array<double, kExpTerms> terms{};
  double factorial = 1;
  for (std::size_t n = 0; n < kExpTerms; ++n)
    terms[n] = 1 / (factorial *= static_cast<double>(n + 1));
  return terms;
}();

// Taylor series of e^r.
double exp_of_remainder(double r) {
  double sum = 0;
  for (std::size_t n = kExpTerms; n-- > 0;) sum = sum * r + kInverseFactorials[n];
  // The last step adds the small part to 1 once, which keeps the rounding error below one unit.
  return 1 + r * sum;
}

constexpr int kLogTerms = 12;
constexpr std::array<double, kLogTerms> kOddInverses = [] {
  std::array<double, kLogTerms> terms{};
  for (std::size_t n = 0; n < kLogTerms; ++n) terms[n] = 1 / static_cast<double>(2 * n + 3);
  return terms;
}();

// Series of log((1+s)/(1-s)) / s = 2 (1 + s^2/3 + s^4/5 + ...) without its leading 2.
double log_series(double square) {
  double sum = 0;
  for (std::size_t n = kLogTerms; n-- > 0;) sum = (sum + kOddInverses[n]) * square;
  return 2 * sum;
}

struct Parts {
  double mantissa;  // in [sqrt(1/2), sqrt(2))
  int exponent;
};

// `x` is positive, finite and normal.
Parts split(double x) {
  constexpr std::uint64_t kMantissaMask = (std::uint64_t{1} << kMantissaBits) - 1;
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> kMantissaBits) - kExponentBias;
  double mantissa = std::bit_cast<double>((bits & kMantissaMask) |
                                          (std::uint64_t{kExponentBias} << kMantissaBits));
  if (mantissa > 0x1.6a09e667f3bcdp+0) {
    mantissa *= 0.5;
    ++exponent;
  }
  return {mantissa, exponent};
}

}  // namespace

double portable_exp(double x) {
  if (std::isnan(x)) return x;
  if (x > 709.782712893384) return kInfinity;
  if (x < kLeastExponent) return 0;
  const double turns = std::floor(x * kLog2E + 0.5);
  const double remainder = (x - turns * kLn2High) - turns * kLn2Low;
  const int exponent = static_cast<int>(turns);
  // Two factors are needed, because 2^exponent may be out of range although the result is not.
  const int half = exponent / 2;
  return exp_of_remainder(remainder) * power_of_two(half) * power_of_two(exponent - half);
}

double portable_log(double x) {
  if (std::isnan(x) || x < 0) return std::numeric_limits<double>::quiet_NaN();
  if (x == 0) return -kInfinity;
  if (x == kInfinity) return x;
  int denormal_shift = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    denormal_shift = 54;
  }
  const Parts parts = split(x);
  const double exponent = parts.exponent - denormal_shift;
  const double f = parts.mantissa - 1;
  const double s = f / (2 + f);
  // log(1+f) = f - s (f - R), R the series: f is exact, so the correction carries the error.
  const double correction = s * (f - log_series(s * s));
  return exponent * kLn2High + (f - (correction - exponent * kLn2Low));
}

double portable_log1p(double x) {
  const double sum = 1 + x;
  if (sum == 1) return x;
  if (sum <= 0 || std::isnan(sum) || sum == kInfinity) return portable_log(sum);
  // Kahan: the rounding error of 1 + x cancels in the quotient.
  return portable_log(sum) * (x / (sum - 1));
}

// Both branches of portable_sigmoid use e^-|x|. There is no branch and no call here, so that the
// compiler can compute several values at a time.
CGPHASE_CLONES void portable_sigmoids(double* values, int count) {
  for (int i = 0; i < count; ++i) {
    const double x = values[i];
    const double power = -std::abs(x);
    const double safe = power >= kLeastExponent ? power : kLeastExponent;  // nan, too
    const double turns = std::floor(safe * kLog2E + 0.5);
    const double remainder = (safe - turns * kLn2High) - turns * kLn2Low;
    double sum = 0;
#pragma GCC unroll 16
    for (std::size_t n = kExpTerms; n-- > 0;) sum = sum * remainder + kInverseFactorials[n];
    const int exponent = static_cast<int>(turns);
    const int half = exponent / 2;
    const double computed =
        (1 + remainder * sum) * power_of_two(half) * power_of_two(exponent - half);
    const double e = power >= kLeastExponent ? computed : power < kLeastExponent ? 0 : power;
    values[i] = (x >= 0 ? 1 : e) / (1 + e);
  }
}

double portable_sigmoid(double x) {
  if (x >= 0) return 1 / (1 + portable_exp(-x));
  const double e = portable_exp(x);
  return e / (1 + e);
}

}  // namespace cgphase
