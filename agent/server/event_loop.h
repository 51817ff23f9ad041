// The daemon's one loop: timers, descriptors that become readable, signals, and work that other
// threads hand over. It keeps Boost.Asio, whose headers take seconds to compile, out of its users.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "base/clock.h"

namespace boost::asio {
class io_context;
}

namespace cgphase {

// Used by the thread that runs it, except for post().
class EventLoop {
 public:
  using Work = std::function<void()>;

  // Does one piece of work at a time. The next one replaces it.
  class Timer {
   public:
    explicit Timer(EventLoop& loop);
    ~Timer();
    void at(MonotonicTime time, Work work);
    void after(std::chrono::nanoseconds delay, Work work);
    void cancel();

   private:
    struct Impl;
    void wait(Work work);
    std::unique_ptr<Impl> impl_;
  };

  // From now on SIGTERM, SIGINT and SIGHUP end nothing; they wait for watch_signals() and run().
  EventLoop();
  ~EventLoop();

  // From any thread.
  void post(Work work);
  // `take` each time that `fd` is readable; it must read. Duplicates `fd`. A negative one is none.
  void watch(int fd, Work take);
  void watch_signals(std::function<void(int)> take);
  // Until stop(), however little there is to do.
  void run();
  void stop();

  boost::asio::io_context& context();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cgphase
