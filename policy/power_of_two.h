// 2^x with a fixed order of operations: the C library's exp2 differs by processor.
#pragma once

#include <cmath>

namespace cgphase {

inline double power_of_two(double x) {
  if (x < -1000) return 0;
  const double whole = std::floor(x);
  const double y = (x - whole) * 0.69314718055994530942;
  double term = 1, sum = 1;
  for (int i = 1; i <= 18; ++i) {
    term = term * y / i;
    const double more = sum + term;
    if (more == sum) break;  // nor do the smaller ones that follow change it
    sum = more;
  }
  return std::ldexp(sum, static_cast<int>(whole));
}

}  // namespace cgphase
