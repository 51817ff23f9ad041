// The newest samples of one series in windows of 60, 120 ... 960: what each of them reached.
// Bounded memory: the samples once. A sample costs some comparisons in each window; a reading
// little, unless the answer is far from the last one: that costs a look at all. A value type; one
// thread.
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

  // Without `moments` there is no mean() and no deviation(), which cost as much as all the rest.
  explicit NestedWindows(bool moments = true) : moments_(moments) {}

  void add(double value);
  std::size_t count() const { return count_; }  // samples ever added

  // Of the newest samples, as many as the window is long. Values are kept as float, rounded up.
  // Windows are told by index, shortest first, below windows(): without those that would hold no
  // more than a shorter one does; the last one holds everything while there is less than a window.
  std::size_t windows() const;
  double samples(std::size_t window) const { return static_cast<double>(held(window)); }
  double mean(std::size_t window) const;
  double deviation(std::size_t window) const;
  // The largest after leaving out those that `risk` allows. There is a sample, and risk is below 1.
  // Not const: the next call goes on from the answer.
  double top(std::size_t window, double risk);

 private:
  // In order, the samples around the one that top() told last: what comes or goes elsewhere moves
  // them by a rank, and is not looked at.
  static constexpr std::size_t kNear = 32;
  struct Window {
    double sum = 0, squares = 0;
    std::array<float, kNear> near;  // falling; the first near_count
    std::uint8_t near_count = 0;    // 0: not asked yet
    std::uint16_t above = 0;        // so many of the window rank before them
    std::uint16_t left_out = 0;     // as top() was asked last
  };
  static void enter(Window& window, float sample);
  static void leave(Window& window, float sample);
  std::size_t held(std::size_t window) const;
  static void add_moments(Window& window, double added, double left);
  void begin_windows();
  void sum_anew(std::size_t window);
  void find_near(std::size_t window, std::size_t left_out);
  // The samples of a window lie in the ring in at most two pieces.
  template <class Look>
  void each_piece(std::size_t window, Look look) const;

  bool moments_;
  std::vector<Window> windows_;  // those that hold more than a shorter one does, and the first
  std::vector<float> newest_;  // a ring of kLongest, as long as needed
  std::size_t count_ = 0;
};

}  // namespace cgphase
