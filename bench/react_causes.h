// What bench_react does to a container: the ways into trouble under a lowered limit, each with the
// process that gets there and what the guard can read of it.
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
// The value of `key` in a flat-keyed file of the kernel; 0 where there is none.
std::uint64_t value_of_key(int fd, std::string_view key);

// Between the benchmark and its children.
struct Shared {
  std::atomic<std::int64_t> first_ns;  // when the step began that was held back; 0 before that
  std::atomic<bool> lowered;
};

// How the guard learns of trouble.
enum class Teller { psi, inotify, poll };

// One way to get into trouble under a lowered limit.
struct Cause {
  const char* name;
  Knob knob;
  const char *original, *lowered;
  // The PSI trigger that tells of it; null: none.
  const char *trigger_file, *trigger;
  // What the guard's rule needs to read: `key` of `file` from `least` on, or, where `least` is 0,
  // a value of 0. From `least_told` on while the trigger tells of a stall.
  const char *file, *key;
  std::uint64_t least, least_told;
  bool file_is_told;  // inotify tells that it has changed
  // How often the guard looks after the trigger has told, because the file changes later; 0: it
  // does not need to.
  std::chrono::milliseconds looks;
  // In each child, from before the limit is lowered; null: it rests, and its end is the cause.
  void (*work)(Shared& shared, int go, const std::string& group, const std::string& data_file);
  int children;
  std::uint64_t used_before;  // bytes that the container has before its limit is lowered
  int settle_ms;              // how long it goes on before that
};
extern const std::array<Cause, 6> kCauses;
// `told`: the trigger tells just now.
bool evident(const Cause& cause, int fd, bool told);

inline constexpr std::size_t kDataFileBytes = 24 * 1024 * 1024;
void make_data_file(const std::string& path);

// A child of the cgroup. It and all its kind end with the benchmark.
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
