// The newest samples of one series in nested windows of 60, 120 ... 960 samples. Samples are stored
// once. Adding one costs a few comparisons per window. A query is cheap unless its answer is far
// from the previous one; then it scans the whole window. A value type; one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cgphase {

class NestedWindows {
 public:
  static constexpr std::size_t kShortest = 60;  // the window of the phase-free controls
  static constexpr std::size_t kWindows = 5;    // each twice as long as the previous
  static constexpr std::size_t kLongest = kShortest << (kWindows - 1);

  // Without `moments` there is no mean() and no deviation(), which double the cost.
  explicit NestedWindows(bool moments = true) : moments_(moments) {}

  void add(double value);
  std::size_t count() const { return count_; }  // samples added so far

  // Statistics of the newest samples, as many as the window is long. Values are stored as float,
  // rounded up. The windows are numbered from the shortest, below windows(). Windows that would
  // contain no more than a shorter one are not counted. The last one contains everything until it
  // is full.
  std::size_t windows() const;
  double samples(std::size_t window) const { return static_cast<double>(held(window)); }
  double mean(std::size_t window) const;
  double deviation(std::size_t window) const;
  // The largest sample after leaving out as many as `risk` allows. There must be a sample, and risk
  // must be below 1. Not const: the next call starts from this answer.
  double top(std::size_t window, double risk);

 private:
  // The samples around the last answer of top(), in order. A sample that enters or leaves elsewhere
  // only shifts their rank.
  static constexpr std::size_t kNear = 32;
  struct Window {
    double sum = 0, squares = 0;
    std::array<float, kNear> near;  // descending; the first near_count are valid
    std::uint8_t near_count = 0;    // 0: not computed yet
    std::uint16_t above = 0;        // number of samples in the window that rank before them
    std::uint16_t left_out = 0;     // in the last call of top()
  };
  static void enter(Window& window, float sample);
  static void leave(Window& window, float sample);
  std::size_t held(std::size_t window) const;
  static void add_moments(Window& window, double added, double left);
  void begin_windows();
  void sum_anew(std::size_t window);
  void find_near(std::size_t window, std::size_t left_out);
  // The samples of a window are in the ring in at most two pieces.
  template <class Look>
  void each_piece(std::size_t window, Look look) const;

  bool moments_;
  std::vector<Window> windows_;  // the first, and those that contain more than a shorter one
  std::vector<float> newest_;  // a ring of kLongest, allocated as needed
  std::size_t count_ = 0;
};

}  // namespace cgphase
