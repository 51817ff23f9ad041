// The newest samples of one series in windows of 60, 120 ... 960: what each of them reached.
// Bounded memory: the samples once, and of each window their places by value. A sample costs two
// searches and a shift in each window, a reading nothing. A value type; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cgphase {

class NestedWindows {
 public:
  static constexpr std::size_t kShortest = 60;  // the window of the phase-free controls
  static constexpr std::size_t kWindows = 5;    // each twice as long as the one before
  static constexpr std::size_t kLongest = kShortest << (kWindows - 1);

  void add(double value);
  std::size_t count() const { return count_; }  // samples ever added

  // Of the newest samples, as many as the window is long. Values are kept as float, rounded up.
  // Windows are told by index, shortest first, below windows(): without those that would hold no
  // more than a shorter one does; the last one holds everything while there is less than a window.
  std::size_t windows() const;
  double samples(std::size_t window) const;
  double mean(std::size_t window) const;
  double deviation(std::size_t window) const;
  // The largest after leaving out those that `risk` allows. There is a sample, and risk is below 1.
  double top(std::size_t window, double risk) const;

 private:
  struct Window {
    std::vector<std::uint16_t> rising;  // places in newest_, by value; of equal ones oldest first
    double sum = 0, squares = 0;
  };
  void begin_windows();
  void put_in_order(std::size_t window, float sample);
  void sum_anew(std::size_t window);

  std::array<Window, kWindows> windows_;
  std::vector<float> newest_;  // a ring of kLongest, as long as needed
  std::size_t count_ = 0;
};

}  // namespace cgphase
