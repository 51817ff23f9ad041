#include "agent/observers/read_back.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("changed files are reported as the kernel writes them") {
  Limits before;
  before.cpu_max = CpuMax{std::nullopt, Microseconds{100'000}};
  before.memory_max = MemoryLimit{Bytes{8192}};
  CHECK(read_back_text(before, before) == "all files read as before");
  Limits after = before;
  after.cpu_max->quota = Microseconds{50'000};
  CHECK(read_back_text(before, after) == "cpu.max reads 50000 100000");
  after.memory_max = MemoryLimit{};
  CHECK(read_back_text(before, after) == "cpu.max reads 50000 100000, memory.max reads max");
}
