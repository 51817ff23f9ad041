#include "base/memory_lock.h"

#include <doctest/doctest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "base/file.h"
#include "tests/in_child.h"

using namespace cgphase;

namespace {

constexpr uid_t kNobodyElse = 60'002;  // no other process here has it

// The value of a line of /proc/self/status.
std::string status_of(const std::string& key) {
  const std::string text = read_file("/proc/self/status", 1 << 16).value_or("");
  const std::size_t at = text.find(key + ":");
  return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
}

// Runs in a child: the lock lasts as long as its process.
int lock_and_check() {
  if (!lock_memory()) return 1;
  const std::string before = status_of("VmLck");
  // A later mapping is locked too, whatever its size.
  void* later = ::mmap(nullptr, 1 << 28, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (later == MAP_FAILED) return 2;
  return status_of("VmLck") != before ? 0 : 3;
}

// Runs as a user who may not lock memory, with a limit.
int lock_without_right() {
  const rlimit some{1 << 16, 1 << 16};
  if (::setrlimit(RLIMIT_MEMLOCK, &some) != 0) return 1;
  if (::getuid() == 0 && ::setuid(kNobodyElse) != 0) return 2;
  const std::string before = status_of("VmLck");
  const Status locked = lock_memory();
  if (locked.has_value() || locked.error().kind != ErrorKind::denied) return 3;
  if (locked.error().text.find("LimitMEMLOCK=infinity") == std::string::npos) return 4;
  return status_of("VmLck") == before ? 0 : 5;
}

bool may_lock() {
#ifdef CGPHASE_SANITIZED
  return false;  // the sanitizer's runtime replaces mlockall()
#endif
  constexpr std::uint64_t kEither = 1ULL << CAP_IPC_LOCK | 1ULL << CAP_SYS_RESOURCE;
  const std::string held = status_of("CapEff");
  const std::uint64_t effective = std::stoull(held.substr(held.find('\t')), nullptr, 16);
  // Capabilities of another user namespace do not count.
  const bool first_namespace =
      read_file("/proc/self/uid_map", 256).value_or("").find("4294967295") != std::string::npos;
  rlimit limit{};
  return (first_namespace && (effective & kEither) != 0) ||
         (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_max == RLIM_INFINITY);
}

}  // namespace

// rule: S-12
TEST_CASE("later mappings are locked too" * doctest::skip(!may_lock())) {
  CHECK(in_child(lock_and_check) == 0);
}

TEST_CASE("without permission nothing is locked, and the error names what is needed") {
  CHECK(in_child(lock_without_right) == 0);
}
