// A process that is short of descriptors, as long as this lives.
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

namespace cgphase {

// Not many more than those that are open now. Above those is no free one, for the kernel gives out
// the lowest.
class FewDescriptors {
 public:
  explicit FewDescriptors(int more) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const int next = ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    REQUIRE(next >= 0);
    ::close(next);
    rlimit few = before_;
    few.rlim_cur = static_cast<rlim_t>(next + more);
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &few) == 0);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

}  // namespace cgphase
