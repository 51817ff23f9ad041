// A recorded container.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "collectors/containers/container_info.h"

namespace cgphase {

struct StoredContainer {
  ContainerInfo container;
  WallTime first_seen;
};
// With its number in the file, which is unique across boots.
struct StoredRecord {
  std::int64_t record = 0;
  StoredContainer stored;
};

}  // namespace cgphase
