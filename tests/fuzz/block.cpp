// Packed samples from a file. Blocks that the reader accepts have 1 to 60 points, and packing them
// again yields the same points.
#include "storage/block.h"

#include <string_view>

#include "base/check.h"

using namespace cgphase;

namespace {

constexpr CgroupId kId{42, 1};

void check_packed_again(const std::vector<HistoryPoint>& points) {
  BlockWriter writer;
  for (const HistoryPoint& point : points) {
    if (!writer.accepts(point.time)) return;  // the reader accepts times that go back
    writer.add(point);
  }
  const auto again = read_block(writer.payload(), kId);
  CHECK_INVARIANT(again.has_value() && again->size() == points.size());
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK_INVARIANT((*again)[i].time == points[i].time);
    CHECK_INVARIANT(to_columns((*again)[i]) == to_columns(points[i]));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const auto points = read_block({reinterpret_cast<const char*>(bytes), size}, kId);
  if (!points) return 0;
  CHECK_INVARIANT(!points->empty() && points->size() <= static_cast<std::size_t>(kBlockPoints));
  check_packed_again(*points);
  return 0;
}
