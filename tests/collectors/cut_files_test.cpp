// Files that are truncated, longer than the read limit, or removed.
#include <doctest/doctest.h>

#include "collectors/cgroup_files.h"
#include "tests/collectors/one_cgroup.h"

using namespace cgphase;

TEST_CASE("a file of maximum size is read completely, a longer one up to its last whole line") {
  OneCgroup cgroup;
  const std::string line = "usage_usec 5\n";
  const std::string filling(kKernelTextBytes - 2 - line.size() - 12, ' ');
  cgroup.put("cpu.stat", line + filling + "\nuser_usec 7\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.cpu.user_usec == 7);
  CHECK_FALSE(files.cut_file().has_value());
  cgroup.put("cpu.stat", line + filling + " \nuser_usec 7\n");
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.cpu.usage_usec == 5);
  CHECK(files.cut_file() == KernelFile::cpu_stat);
}

TEST_CASE("io.stat of many devices is read completely") {
  OneCgroup cgroup;
  std::string text;
  for (int device = 0; device < 3000; ++device)
    text += "253:" + std::to_string(device) +
            " rbytes=1000000000 wbytes=2000000000 rios=100000 wios=200000 dbytes=0 dios=0\n";
  cgroup.put("io.stat", text);
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.io.read_bytes == 3'000'000'000'000);
  CHECK_FALSE(files.cut_file().has_value());
}

// Half a number is another number.
TEST_CASE("the complete lines of a truncated file are used, and it is read again") {
  OneCgroup cgroup;
  cgroup.put("memory.current", "1234");
  cgroup.put("cpu.stat", "usage_usec 5\nuser_usec 12");
  cgroup.put("memory.stat", "anon 7\nfile 1");
  cgroup.put("memory.peak", "99");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK_FALSE(cgroup.sample.memory_current.has_value());
  CHECK(cgroup.sample.cpu.usage_usec == 5);
  CHECK_FALSE(cgroup.sample.cpu.user_usec.has_value());
  CHECK_FALSE(cgroup.sample.memory_peak.has_value());
  CHECK_FALSE(memory_need(cgroup.sample).has_value());  // need would be too small
  CHECK(files.cut_file().has_value());
  cgroup.put("memory.current", "12345\n");
  cgroup.put("cpu.stat", "usage_usec 5\nuser_usec 123\n");
  cgroup.put("memory.stat", "anon 7\nfile 12345\n");
  cgroup.put("memory.peak", "9999\n");
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.memory_current == Bytes{12345});
  CHECK(cgroup.sample.cpu.user_usec == 123);
  CHECK(cgroup.sample.memory.file_bytes == 12345);
  CHECK(cgroup.sample.memory_peak == Bytes{9999});
  CHECK_FALSE(files.cut_file().has_value());
}

TEST_CASE("a truncated file is read again at the next tick for any period") {
  OneCgroup cgroup;
  const ReadPlan plan{.events = false, .limits = false, .writes_reported = true,
                      .memory_period = std::chrono::seconds(5), .sparse = true};
  const auto put = [&](const std::string& end) {
    cgroup.put("memory.max", "4096" + end);
    cgroup.put("memory.low", "4096" + end);
    cgroup.put("memory.current", "4096" + end);
    cgroup.put("memory.stat", "anon 1\nfile 4096" + end);
    cgroup.put("memory.events", "low 0\nhigh 4096" + end);
    cgroup.put("memory.peak", "4096" + end);
    cgroup.put("memory.pressure", "some avg10=0.00 total=4096" + end);
    cgroup.put("pids.current", "4096" + end);
    cgroup.put("io.stat", "8:0 rbytes=4096" + end);
    cgroup.put("cpu.stat", "usage_usec 4096" + end);
  };
  put("");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  const Sample& sample = cgroup.sample;
  CHECK_FALSE(sample.limits.memory_max.has_value());
  CHECK_FALSE(sample.memory_current.has_value());
  CHECK(sample.io.read_bytes == 0);
  put("\n");
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  CHECK(sample.limits.memory_max == MemoryLimit{Bytes{4096}});
  CHECK(sample.limits.memory_low == MemoryLimit{Bytes{4096}});
  CHECK(sample.memory_current == Bytes{4096});
  CHECK(sample.memory.file_bytes == 4096);
  CHECK(sample.memory_events.high == 4096);
  CHECK(sample.memory_peak == Bytes{4096});
  CHECK(sample.memory_pressure.some.total_usec == 4096);
  CHECK(sample.pids_current == 4096);
  CHECK(sample.io.read_bytes == 4096);
  CHECK(sample.cpu.usage_usec == 4096);
}

TEST_CASE("a truncated limit keeps its previous value, and a sum of io.stat does not fall") {
  OneCgroup cgroup;
  cgroup.put("cpu.max", "200000 100000\n");
  cgroup.put("memory.max", "1048576\n");
  cgroup.put("memory.low", "4096\n");
  cgroup.put("io.stat", "8:0 rbytes=100\n8:1 rbytes=200\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  const Limits before = cgroup.sample.limits;
  cgroup.put("cpu.max", "300000 1000");
  cgroup.put("memory.max", "2048");
  cgroup.put("memory.low", "8");
  cgroup.put("io.stat", "8:0 rbytes=150\n8:1 rby");
  REQUIRE(cgroup.read(files, kSlowPeriod));
  CHECK(cgroup.sample.limits == before);
  CHECK(cgroup.sample.io.read_bytes == 300);
  cgroup.put("cpu.max", "max 100000\n");
  cgroup.put("io.stat", "8:0 rbytes=150\n");  // a device was removed
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.limits.cpu_max == CpuMax{});
  CHECK(cgroup.sample.io.read_bytes == 150);
}

TEST_CASE("a removed file is absent, and read again when it is back") {
  OneCgroup cgroup;
  const ReadPlan plan{.events = false, .limits = false};
  cgroup.put("cpu.stat", "usage_usec 5\n");
  cgroup.put("memory.max", "1048576\n");
  CgroupFiles files = cgroup.open();
  cgroup.remove("/c/memory.max");
  REQUIRE(cgroup.read(files));
  CHECK_FALSE(cgroup.sample.limits.memory_max.has_value());
  cgroup.put("memory.max", "2097152\n");
  REQUIRE(cgroup.read(files, kAbsentPeriod, plan));
  CHECK(cgroup.sample.limits.memory_max == MemoryLimit{Bytes{2097152}});
}
