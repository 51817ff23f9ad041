#include "agent/server/event_loop.h"

#include <utility>  // before Asio 1.74, which uses std::exchange without it

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <fcntl.h>
#include <list>

namespace cgphase {

namespace asio = boost::asio;
using boost::system::error_code;

struct EventLoop::Timer::Impl {
  asio::steady_timer timer;
};

EventLoop::Timer::Timer(EventLoop& loop)
    : impl_(std::make_unique<Impl>(asio::steady_timer(loop.context()))) {}

EventLoop::Timer::~Timer() = default;

void EventLoop::Timer::at(MonotonicTime time, Work work) {
  impl_->timer.expires_at(std::chrono::time_point_cast<asio::steady_timer::duration>(time));
  wait(std::move(work));
}

void EventLoop::Timer::after(std::chrono::nanoseconds delay, Work work) {
  impl_->timer.expires_after(delay);
  wait(std::move(work));
}

void EventLoop::Timer::wait(Work work) {
  impl_->timer.async_wait([work = std::move(work)](const error_code& error) {
    if (!error) work();
  });
}

void EventLoop::Timer::cancel() { impl_->timer.cancel(); }

struct EventLoop::Impl {
  struct Descriptor {
    asio::posix::stream_descriptor readable;
    Work take;
  };

  void wait(Descriptor& descriptor) {
    descriptor.readable.async_wait(asio::posix::stream_descriptor::wait_read,
                                   [this, &descriptor](const error_code& error) {
                                     if (error) return;
                                     descriptor.take();
                                     wait(descriptor);
                                   });
  }
  void wait_for_signal() {
    signals.async_wait([this](const error_code& error, int number) {
      if (error) return;
      take_signal(number);
      wait_for_signal();
    });
  }

  asio::io_context io{1};
  asio::executor_work_guard<asio::io_context::executor_type> running{io.get_executor()};
  asio::signal_set signals{io, SIGTERM, SIGINT, SIGHUP};
  std::function<void(int)> take_signal;
  std::list<Descriptor> descriptors;
};

EventLoop::EventLoop() : impl_(std::make_unique<Impl>()) {}

EventLoop::~EventLoop() = default;

void EventLoop::post(Work work) { asio::post(impl_->io, std::move(work)); }

void EventLoop::watch(int fd, Work take) {
  if (fd < 0) return;
  impl_->wait(impl_->descriptors.emplace_back(
      asio::posix::stream_descriptor(impl_->io, ::fcntl(fd, F_DUPFD_CLOEXEC, 0)),
      std::move(take)));
}

void EventLoop::watch_signals(std::function<void(int)> take) {
  impl_->take_signal = std::move(take);
  impl_->wait_for_signal();
}

void EventLoop::run() { impl_->io.run(); }

void EventLoop::stop() { impl_->io.stop(); }

asio::io_context& EventLoop::context() { return impl_->io; }

}  // namespace cgphase
