// Decides which system calls fail, and how: at random, or exactly the n-th.
#pragma once

#include <array>
#include <cerrno>
#include <cstdint>

#include "tests/simulator/random.h"
#include "tests/simulator/system_calls.h"

namespace cgphase::simulator {

struct FaultPlan {
  std::uint64_t one_in = 0;    // one call in this many; 0: none at random
  std::uint64_t burst = 1;     // maximum number in a row
  std::uint64_t at_call = 0;   // the first call that certainly fails, counted from 1; 0: none
  std::uint64_t calls = 1;     // number of failing calls from there on
  int error = 0;               // for at_call; 0: random
  bool only_writes = false;    // only writes count and fail
};

class Faults {
 public:
  Faults(const FaultPlan& plan, std::uint64_t seed) : plan_(plan), random_(seed + plan.at_call) {}

  // 0, an errno, or kShortRead.
  int next(const Call& call) {
    if (plan_.only_writes && call.kind != Call::Kind::write) return 0;
    ++calls_;
    if (plan_.at_call != 0 && calls_ >= plan_.at_call && calls_ < plan_.at_call + plan_.calls)
      return count(plan_.error != 0 ? plan_.error : some_error(call.kind));
    if (left_ == 0 && random_.one_in(plan_.one_in)) left_ = random_.between(1, plan_.burst);
    if (left_ == 0) return 0;
    --left_;
    return count(some_error(call.kind));
  }
  void stop() { plan_ = {}, left_ = 0; }
  std::uint64_t injected() const { return injected_; }
  std::uint64_t calls() const { return calls_; }

 private:
  int count(int error) {
    ++injected_;
    return error;
  }
  // A random error that the kernel may return for such a call on such a file.
  int some_error(Call::Kind kind) {
    static constexpr std::array<int, 4> kOpen = {EMFILE, ENFILE, ENOMEM, EACCES};
    static constexpr std::array<int, 4> kRead = {EIO, ENOMEM, EINTR, kShortRead};
    static constexpr std::array<int, 4> kWrite = {EIO, ENOMEM, EINTR, EBUSY};
    static constexpr std::array<int, 2> kLook = {ENOMEM, EACCES};
    switch (kind) {
      case Call::Kind::open: return kOpen[random_.below(kOpen.size())];
      case Call::Kind::read: return kRead[random_.below(kRead.size())];
      case Call::Kind::write: return kWrite[random_.below(kWrite.size())];
      case Call::Kind::look: return kLook[random_.below(kLook.size())];
    }
    return EIO;
  }

  FaultPlan plan_;
  Random random_;
  std::uint64_t calls_ = 0, left_ = 0, injected_ = 0;
};

}  // namespace cgphase::simulator
