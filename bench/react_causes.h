// The ways in which bench_react brings a container into trouble under a lowered limit. Each has its
// process, and the values that the fast path can read of it.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "cgroupfs/limits.h"

namespace cgphase {

[[noreturn]] inline void fail(const std::string& text) { throw std::runtime_error(text); }
std::int64_t now_ns();
void pause_ms(int ms);
// The value of `key` in a flat keyed file of the kernel; 0 if it has none.
std::uint64_t value_of_key(int fd, std::string_view key);

// Shared between the benchmark and its children.
struct Shared {
  std::atomic<std::int64_t> first_ns;  // start of the step that was stopped; 0 before that
  std::atomic<bool> lowered;
};

// The source from which the fast path learns of the trouble.
enum class Teller { psi, inotify, poll };

// One way to get into trouble under a lowered limit.
struct Cause {
  const char* name;
  Knob knob;
  const char *original, *lowered;
  // The PSI trigger that reports it, or null.
  const char *trigger_file, *trigger;
  // The values that the fast path's rule needs: `key` of `file` from `least` on, or a value of 0 if
  // `least` is 0. It is enough from `least_told` on if the trigger reports a stall.
  const char *file, *key;
  std::uint64_t least, least_told;
  bool file_is_told;  // inotify reports its changes
  // How often the fast path checks after the trigger fired, because the file changes later. 0: one
  // check is enough.
  std::chrono::milliseconds looks;
  // Runs in each child, from before the limit is lowered. Null: the child is idle, and its end is
  // the cause.
  void (*work)(Shared& shared, int go, const std::string& group, const std::string& data_file);
  int children;
  std::uint64_t used_before;  // bytes in use before its limit is lowered
  int settle_ms;              // how long it runs before that
};
extern const std::array<Cause, 6> kCauses;
// `told`: whether the trigger has just fired.
bool evident(const Cause& cause, int fd, bool told);

inline constexpr std::size_t kDataFileBytes = 24 * 1024 * 1024;
void make_data_file(const std::string& path);

// A child in the cgroup. It and its children end with the benchmark.
class Child {
 public:
  Child(const std::string& directory, const std::function<void()>& work);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

 private:
  pid_t pid_;
};

}  // namespace cgphase
