// Who was recorded.
#pragma once

#include <cstdint>

#include "base/clock.h"
#include "collectors/containers/container_info.h"

namespace cgphase {

struct StoredContainer {
  ContainerInfo container;
  WallTime first_seen;
};
// The same with its number in the file, which keeps containers of different boots apart.
struct StoredRecord {
  std::int64_t record = 0;
  StoredContainer stored;
};

}  // namespace cgphase
