// The random numbers of a seed. They are the same on every machine, unlike the distributions of the
// standard library.
#pragma once

#include <cstdint>
#include <random>

namespace cgphase::simulator {

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  std::uint64_t below(std::uint64_t bound) { return engine_() % bound; }
  std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    return low + below(high - low + 1);
  }
  // Never for 0.
  bool one_in(std::uint64_t chances) { return chances != 0 && below(chances) == 0; }
  double share() { return static_cast<double>(below(1'000'001)) / 1e6; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace cgphase::simulator
