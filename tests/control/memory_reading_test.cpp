#include "cgroupfs/memory_reading.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "cgroupfs/cgroup_stats.h"
#include "cgroupfs/kernel_text.h"
#include "control/fast_path/slot.h"
#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

namespace {

std::optional<Bytes> need_of(std::string_view stat, std::optional<Bytes> current,
                             std::optional<Bytes> swap) {
  return memory_need(scan_memory_stat(stat), current, swap);
}

}  // namespace

TEST_CASE("need is memory that cannot be dropped: anonymous, shared, kernel and swapped out") {
  const char* stat =
      "anon 1000\nfile 5000\nkernel 300\nsock 7\nshmem 200\ninactive_file 4000\n"
      "unevictable 0\nslab_reclaimable 100\nslab_unreclaimable 50\nslab 150\n";
  CHECK(need_of(stat, {}, Bytes{40})->value == 1000 + 200 + 300 + 7 - 100 + 40);
}

TEST_CASE("locked file cache is need, regardless of the anonymous memory beside it") {
  // shmem is part of `file`, but never on the file lists.
  const std::string stat =
      "anon 9000\nfile 5000\nkernel 0\nshmem 200\ninactive_file 3000\nactive_file 1000\n";
  CHECK(need_of(stat + "unevictable 800\n", {}, {})->value == 9000 + 200 + 800);
  // Pages that are briefly on no list are not locked.
  CHECK(need_of(stat + "unevictable 500\n", {}, {})->value == 9000 + 200 + 500);
}

TEST_CASE("locked anonymous and shared memory counts once") {
  const char* stat =
      "anon 9000\nfile 4200\nkernel 0\nshmem 200\ninactive_file 3000\nactive_file 1000\n"
      "unevictable 7000\n";
  CHECK(need_of(stat, {}, {})->value == 9000 + 200);
}

TEST_CASE("if the file lists are missing, all possibly locked file cache is need") {
  const char* stat = "anon 9000\nfile 5000\nkernel 0\nshmem 200\nunevictable 800\n";
  CHECK(need_of(stat, {}, {})->value == 9000 + 200 + 800);
}

TEST_CASE("without a kernel line its parts are added") {
  const char* stat =
      "anon 1000\nfile 0\nkernel_stack 16\npagetables 8\npercpu 4\nsock 9\nslab 30\n"
      "slab_reclaimable 10\n";
  CHECK(need_of(stat, {}, {})->value == 1000 + 16 + 8 + 4 + 9 + 30 - 10);
}

TEST_CASE("without an anon line need is unknown") {
  CHECK_FALSE(need_of("", {}, {}).has_value());
  CHECK_FALSE(need_of("anon\nfile x\nkernel 5\n", {}, {}).has_value());
}

TEST_CASE("need is read from a directory, including swap") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  CHECK(read_memory_need(box.open().get())->value == 209715200 + 1048576);
  box.put("memory.swap.current", "4096\n");
  CHECK(read_memory_need(box.open().get())->value == 209715200 + 1048576 + 4096);
  box.put("memory.current", "400000000\n");  // no line explains the rest
  CHECK(read_memory_need(box.open().get())->value == 400000000 - 103809024 + 4096);
}

// rule: MEM-02
TEST_CASE("the fast path and the writer's last check compute the same need as a sample") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  box.put("memory.stat", "anon 9000\nfile 7000\nkernel 800\nsock 40\nshmem 300\n"
                         "inactive_file 5000\nactive_file 1000\nslab_reclaimable 100\n"
                         "unevictable 500\nsome_future_line 70\n");
  box.put("memory.swap.current", "600\n");
  FastPathFiles files;
  REQUIRE(files.open(box.open().get(), Knob::memory_max));
  for (const char* current : {"6000\n", "16840\n", "99000\n"}) {
    box.put("memory.current", current);
    Sample sample;
    sample.memory = scan_memory_stat(get_file(box.directory() + "/memory.stat"));
    sample.memory_current = Bytes{*scan_amount(current)};
    sample.swap_current = Bytes{600};
    FastPathReading reading;
    files.read(reading, false);
    files.read_detail(reading);
    CHECK(reading.memory_need == memory_need(sample));
    CHECK(*read_memory_need(box.open().get()) == memory_need(sample));
  }
}

TEST_CASE("the fast path does not accept a truncated number") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  box.put("memory.max", "10737");
  box.put("memory.current", "31457");
  box.put("memory.stat", "anon 209715200\nfile 1038");
  box.put("cpu.stat", "usage_usec 5\nthrottled_usec 12");
  FastPathFiles files;
  (void)files.open(box.open().get(), Knob::cpu_weight);
  FastPathReading reading;
  files.read(reading, false);
  files.read_detail(reading);
  CHECK_FALSE(reading.memory_max.has_value());
  CHECK_FALSE(reading.memory_current.has_value());
  CHECK_FALSE(reading.memory_need.has_value());
  CHECK_FALSE(reading.page_cache.has_value());
  CHECK_FALSE(reading.throttled_usec.has_value());
}

TEST_CASE("a truncated number gives no need") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  box.put("memory.current", "31457");
  CHECK_FALSE(read_memory_need(box.open().get()).has_value());
  box.put("memory.current", "314572800\n");
  box.put("memory.swap.current", "40");
  CHECK_FALSE(read_memory_need(box.open().get()).has_value());
}

TEST_CASE("a missing or malformed memory.stat is an error, a removed cgroup is gone") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  box.put("memory.stat", "nothing of use\n");
  CHECK(read_memory_need(box.open().get()).error().kind == ErrorKind::invalid);
  std::filesystem::remove(box.directory() + "/memory.stat");
  const Fd directory = box.open();
  CHECK(read_memory_need(directory.get()).error().kind == ErrorKind::not_found);
  box.remove();
  CHECK(read_memory_need(directory.get()).error().kind == ErrorKind::gone);
}
