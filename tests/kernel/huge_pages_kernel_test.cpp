// Huge pages that memory.current counts and no line of memory.stat explains: Linux 6.6 to 6.12 with
// cgroup2 mounted as systemd mounts it. Cases named huge: need such a kernel
// (tests/kernel/psi_guest --release trixie). They change how cgroup2 is mounted.
#include <sys/mount.h>

#include <optional>
#include <vector>

#include "cgroupfs/kernel_text.h"
#include "collectors/cgroup_files.h"
#include "tests/kernel/control_fixture.h"

namespace cgphase {
namespace {

constexpr std::size_t kHeld = 60 * kMiB;

std::function<void(int)> holding_huge_pages() {
  return [](int ready) {
    auto* memory = static_cast<char*>(::mmap(nullptr, kHeld, PROT_READ | PROT_WRITE,
                                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0));
    if (memory == MAP_FAILED) ::_exit(5);
    for (std::size_t at = 0; at < kHeld; at += 4096) memory[at] = 1;
    say_ready(ready);
    for (;;) ::pause();
  };
}

Sample sample_of(const TestCgroup& group) {
  CgroupFiles files(group.open());
  std::vector<char> buffer(kKernelTextBytes);
  Sample sample;
  REQUIRE(files.read(MonotonicTime{}, sample, buffer));
  return sample;
}

}  // namespace

TEST_SUITE_BEGIN("huge");

TEST_CASE("huge: pages that no line explains are need, and no limit is set below them") {
  REQUIRE(::mount("none", cgroup_root().c_str(), "cgroup2", MS_REMOUNT,
                  "memory_hugetlb_accounting") == 0);
  REQUIRE(try_write("/proc/sys/vm/nr_hugepages", "40") == 0);
  Writing writing;
  const TestCgroup huge, plain;
  for (const TestCgroup* group : {&huge, &plain}) {
    group->put("memory.max", "268435456");
    writing.attach(*group);
  }
  const Child with_huge(huge, holding_huge_pages());
  const Child with_plain(plain, using_memory(kHeld));
  const Sample one = sample_of(huge), other = sample_of(plain);
  CHECK(one.memory_current->value >= kHeld);
  CHECK_FALSE(one.memory.hugetlb_bytes.has_value());
  CHECK(one.memory.anon_bytes.value_or(0) < kHeld / 2);
  const auto need = memory_need(one), plain_need = memory_need(other);
  REQUIRE((need && plain_need));
  CHECK(need->value >= kHeld);
  CHECK(need->value < kHeld + kHeld / 4);
  CHECK(plain_need->value < kHeld + kHeld / 4);
  for (const TestCgroup* group : {&huge, &plain}) {
    const auto lower = [&](std::size_t bytes) {
      return writing.write(*group, with_memory(group->limits(), bytes), false,
                           Bytes{bytes * 9 / 10});
    };
    CHECK_FALSE(lower(kHeld).written);
    CHECK(lower(2 * kHeld).written);
  }
  REQUIRE(try_write("/proc/sys/vm/nr_hugepages", "0") == 0);
}

TEST_SUITE_END();

}  // namespace cgphase
