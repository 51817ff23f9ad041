// A made-up busy container, for the tests of storage/ and its benchmark.
#pragma once

#include <cstdint>

#include "storage/store.h"

namespace cgphase::test {

WallTime at_second(double second);

// What a busy container looks like from one second to the next; at_second(second) and a little.
HistoryPoint busy_point(CgroupId id, std::uint64_t second);

}  // namespace cgphase::test
