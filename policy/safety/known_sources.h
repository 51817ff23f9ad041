// Records which kernel files reported values for one container. If such a file stops, the data are
// no longer trusted. A file that never existed is not missed.
#pragma once

#include <cstdint>

#include "collectors/sample.h"

namespace cgphase {

class KnownSources {
 public:
  // Call it once per sample. Returns true if this sample lacks a source that an earlier one had.
  bool lost(const Sample& sample);

 private:
  std::uint32_t known_ = 0;  // a bit for each source
};

}  // namespace cgphase
