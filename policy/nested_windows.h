// The newest samples of one series in windows of 60, 120 ... 960: what each of them reached.
// Bounded memory; a sample costs a search and a shift in each window, a reading nothing. A value
// type; one thread.
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

  void add(double value);
  std::size_t count() const { return count_; }  // samples ever added

  // The newest samples, as many as the window is long. Values are kept as float, rounded up.
  class Window {
   public:
    double samples() const { return static_cast<double>(sorted_.size()); }
    double mean() const;
    double deviation() const;
    // The largest after leaving out those that `risk` allows. There is a sample, and risk is
    // below 1.
    double top(double risk) const;

   private:
    friend class NestedWindows;
    void push(float value);
    void replace(float oldest, float value);
    std::vector<float> sorted_;  // rising
    double sum_ = 0, squares_ = 0;
  };
  // Shortest first, without those that would hold no more than a shorter one does; the last one
  // holds everything while there is less than a window.
  std::size_t windows() const;
  const Window& window(std::size_t index) const { return windows_[index]; }

 private:
  void begin_windows();
  void sum_anew(std::size_t index);

  std::array<Window, kWindows> windows_;
  std::vector<float> newest_;  // a ring of kLongest, as long as needed
  std::size_t count_ = 0;
};

}  // namespace cgphase
