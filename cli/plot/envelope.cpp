#include "cli/plot/envelope.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "base/check.h"

namespace cgphase {
namespace {

struct Column {
  std::size_t lowest = 0, highest = 0;  // readings
  bool used = false, begins = false;
};

int column_of(double x, double from, double to, int columns) {
  const double share = to > from ? (x - from) / (to - from) : 0;
  return std::clamp(static_cast<int>(share * columns), 0, columns - 1);
}

std::vector<Column> fill(std::span<const Reading> readings, double from, double to, int columns) {
  std::vector<Column> filled(static_cast<std::size_t>(columns));
  int last = 0;
  bool broken = true;
  for (std::size_t i = 0; i < readings.size(); ++i) {
    broken |= readings[i].gap || !readings[i].y;
    if (!readings[i].y) continue;
    const int place = column_of(readings[i].x, from, to, columns);
    Column& column = filled[static_cast<std::size_t>(place)];
    if (!column.used) column = {i, i, true, broken && std::abs(place - last) > 1};
    if (*readings[i].y < *readings[column.lowest].y) column.lowest = i;
    if (*readings[i].y > *readings[column.highest].y) column.highest = i;
    last = place;
    broken = false;
  }
  return filled;
}

}  // namespace

std::vector<LinePoint> envelope(std::span<const Reading> readings, double from, double to,
                                int columns) {
  CHECK_INVARIANT(columns >= 1);
  std::vector<LinePoint> line;
  const auto add = [&](std::size_t index, bool begins) {
    line.push_back({readings[index].x, *readings[index].y, begins});
  };
  for (const Column& column : fill(readings, from, to, columns)) {
    if (!column.used) continue;
    add(std::min(column.lowest, column.highest), column.begins || line.empty());
    if (column.lowest != column.highest) add(std::max(column.lowest, column.highest), false);
  }
  return line;
}

}  // namespace cgphase
