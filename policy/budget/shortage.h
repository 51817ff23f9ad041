// The host's lack of memory, for one container of class batch (core/shortage.h).
#pragma once

namespace cgphase {

struct Shortage {
  bool freeze = false;  // it should stand still now
  double bytes = 0;     // what all need above the host's budget; negative: so much is left
  friend bool operator==(const Shortage&, const Shortage&) = default;
};

}  // namespace cgphase
