#include "bench/react_listener.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace cgphase {
namespace {

constexpr int kLookMs = 1;

}  // namespace

Listener::Listener(const std::string& group, const Cause& cause, Teller teller)
    : cause_(cause), end_(::eventfd(0, EFD_CLOEXEC)) {
  const std::string file = group + "/" + cause.file;
  file_ = Fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file_.valid()) fail(file + " cannot be read");
  if (teller == Teller::psi) {
    const std::string_view trigger = cause.trigger;
    told_ = Fd(::open((group + "/" + cause.trigger_file).c_str(), O_RDWR | O_CLOEXEC));
    if (::write(told_.get(), trigger.data(), trigger.size() + 1) < 0) fail("no PSI trigger");
    wanted_ = POLLPRI;
  }
  if (teller == Teller::inotify) {
    told_ = Fd(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
    if (::inotify_add_watch(told_.get(), file.c_str(), IN_MODIFY) < 0) fail("no inotify");
    wanted_ = POLLIN;
  }
  thread_ = std::thread([this] { listen(); });
  const sched_param first{.sched_priority = 10};
  ::pthread_setschedparam(thread_.native_handle(), SCHED_FIFO, &first);
}

Listener::~Listener() { stop(); }

Seen Listener::stop() {
  if (thread_.joinable()) {
    ::eventfd_write(end_.get(), 1);
    thread_.join();
  }
  return seen_;
}

void Listener::listen() {
  std::array<pollfd, 2> fds = {pollfd{end_.get(), POLLIN, 0}, pollfd{told_.get(), wanted_, 0}};
  for (;;) {
    const bool done = seen_.evident != 0 && (!told_.valid() || seen_.told_enough != 0);
    ::poll(fds.data(), fds.size(), done ? -1 : kLookMs);
    if (fds[0].revents != 0) return;
    const bool told = fds[1].revents != 0;
    look(told);
    std::array<char, 4096> events;
    if (told && wanted_ == POLLIN && ::read(told_.get(), events.data(), events.size()) < 0) return;
    if (seen_.told_enough != 0) fds[1].fd = -1;
  }
}

void Listener::look(bool told) {
  const std::int64_t now = now_ns();
  if (told && seen_.told == 0) seen_.told = now;
  if (cause_.knob == Knob::cpu_max && seen_.first_throttled == 0)
    if (const std::uint64_t usec = value_of_key(file_.get(), cause_.key); usec > 0)
      seen_.first_throttled = now - static_cast<std::int64_t>(usec) * 1000;
  if (seen_.evident != 0 && !told) return;
  if (!evident(cause_, file_.get(), told && wanted_ == POLLPRI)) return;
  if (seen_.evident == 0) seen_.evident = now;
  if (told && seen_.told_enough == 0) seen_.told_enough = now;
}

std::vector<double> measure_wakeups(int count, int pause) {
  const Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event wanted{.events = EPOLLIN, .data = {}};
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &wanted);
  std::atomic<std::int64_t> woken_at{0};
  std::vector<double> took;
  std::thread sleeper([&] {
    for (int i = 0; i < count; ++i) {
      epoll_event event;
      while (::epoll_wait(epoll.get(), &event, 1, -1) != 1) {
      }
      const std::int64_t now = now_ns();
      eventfd_t value;
      ::eventfd_read(wake.get(), &value);
      woken_at.store(now);  // from here on it may be woken again
    }
  });
  for (int i = 0; i < count; ++i) {
    pause_ms(pause);
    woken_at.store(0);
    const std::int64_t asked = now_ns();
    ::eventfd_write(wake.get(), 1);
    while (woken_at.load() == 0) pause_ms(1);
    took.push_back(static_cast<double>(woken_at.load() - asked) / 1e6);
  }
  sleeper.join();
  return took;
}

}  // namespace cgphase
