// Bursts of memory against a lowered limit, with the default margins. A container that needs 96 MiB
// of 1 GiB is lowered. Then it allocates 512 MiB more as fast as the machine allows, and must
// survive. CGPHASE_BURST_ROUNDS sets the rounds of each kind. The delay of each kind is printed.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "policy/safety/limit_arithmetic.h"
#include "tests/kernel/control_fixture.h"

using namespace cgphase;

namespace {

constexpr std::size_t kBase = 96 * kMiB, kLimit = kGiB;

int rounds() {
  const char* text = ::getenv("CGPHASE_BURST_ROUNDS");
  return text == nullptr ? 3 : std::max(1, ::atoi(text));
}

char* map(std::size_t bytes, int flags) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (memory == MAP_FAILED) ::_exit(5);
  return static_cast<char*>(memory);
}

void populated(std::size_t bytes) { (void)map(bytes, MAP_POPULATE); }

// Like malloc() and the first write to its memory.
void touched(std::size_t bytes) { touch(bytes); }

int shared_file(const char* name) {
  const int fd = ::memfd_create(name, MFD_CLOEXEC);
  if (fd < 0) ::_exit(6);
  return fd;
}

void allocated(std::size_t bytes) {
  if (::posix_fallocate(shared_file("fallocate"), 0, static_cast<off_t>(bytes)) != 0) ::_exit(7);
}

// In one call, from one small buffer. A large buffer would use as much memory again.
void written(std::size_t bytes) {
  std::vector<char> buffer(kMiB);
  const std::vector<iovec> pieces(bytes / buffer.size(), {buffer.data(), buffer.size()});
  const int file = shared_file("write");
  const ssize_t count = ::writev(file, pieces.data(), static_cast<int>(pieces.size()));
  if (count != static_cast<ssize_t>(bytes)) ::_exit(8);
}

// Huge pages if the kernel has transparent ones, else small pages.
void huge(std::size_t bytes) {
  char* memory = map(bytes, 0);
  (void)::madvise(memory, bytes, MADV_HUGEPAGE);
  if (::madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return;
  for (std::size_t at = 0; at < bytes; at += 4096) memory[at] = 1;
}

struct Kind {
  std::string name;
  void (*burst)(std::size_t bytes);
  std::size_t bytes;
};

// The limit to which the safety rules would lower, from its need alone.
std::uint64_t shipped_limit(std::uint64_t need) {
  MemoryState state;
  state.limit_bytes = static_cast<double>(kLimit);
  state.need_bytes = state.peak_bytes = static_cast<double>(need);
  state.long_step = true;
  for (double before = 0; before != state.limit_bytes;) {
    before = state.limit_bytes;
    state.limit_bytes = lowered_memory(SafetyConfig{}, {}, state, 0);
  }
  return static_cast<std::uint64_t>(state.limit_bytes);
}

double milliseconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// How long the burst takes under a lowered limit (`lowered`), or without the daemon.
double burst_once(const Kind& kind, bool lowered) {
  const TestCgroup group;
  group.put("memory.max", std::to_string(kLimit));
  Writing writing(true);
  writing.attach(group);
  int go[2];
  REQUIRE(::pipe2(go, O_CLOEXEC) == 0);
  Child child(group, [&](int ready) {
    (void)map(kBase, MAP_POPULATE);
    say_ready(ready);
    char byte;
    if (::read(go[0], &byte, 1) != 1) ::_exit(9);
    kind.burst(kind.bytes);
  });
  const std::uint64_t limit = shipped_limit(kBase);
  if (lowered) {
    const LimitResult result = writing.write(group, with_memory(group.limits(), limit));
    REQUIRE_MESSAGE(result.written, result.error);
  }
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(::write(go[1], "g", 1) == 1);
  child.wait();
  const double took = milliseconds_since(start);
  CHECK_MESSAGE(child.ended_well(), kind.name << " did not end well");
  CHECK(group.number("memory.events", "oom_kill") == 0);
  CHECK(group.number("memory.events", "oom") == 0);
  CHECK(group.get("memory.max") == std::to_string(kLimit));
  if (lowered) CHECK(eventually([&] { return group.get("memory.high") == "max"; }));
  ::close(go[0]);
  ::close(go[1]);
  return took;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

void survives(const Kind& kind) {
  std::vector<double> lowered, alone;
  for (int round = 0; round < rounds(); ++round) {
    CAPTURE(round);
    lowered.push_back(burst_once(kind, true));
    alone.push_back(burst_once(kind, false));
  }
  MESSAGE(kind.name << ", " << lowered.size() << " rounds of " << kind.bytes / kMiB
                    << " MiB above a limit of " << shipped_limit(kBase) / kMiB
                    << " MiB: 0 kills; ms lowered: median " << median(lowered) << ", longest "
                    << std::ranges::max(lowered) << "; alone: median " << median(alone)
                    << ", longest " << std::ranges::max(alone));
}

}  // namespace

TEST_CASE("kernel: a burst beside the fast path is not killed: populated memory") {
  survives({"mmap populated", populated, 512 * kMiB});
}

TEST_CASE("kernel: a burst beside the fast path is not killed: fallocate in shared memory") {
  survives({"fallocate", allocated, 512 * kMiB});
}

TEST_CASE("kernel: a burst beside the fast path is not killed: one write to shared memory") {
  survives({"one write", written, 512 * kMiB});
}

// In user-mode Linux each first touch of a page is slow.
TEST_CASE("kernel: a burst beside the fast path is not killed: touched memory") {
  survives({"malloc and touch", touched, 128 * kMiB});
}

TEST_CASE("psi: a burst beside the fast path is not killed: huge pages") {
  survives({"huge pages", huge, 512 * kMiB});
}
