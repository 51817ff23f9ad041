// Makes the threads of KernelLimitWriter take turns with the thread of the test. After each change
// that is submitted the test waits until it is answered; a lowering that the simulated kernel
// blocks is parked, and the test goes on until it is due or interrupted, as the agent would.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cgphase::simulator {

class Lanes {
 public:
  // --- the thread of the test ---
  // The descriptor by which the writer says that it has answered.
  void watch(int result_fd) { result_fd_.store(result_fd); }
  void submitted(bool raise);
  // Waits until no raise is unanswered, and no lowering but a parked one.
  void settle();
  bool parked();
  bool waiting() const { return waiting_.load(); }  // in settle()
  // When the parked write would be done by itself.
  std::int64_t parked_until_ns();
  // The parked write returns now; waits for what the thread does then.
  void resume(bool interrupted);
  void forget_unanswered();  // the writer has ended

  // --- the writer's threads, or the one that submits where it is refused at once ---
  enum class By { raising, lowering, submitter };
  void answered(int fd, By by);
  // True when it was interrupted.
  bool park(std::int64_t until_ns);

  // The deadline of the lowering thread, empty while it is not armed.
  void set_deadline(std::optional<std::int64_t> at_ns);
  std::optional<std::int64_t> deadline_ns();

 private:
  std::atomic<int> result_fd_{-1};
  std::atomic<bool> waiting_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  int raises_ = 0, lowerings_ = 0;  // not yet answered
  bool raise_submitted_ = false;
  bool parked_ = false, resumed_ = false, interrupted_ = false;
  std::int64_t until_ns_ = 0;
  std::optional<std::int64_t> deadline_ns_;
};

// Those of this process.
Lanes& lanes();

}  // namespace cgphase::simulator
