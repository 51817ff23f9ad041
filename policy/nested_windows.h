// The newest samples of one series in windows of 60, 120 ... 960: what each of them reached.
// Bounded memory, one pass over a hundred blocks per reading. A value type; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace cgphase {

class NestedWindows {
 public:
  static constexpr std::size_t kShortest = 60;  // the window of the phase-free controls
  static constexpr std::size_t kWindows = 5;    // each twice as long as the one before
  static constexpr std::size_t kLongest = kShortest << (kWindows - 1);

  // A window may leave out its largest samples, those that the accepted `risk` allows: `top` is
  // the largest of the rest.
  explicit NestedWindows(double risk) : risk_(risk) {}

  void add(double value);
  std::size_t count() const { return count_; }  // samples ever added

  struct Reading {
    double samples = 0;
    double top = 0, mean = 0, deviation = 0;
  };
  // Shortest first; the last one holds everything while there is less than a window.
  std::vector<Reading> readings() const;

 private:
  // Blocks make a reading cheap; a window is whole blocks and the one that is being filled.
  static constexpr std::size_t kBlock = 10;
  static constexpr std::size_t kBlocks = kLongest / kBlock + 1;
  static constexpr std::size_t kKept = kBlocks * kBlock;
  struct Block {
    double largest = 0, sum = 0, squares = 0;
    std::size_t samples = 0;
  };
  class Largest;

  double risk_;
  std::array<Block, kBlocks> blocks_{};
  std::vector<float> values_;  // a ring of kKept, as long as needed
  std::size_t count_ = 0;
};

}  // namespace cgphase
