#include "control/write_deadline.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"

#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

namespace cgphase {
namespace {

constexpr std::chrono::milliseconds kRepeat{5};
// Zero would disarm the timer.
constexpr std::chrono::nanoseconds kAtOnce{1};

int interrupt_signal() { return SIGRTMIN + 2; }

void do_nothing(int) {}

timespec to_timespec(std::chrono::nanoseconds time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  return {static_cast<time_t>(time.count() / kSecond), static_cast<long>(time.count() % kSecond)};
}

}  // namespace

WriteDeadline::WriteDeadline() {
  struct sigaction action {};
  action.sa_handler = do_nothing;
  ::sigemptyset(&action.sa_mask);
  CHECK_INVARIANT(::sigaction(interrupt_signal(), &action, nullptr) == 0);
  sigset_t mine;
  ::sigemptyset(&mine);
  ::sigaddset(&mine, interrupt_signal());
  CHECK_INVARIANT(::pthread_sigmask(SIG_UNBLOCK, &mine, nullptr) == 0);
  struct sigevent event {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = interrupt_signal();
  event.sigev_notify_thread_id = static_cast<int>(::syscall(SYS_gettid));
  CHECK_INVARIANT(::timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0);
}

WriteDeadline::~WriteDeadline() { ::timer_delete(timer_); }

void WriteDeadline::arm(std::chrono::milliseconds after) {
  set(after > after.zero() ? std::chrono::nanoseconds(after) : kAtOnce, kRepeat);
  armed_.store(true);
}

void WriteDeadline::disarm() {
  armed_.store(false);
  set({}, {});
}

void WriteDeadline::expire_now() {
  // A race with disarm() leaves a running timer that interrupts nothing until the next disarm().
  if (armed_.load()) set(kAtOnce, kRepeat);
}

void WriteDeadline::set(std::chrono::nanoseconds after, std::chrono::nanoseconds interval) {
  const itimerspec spec{to_timespec(interval), to_timespec(after)};
  CHECK_INVARIANT(::timer_settime(timer_, 0, &spec, nullptr) == 0);
}

}  // namespace cgphase
