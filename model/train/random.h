// Random numbers that are the same on every machine and with every version of the library.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace cgphase {

// xoshiro256** seeded by splitmix64 (Blackman and Vigna, "Scrambled linear pseudorandom number
// generators", ACM TOMS 2021). A value: copies continue independently.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t next();
  double uniform();                        // [0, 1), 53 bits
  std::size_t below(std::size_t bound);    // [0, bound), bound > 0
  double normal();                         // mean 0, deviation 1 (Marsaglia's polar method)

  // Fisher-Yates.
  template <class T>
  void shuffle(std::span<T> values) {
    for (std::size_t i = values.size(); i > 1; --i) std::swap(values[i - 1], values[below(i)]);
  }

 private:
  std::array<std::uint64_t, 4> state_;
};

}  // namespace cgphase
