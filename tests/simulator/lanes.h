// Makes the threads of KernelLimitWriter take turns with the test's thread. After each submitted
// change the test waits for the answer. A lowering that blocks in the simulated kernel is parked.
// The test then continues until the lowering is due or interrupted, as the agent would.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>

namespace cgphase::simulator {

class Lanes {
 public:
  // --- called by the test's thread ---
  // Sets the descriptor on which the writer reports answers.
  void watch(int result_fd) { result_fd_.store(result_fd); }
  void submitted(bool raise);
  // Waits until every raise is answered, and every lowering except a parked one.
  void settle();
  bool parked();
  bool waiting() const { return waiting_.load(); }  // in settle()
  // The time at which the parked write would end by itself.
  std::int64_t parked_until_ns();
  // Lets the parked write return, and waits for the work that the thread then does.
  void resume(bool interrupted);
  void forget_unanswered();  // the writer has ended

  // --- called by the writer's threads, or by the submitting thread if it is refused at once ---
  enum class By { raising, lowering, submitter };
  void answered(int fd, By by);
  // Returns true if it was interrupted.
  bool park(std::int64_t until_ns);

  // The deadline of the lowering thread. Empty while it is not armed.
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

// The instance of this process.
Lanes& lanes();

}  // namespace cgphase::simulator
