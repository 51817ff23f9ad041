#include "lab/plot/envelope.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/check.h"

namespace cgphase {
namespace {

int column_of(double x, double from, double to, int columns) {
  const double share = to > from ? (x - from) / (to - from) : 0;
  return static_cast<int>(std::clamp(share * columns, 0.0, columns - 1.0));
}

}  // namespace

Envelope::Envelope(double from, double to, int columns) : from_(from), to_(to) {
  CHECK_INVARIANT(columns >= 1);
  columns_.resize(static_cast<std::size_t>(columns));
}

void Envelope::add(const Reading& reading) {
  broken_ |= reading.gap || !reading.y;
  const std::uint64_t number = readings_++;
  if (!reading.y) return;
  any_ = true;
  most_ = std::max(most_, *reading.y);
  const int place = column_of(reading.x, from_, to_, static_cast<int>(columns_.size()));
  Column& column = columns_[static_cast<std::size_t>(place)];
  const Extreme extreme{reading.x, *reading.y, number};
  if (!column.used) column = {extreme, extreme, true, broken_ && std::abs(place - last_) > 1};
  if (extreme.y < column.lowest.y) column.lowest = extreme;
  if (extreme.y > column.highest.y) column.highest = extreme;
  last_ = place;
  broken_ = false;
}

std::vector<LinePoint> Envelope::line() const {
  std::vector<LinePoint> line;
  for (const Column& column : columns_) {
    if (!column.used) continue;
    const bool rises = column.lowest.number < column.highest.number;
    const Extreme& first = rises ? column.lowest : column.highest;
    const Extreme& second = rises ? column.highest : column.lowest;
    line.push_back({first.x, first.y, column.begins || line.empty()});
    if (first.number != second.number) line.push_back({second.x, second.y, false});
  }
  return line;
}

}  // namespace cgphase
