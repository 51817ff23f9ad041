// A small random generator with the same numbers on every machine and library, unlike the
// distributions of <random>. SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number
// generators", OOPSLA 2014.
#pragma once

#include <cstdint>

namespace cgphase::workloads {

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }
  // In [0, 1).
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  // In [0, count); count > 0. The bias of the remainder does not matter here.
  std::uint64_t below(std::uint64_t count) { return next() % count; }
  // Mean 0, standard deviation 1, bounded by 3.5: the sum of four uniforms.
  float bell() {
    const double sum = uniform() + uniform() + uniform() + uniform() - 2.0;
    return static_cast<float>(sum * 1.7320508075688772);
  }

 private:
  std::uint64_t state_;
};

// One seed for each (seed, number): streams that do not depend on each other's length.
inline std::uint64_t derive_seed(std::uint64_t seed, std::uint64_t number) {
  return Random(seed * 0x9E3779B97F4A7C15ULL + number).next();
}

}  // namespace cgphase::workloads
