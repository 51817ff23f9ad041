#include "tests/workloads/allocation_meter.h"

#include <doctest/doctest.h>

using namespace cgphase::workloads;

TEST_CASE("meter: cpu.max reads as cores") {
  CHECK(cores_of("80000 100000", 2) == 0.8);
  CHECK(cores_of("max 100000", 2) == 2);
  for (const char* text : {"", "80000", "80000 0", "x 100000", "80000 x"})
    CHECK_FALSE(cores_of(text, 2).has_value());
}

TEST_CASE("meter: memory.max reads as bytes") {
  CHECK(bytes_of("4096", 1) == 4096);
  CHECK(bytes_of("max", 7) == 7);
  CHECK_FALSE(bytes_of("", 1).has_value());
  CHECK_FALSE(bytes_of("4k", 1).has_value());
}

TEST_CASE("meter: a limit counts until the next reading") {
  AllocationMeter meter;
  meter.read(10, {"50000 100000", "100"});
  meter.read(12, {"20000 100000", "100"});
  meter.end(22);
  CHECK(meter.core_seconds() == doctest::Approx(0.5 * 2 + 0.2 * 10));
  CHECK(meter.byte_seconds() == doctest::Approx(1200));
  CHECK(meter.seconds() == 12);
}

TEST_CASE("meter: the lower of memory.max and memory.high counts") {
  AllocationMeter meter;
  meter.read(0, {"50000 100000", "100", "max"});
  meter.read(1, {"50000 100000", "100", "40"});
  meter.read(2, {"50000 100000", "100", "200"});
  meter.end(3);
  CHECK(meter.byte_seconds() == doctest::Approx(100 + 40 + 100));
}

TEST_CASE("meter: each change is noted once, with its time since the start") {
  AllocationMeter meter;
  meter.read(10, {"50000 100000", "100"});
  meter.read(11, {"50000 100000", "80"});
  meter.read(12, {"50000 100000", "80"});
  meter.read(13, {"20000 100000", "80"});
  REQUIRE(meter.changes().size() == 2);
  CHECK(meter.changes()[0].knob == "memory.max");
  CHECK(meter.changes()[0].seconds == 1);
  CHECK(meter.changes()[1].knob == "cpu.max");
  CHECK(meter.changes()[1].from == "50000 100000");
  CHECK(meter.changes()[1].to == "20000 100000");
}

TEST_CASE("meter: unreadable text counts as the previous limits") {
  AllocationMeter meter;
  meter.read(0, {"50000 100000", "100"});
  meter.read(1, {"", ""});
  meter.end(2);
  CHECK(meter.core_seconds() == doctest::Approx(1.0));
  CHECK(meter.byte_seconds() == doctest::Approx(200));
}

TEST_CASE("meter: nothing read is nothing allocated") {
  AllocationMeter meter;
  CHECK(meter.core_seconds() == 0);
  CHECK(meter.seconds() == 0);
}
