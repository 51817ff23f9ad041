// What the containers of one user may take up of the journal, so that those who come and go in a
// loop do not push out what is told of others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace cgphase {

// Of decisions that were refused. Others are few: the safety rules see to it. Used by the agent's
// thread.
class JournalShare {
 public:
  // Of one user's containers: so many at once, and so many from then on.
  static constexpr double kAtOnce = 300, kPerMinute = 10;

  // Whether one is journaled. `owner` as in ContainerInfo; who is no ordinary user has no bound.
  bool take(std::string_view owner, MonotonicTime now);

  // So many were not, since the start.
  std::uint64_t left_out() const { return left_out_; }

 private:
  struct User {
    double left = kAtOnce;
    MonotonicTime filled;
  };
  std::map<std::string, User, std::less<>> users_;
  std::uint64_t left_out_ = 0;
};

}  // namespace cgphase
