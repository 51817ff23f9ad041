// Reduces a series of any length to a line of bounded length that looks the same. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace cgphase {

// One reading of a series. An absent reading breaks the line, and so does a gap before it.
struct Reading {
  double x = 0;
  std::optional<double> y;
  bool gap = false;
};

struct LinePoint {
  double x = 0, y = 0;
  bool begins = false;  // starts a new line
};

// Divides [from, to] into `columns` (>= 1) of equal width. Of each column the first lowest and the
// first highest reading are kept, in their order: at most two points per column, and no peak is
// lost.
//
// The line is broken if a gap or an absent reading is between columns that are not neighbours.
// Readings outside belong to the outermost columns. x may run backwards. Memory: the columns only.
class Envelope {
 public:
  Envelope(double from, double to, int columns);

  void add(const Reading& reading);
  std::vector<LinePoint> line() const;

  bool any() const { return any_; }     // true if any reading is present
  double most() const { return most_; }  // the highest reading, at least 0

 private:
  struct Extreme {
    double x = 0, y = 0;
    std::uint64_t number = 0;  // number of the reading
  };
  struct Column {
    Extreme lowest, highest;
    bool used = false, begins = false;
  };

  double from_, to_;
  std::vector<Column> columns_;
  std::uint64_t readings_ = 0;
  int last_ = 0;  // column of the last reading
  bool broken_ = true, any_ = false;
  double most_ = 0;
};

}  // namespace cgphase
