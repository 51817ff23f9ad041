// A series of any length as a line of bounded length that looks the same. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace cgphase {

// One reading of a series; an absent one breaks the line, and so does a gap before it.
struct Reading {
  double x = 0;
  std::optional<double> y;
  bool gap = false;
};

struct LinePoint {
  double x = 0, y = 0;
  bool begins = false;  // the pen is lifted before it
};

// [from, to] is cut into `columns` (>= 1) of equal width, and of each the first lowest and the
// first highest reading stay, as they came: at most two points per column, and no peak is lost.
// The line is broken where a gap or an absent reading lies between columns that are not
// neighbours. Readings outside count to the outermost columns; where x runs backwards the envelope
// is still theirs. Only the columns are kept.
class Envelope {
 public:
  Envelope(double from, double to, int columns);

  void add(const Reading& reading);
  std::vector<LinePoint> line() const;

  bool any() const { return any_; }     // any reading that is not absent
  double most() const { return most_; }  // the highest, 0 where none is above it

 private:
  struct Extreme {
    double x = 0, y = 0;
    std::uint64_t number = 0;  // of the reading
  };
  struct Column {
    Extreme lowest, highest;
    bool used = false, begins = false;
  };

  double from_, to_;
  std::vector<Column> columns_;
  std::uint64_t readings_ = 0;
  int last_ = 0;  // the column of the last reading
  bool broken_ = true, any_ = false;
  double most_ = 0;
};

// The envelope of all of these.
std::vector<LinePoint> envelope(std::span<const Reading> readings, double from, double to,
                                int columns);

}  // namespace cgphase
