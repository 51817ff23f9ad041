// Which kernel files told something of one container: one that did and stopped is no longer
// trusted, one that never was there is not missed.
#pragma once

#include <cstdint>

#include "collectors/sample.h"

namespace cgphase {

class KnownSources {
 public:
  // Once per sample. True where this one lacks what an earlier one had.
  bool lost(const Sample& sample);

 private:
  std::uint32_t known_ = 0;  // a bit for each source
};

}  // namespace cgphase
