#include "control/memory_reading.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/control/fake_cgroup.h"

using namespace cgphase;

TEST_CASE("need is what cannot be dropped: anonymous, shared, kernel and swapped out") {
  const char* stat =
      "anon 1000\nfile 5000\nkernel 300\nsock 7\nshmem 200\ninactive_file 4000\n"
      "unevictable 0\nslab_reclaimable 100\nslab_unreclaimable 50\nslab 150\n";
  CHECK(need_of(stat, Bytes{40})->value == 1000 + 200 + 300 + 7 - 100 + 40);
}

TEST_CASE("locked file cache is need, however much anonymous memory there is beside it") {
  // shmem is in `file`, and never on the lists of files.
  const std::string stat =
      "anon 9000\nfile 5000\nkernel 0\nshmem 200\ninactive_file 3000\nactive_file 1000\n";
  CHECK(need_of(stat + "unevictable 800\n", Bytes{})->value == 9000 + 200 + 800);
  // Pages that are on no list for a moment are not locked.
  CHECK(need_of(stat + "unevictable 500\n", Bytes{})->value == 9000 + 200 + 500);
}

TEST_CASE("locked anonymous and shared memory counts once") {
  const char* stat =
      "anon 9000\nfile 4200\nkernel 0\nshmem 200\ninactive_file 3000\nactive_file 1000\n"
      "unevictable 7000\n";
  CHECK(need_of(stat, Bytes{})->value == 9000 + 200);
}

TEST_CASE("where the lists of files are not told, all that may be locked file cache is need") {
  const char* stat = "anon 9000\nfile 5000\nkernel 0\nshmem 200\nunevictable 800\n";
  CHECK(need_of(stat, Bytes{})->value == 9000 + 200 + 800);
}

TEST_CASE("without a kernel line its parts are added") {
  const char* stat =
      "anon 1000\nfile 0\nkernel_stack 16\npagetables 8\npercpu 4\nsock 9\nslab 30\n"
      "slab_reclaimable 10\n";
  CHECK(need_of(stat, Bytes{})->value == 1000 + 16 + 8 + 4 + 9 + 30 - 10);
}

TEST_CASE("without an anon line there is no need to tell") {
  CHECK_FALSE(need_of("", Bytes{}).has_value());
  CHECK_FALSE(need_of("anon\nfile x\nkernel 5\n", Bytes{}).has_value());
}

TEST_CASE("need is read from a directory, with swap where there is some") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  CHECK(read_memory_need(box.open().get())->value == 209715200 + 1048576);
  box.put("memory.swap.current", "4096\n");
  CHECK(read_memory_need(box.open().get())->value == 209715200 + 1048576 + 4096);
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
