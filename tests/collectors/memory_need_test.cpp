#include <doctest/doctest.h>

#include <fcntl.h>

#include <random>
#include <string>
#include <vector>

#include "cgroupfs/kernel_text.h"
#include "collectors/cgroup_files.h"
#include "collectors/sample.h"
#include "tests/collectors/fake_tree.h"

using namespace cgphase;

namespace {

std::optional<std::uint64_t> need(const std::string& stat, std::uint64_t current,
                                  std::uint64_t swap = 0) {
  Sample sample;
  sample.memory = scan_memory_stat(stat);
  sample.memory_current = Bytes{current};
  sample.swap_current = Bytes{swap};
  const auto bytes = memory_need(sample);
  return bytes ? std::optional(bytes->value) : std::nullopt;
}

std::string line(const std::string& key, std::uint64_t value) {
  return key + " " + std::to_string(value) + "\n";
}

}  // namespace

// rule: MEM-02
TEST_CASE("huge pages that no line explains are need, as anonymous memory is") {
  const std::string job = line("anon", 2 * kMiB) + line("file", 0) + line("kernel", kMiB);
  CHECK(need(job, 63 * kMiB) == 63 * kMiB);
  CHECK(need(line("anon", 62 * kMiB) + line("kernel", kMiB), 63 * kMiB) == 63 * kMiB);
  CHECK(need(job + line("hugetlb", 60 * kMiB), 63 * kMiB) == 63 * kMiB);
}

TEST_CASE("need is never below the explained memory, for any memory.current") {
  const std::string stat = line("anon", 10) + line("file", 1000) + line("kernel", 100) +
                           line("sock", 7) + line("shmem", 20) + line("hugetlb", 300) +
                           line("inactive_file", 900) + line("active_file", 60) +
                           line("unevictable", 15) + line("slab_reclaimable", 40);
  const std::uint64_t explained = 10 + 20 + 15 + (107 - 40) + 300;
  CHECK(need(stat, 1000) == explained);
  CHECK(need(stat, 0, 5) == explained + 40 + 5);  // slab is not part of a charge of 0
  CHECK(need(stat, 5000) == 5000 - 900 - 60 - 40);
}

// rule: MEM-02
TEST_CASE("page cache is not need, clean or dirty, active or not") {
  const std::string base = line("anon", 5 * kMiB) + line("kernel", kMiB);
  for (const char* list : {"inactive_file", "active_file"})
    for (const char* state : {"file_mapped", "file_dirty", "file_writeback"})
      CHECK(need(base + line("file", kGiB) + line(state, kGiB) + line(list, kGiB),
                 kGiB + 6 * kMiB) == 6 * kMiB);
}

TEST_CASE("swap pages that are still in memory, and the pool of zswap, are need") {
  const std::string base = line("anon", 50 * kMiB) + line("file", 0);
  CHECK(need(base + line("kernel", kMiB) + line("swapcached", 10 * kMiB), 51 * kMiB,
             30 * kMiB) == 81 * kMiB);
  CHECK(need(base + line("kernel", 9 * kMiB) + line("zswap", 8 * kMiB) +
                 line("zswapped", 30 * kMiB), 59 * kMiB, 30 * kMiB) == 89 * kMiB);
}

TEST_CASE("memory that cannot be reclaimed is need") {
  // secretmem: file pages on the list of unevictable pages.
  CHECK(need(line("anon", 0) + line("file", 8 * kMiB) + line("unevictable", 8 * kMiB),
             8 * kMiB) == 8 * kMiB);
  for (const char* key : {"percpu", "vmalloc", "sec_pagetables", "sock", "some_future_line"})
    CHECK(need(line("anon", kMiB) + line("kernel", 0) + line(key, 9 * kMiB), 10 * kMiB) ==
          10 * kMiB);
}

TEST_CASE("a negative line, or one far above the charge, wraps no sum and lowers no need") {
  const std::string rest = line("file", 20'000'000) + line("kernel", 1'000'000);
  const std::string negative = "18446744073709547520";
  CHECK(need("anon " + negative + "\n" + rest, 100'000'000) == 100'000'000);
  for (const char* key : {"inactive_file", "active_file", "slab_reclaimable"}) {
    CHECK(need(line("anon", 50) + rest + key + (" " + negative + "\n"), 100'000'000) ==
          100'000'000);
    CHECK(need(line("anon", 50) + rest + line(key, 112'500'001), 100'000'000) == 100'000'000);
  }
  // The files are read one after the other. Cache that appeared in between is cache.
  CHECK(need(line("anon", 50) + line("inactive_file", 112'500'000), 100'000'000) == 50);
  const std::string most = std::to_string((std::uint64_t{1} << 63) - 1) + "\n";
  CHECK(need("anon " + most + "shmem " + most + "kernel " + most, 5) == UINT64_MAX);
}

TEST_CASE("without memory.stat need is absent") {
  CHECK_FALSE(need("", 1000).has_value());
  CHECK_FALSE(need("pgfault 5\n", 1000).has_value());
  Sample sample;
  sample.memory.kernel_bytes = 5;
  CHECK_FALSE(memory_need(sample).has_value());  // neither `anon` nor the charge
}

// rule: MEM-02
TEST_CASE("need is between the explained memory and the charge plus swap, line by line") {
  constexpr unsigned kSeed = 42;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  const auto part = [&] { return random() % 3 == 0 ? 0 : random() % (64 * kMiB); };
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t anon = part(), shmem = part(), inactive = part(), active = part(),
                        locked = part(), slab = part(), kernel = slab + part(), huge = part(),
                        unexplained = part(), swap = part();
    const std::string stat =
        line("anon", anon) + line("file", shmem + inactive + active + locked) +
        line("kernel", kernel) + line("shmem", shmem) + line("inactive_file", inactive) +
        line("active_file", active) + line("unevictable", locked) +
        line("slab_reclaimable", slab) + line("hugetlb", huge);
    const std::uint64_t current = anon + shmem + inactive + active + locked + kernel + huge +
                                  unexplained;
    const auto bytes = need(stat, current, swap);
    REQUIRE(bytes.has_value());
    CHECK(*bytes == anon + shmem + locked + (kernel - slab) + huge + unexplained + swap);
    CHECK(*bytes <= current + swap);
    CHECK(need(stat + line("unknown", part()), current, swap) == bytes);
    CHECK(need(stat, current + part(), swap) >= bytes);
  }
}

TEST_CASE("the sample of a cgroup has the need of its files, with any other files") {
  FakeTree tree;
  tree.write("/c/memory.current", "70000000\n");
  tree.write("/c/memory.swap.current", "5000\n");
  tree.write("/c/memory.stat", "anon 1000\nfile 9000000\nkernel 500\ninactive_file 9000000\n");
  // Pages of the hugetlb controller are charged to memory only if cgroup2 is mounted so.
  tree.write("/c/hugetlb.2MB.current", "62914560\n");
  Result<Fd> directory = open_path(tree.root() + "/c", O_RDONLY | O_DIRECTORY);
  REQUIRE(directory.has_value());
  CgroupFiles files(std::move(*directory));
  std::vector<char> buffer(kKernelTextBytes);
  Sample sample;
  REQUIRE(files.read(MonotonicTime(std::chrono::seconds(1)), sample, buffer));
  CHECK(memory_need(sample) == Bytes{61'005'000});
  tree.write("/c/memory.current", "9001500\n");
  REQUIRE(files.read(MonotonicTime(std::chrono::seconds(2)), sample, buffer));
  CHECK(memory_need(sample) == Bytes{6'500});
}

TEST_CASE("memory.current of a sample is read together with its memory.stat") {
  FakeTree tree;
  const ReadPlan observed{.memory_period = std::chrono::seconds(5)};
  Result<Fd> directory = open_path((tree.make("/c"), tree.root() + "/c"), O_RDONLY | O_DIRECTORY);
  REQUIRE(directory.has_value());
  CgroupFiles files(std::move(*directory));
  std::vector<char> buffer(kKernelTextBytes);
  Sample sample;
  int second = 0;
  const auto read = [&](const char* current, const char* cache) {
    tree.write("/c/cpu.stat", "usage_usec " + std::to_string(++second) + "\n");
    tree.write("/c/memory.current", current);
    tree.write("/c/memory.stat", std::string("anon 500\nfile 9000\ninactive_file ") + cache);
    REQUIRE(files.read(MonotonicTime(std::chrono::seconds(second)), sample, buffer, observed));
    return memory_need(sample);
  };
  CHECK(read("9500\n", "9000\n") == Bytes{500});
  CHECK(read("9700\n", "9200\n") == Bytes{500});  // not read again: grown cache is not need
  CHECK(sample.memory_current == Bytes{9500});
  CHECK(read("10500\n", "9200\n") == Bytes{1300});
}
