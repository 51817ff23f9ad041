#include "cgroupfs/kernel_text.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>

using namespace cgphase;

TEST_CASE("cpu.stat is read with its bandwidth fields") {
  const CpuStat stat = scan_cpu_stat(
      "usage_usec 1500000\nuser_usec 1000000\nsystem_usec 500000\nnr_periods 42\n"
      "nr_throttled 7\nthrottled_usec 1234\nnr_bursts 0\nburst_usec 0\n");
  CHECK(stat.usage_usec == 1'500'000);
  CHECK(stat.user_usec == 1'000'000);
  CHECK(stat.system_usec == 500'000);
  CHECK(stat.nr_periods == 42);
  CHECK(stat.nr_throttled == 7);
  CHECK(stat.throttled_usec == 1234);
}

TEST_CASE("cpu.stat without the cpu controller has no bandwidth fields") {
  const CpuStat stat = scan_cpu_stat("usage_usec 5\nuser_usec 3\nsystem_usec 2\n");
  CHECK(stat.usage_usec == 5);
  CHECK_FALSE(stat.nr_throttled.has_value());
}

TEST_CASE("a malformed number is absent and does not affect its neighbours") {
  const CpuStat stat = scan_cpu_stat("usage_usec 12x\nuser_usec\nsystem_usec 9\nnr_periods -1\n");
  CHECK_FALSE(stat.usage_usec.has_value());
  CHECK_FALSE(stat.user_usec.has_value());
  CHECK(stat.system_usec == 9);
  CHECK_FALSE(stat.nr_periods.has_value());
}

TEST_CASE("the largest 64-bit number is read, one more is absent") {
  CHECK(scan_number("18446744073709551615\n") == UINT64_MAX);
  CHECK_FALSE(scan_number("18446744073709551616\n").has_value());
  CHECK_FALSE(scan_number("99999999999999999999999999\n").has_value());
}

TEST_CASE("a number with anything beside it is absent") {
  CHECK(scan_number("7\n") == 7);
  CHECK_FALSE(scan_number("7").has_value());  // more digits may follow
  CHECK_FALSE(scan_number("").has_value());
  CHECK_FALSE(scan_number("\n").has_value());
  CHECK_FALSE(scan_number("7 8\n").has_value());
  CHECK_FALSE(scan_number("-7\n").has_value());
  CHECK_FALSE(scan_number("7\n\n").has_value());
}

TEST_CASE("memory.stat in the kernel's order and in any other reads the same") {
  const MemoryStat stat = scan_memory_stat(
      "anon 100\nfile 200\nkernel 30\nsock 4\nshmem 5\ninactive_anon 6\nactive_anon 7\n"
      "inactive_file 8\nactive_file 9\nunevictable 10\nslab_reclaimable 11\n"
      "slab_unreclaimable 12\nslab 23\nworkingset_refault_anon 13\nworkingset_refault_file 14\n"
      "pgscan 15\npgsteal 16\npgscan_direct 17\npgfault 18\npgmajfault 19\n");
  CHECK(stat.anon_bytes == 100);
  CHECK(stat.file_bytes == 200);
  CHECK(stat.shmem_bytes == 5);
  CHECK(stat.inactive_anon_bytes == 6);
  CHECK(stat.inactive_file_bytes == 8);
  CHECK(stat.active_file_bytes == 9);
  CHECK(stat.unevictable_bytes == 10);
  CHECK(stat.slab_reclaimable_bytes == 11);
  CHECK(stat.slab_unreclaimable_bytes == 12);
  CHECK(stat.workingset_refault_anon == 13);
  CHECK(stat.workingset_refault_file == 14);
  CHECK(stat.pgscan == 15);
  CHECK(stat.pgsteal == 16);
  CHECK(stat.pgscan_direct == 17);
  CHECK(stat.pgfault == 18);
  CHECK(stat.pgmajfault == 19);
  const MemoryStat reversed = scan_memory_stat("pgmajfault 19\nshmem 5\nfile 200\nanon 100\n");
  CHECK(reversed.anon_bytes == 100);
  CHECK(reversed.pgmajfault == 19);
}

TEST_CASE("kernel memory is the kernel's own figure plus sockets") {
  CHECK(scan_memory_stat("kernel 30\nkernel_stack 8\nsock 4\nslab 9\n").kernel_bytes == 34);
}

TEST_CASE("kernel memory is the sum of its parts if the kernel gives no figure") {
  const MemoryStat stat = scan_memory_stat(
      "anon 1\nkernel_stack 1\npagetables 10\npercpu 100\nsock 1000\nslab 10000\n");
  CHECK(stat.kernel_bytes == 11111);
}

TEST_CASE("kernel memory is absent if no line reports it") {
  CHECK_FALSE(scan_memory_stat("anon 1\nfile 2\n").kernel_bytes.has_value());
  CHECK_FALSE(scan_memory_stat("").anon_bytes.has_value());
}

TEST_CASE("memory.events are read, unknown keys are skipped") {
  const MemoryEvents events =
      scan_memory_events("low 1\nhigh 2\nmax 3\noom 4\noom_kill 5\noom_group_kill 6\n");
  CHECK(events.low == 1);
  CHECK(events.high == 2);
  CHECK(events.max == 3);
  CHECK(events.oom == 4);
  CHECK(events.oom_kill == 5);
}

TEST_CASE("io.stat is summed over devices") {
  const IoStat io = scan_io_stat(
      "8:0 rbytes=100 wbytes=20 rios=3 wios=4 dbytes=9 dios=9\n254:0 rbytes=1 wbytes=2 rios=3 "
      "wios=4 dbytes=0 dios=0\n");
  CHECK(io.read_bytes == 101);
  CHECK(io.write_bytes == 22);
  CHECK(io.read_ios == 6);
  CHECK(io.write_ios == 8);
}

TEST_CASE("an empty io.stat is no I/O, a malformed number makes its sum absent") {
  CHECK(scan_io_stat("").read_bytes == 0);
  CHECK(scan_io_stat("8:0 \n").write_ios == 0);
  const IoStat io = scan_io_stat("8:0 rbytes=1 wbytes=x\n8:16 rbytes=2 wbytes=5\n");
  CHECK(io.read_bytes == 3);
  CHECK_FALSE(io.write_bytes.has_value());
}

TEST_CASE("a sum of io.stat that no counter can contain is absent instead of wrapping") {
  const std::string most = std::to_string((std::uint64_t{1} << 63) - 1);
  CHECK(scan_io_stat("8:0 rbytes=" + most + "\n").read_bytes == (std::uint64_t{1} << 63) - 1);
  CHECK_FALSE(scan_io_stat("8:0 rbytes=" + most + "\n8:1 rbytes=2\n").read_bytes.has_value());
  CHECK_FALSE(scan_io_stat("8:0 rbytes=18446744073709551615\n8:1 rbytes=2\n").read_bytes);
}

TEST_CASE("devices of io.stat may lack their numbers, their name and the last newline") {
  for (const char* text : {"252:0 ", "7:1 7:0 \n", "(unknown) \n", "7:7 7:6"}) {
    CHECK(scan_io_stat(text).read_bytes == 0);
    CHECK(scan_io_stat(text).write_ios == 0);
  }
  const std::string one = "rbytes=1000 wbytes=2000 rios=1 wios=2 dbytes=0 dios=0\n";
  for (const std::string& text :
       {"259:0 " + one + "7:1 7:0 ", "7:7 7:6 7:4 " + one, "(unknown) " + one, "8:0 " + one}) {
    CHECK(scan_io_stat(text).read_bytes == 1000);
    CHECK(scan_io_stat(text).write_bytes == 2000);
  }
}

TEST_CASE("if io.stat is cut anywhere, whole numbers count and parts of a number do not") {
  const std::string text = "8:0 rbytes=100 wbytes=200 rios=30 wios=40 dbytes=0 dios=0\n"
                           "8:16 rbytes=500 wbytes=600 rios=70 wios=80 dbytes=0 dios=0\n";
  for (std::size_t length = 0; length <= text.size(); ++length) {
    const IoStat io = scan_io_stat(text.substr(0, length));
    CAPTURE(length);
    CHECK((io.read_bytes == 0 || io.read_bytes == 100 || io.read_bytes == 600));
    CHECK((io.write_bytes == 0 || io.write_bytes == 200 || io.write_bytes == 800));
    CHECK((io.read_ios == 0 || io.read_ios == 30 || io.read_ios == 100));
    CHECK((io.write_ios == 0 || io.write_ios == 40 || io.write_ios == 120));
  }
  CHECK(scan_io_stat(text).write_ios == 120);
}

TEST_CASE("pressure averages are ratios and totals microseconds") {
  const Pressure pressure = scan_pressure(
      "some avg10=12.34 avg60=0.05 avg300=1.00 total=987654\n"
      "full avg10=100.00 avg60=0.00 avg300=0.00 total=5\n");
  CHECK(pressure.some.avg10_ratio == 0.1234);
  CHECK(pressure.some.avg60_ratio == 0.0005);
  CHECK(pressure.some.total_usec == 987654);
  CHECK(pressure.full.avg10_ratio == 1.0);
  CHECK(pressure.full.total_usec == 5);
}

TEST_CASE("a pressure file without its full line has no full values") {
  const Pressure pressure = scan_pressure("some avg10=1.00 avg60=2.00 avg300=3.00 total=4\n");
  CHECK(pressure.some.total_usec == 4);
  CHECK_FALSE(pressure.full.total_usec.has_value());
}

TEST_CASE("malformed pressure values are absent") {
  const Pressure pressure = scan_pressure("some avg10=nan avg60=100.01 avg300=0 total=4x\n");
  CHECK_FALSE(pressure.some.avg10_ratio.has_value());
  CHECK_FALSE(pressure.some.avg60_ratio.has_value());
  CHECK_FALSE(pressure.some.total_usec.has_value());
}

TEST_CASE("cpu.max with a quota reads as cores") {
  const auto max = scan_cpu_max("150000 100000\n");
  REQUIRE(max.has_value());
  CHECK(max->cores()->value == 1.5);
}

TEST_CASE("cpu.max with max quota reads as no limit and keeps its period") {
  CHECK(scan_cpu_max("max 50000\n") == CpuMax{std::nullopt, Microseconds{50'000}});
}

TEST_CASE("a malformed cpu.max is absent") {
  for (const char* text : {"", "max", "max\n", "100000\n", "1 2 3\n", "x 100000\n", "100000 0\n",
                           "100000 x\n", "maximum 100000\n", " 1 2\n", "1  2\n"})
    CHECK_FALSE(scan_cpu_max(text).has_value());
}

TEST_CASE("a limit is a number or max, and max is not a number") {
  CHECK(scan_limit("max\n") == MemoryLimit{});
  CHECK(scan_limit("4096\n") == MemoryLimit{Bytes{4096}});
  CHECK(scan_limit("0\n") == MemoryLimit{Bytes{0}});
  CHECK_FALSE(scan_limit("maximum\n").has_value());
  CHECK_FALSE(scan_limit("").has_value());
}

TEST_CASE("if a file is cut anywhere, every number is the kernel's or absent") {
  const auto either = [](const auto& value, auto right) { return !value || *value == right; };
  const std::string stat = "usage_usec 123456\nuser_usec 1234\nnr_throttled 77\n";
  const std::string pressure = "some avg10=12.34 avg60=5.67 avg300=0.00 total=98765\n"
                               "full avg10=1.25 avg60=0.00 avg300=0.00 total=43210\n";
  for (std::size_t length = 0; length < pressure.size(); ++length) {
    const CpuStat cpu = scan_cpu_stat(stat.substr(0, length));
    CHECK(either(cpu.usage_usec, 123456U));
    CHECK(either(cpu.user_usec, 1234U));
    const Pressure some = scan_pressure(pressure.substr(0, length));
    CHECK(either(some.some.avg10_ratio, 0.1234));
    CHECK(either(some.some.total_usec, 98765U));
    CHECK(either(some.full.avg10_ratio, 0.0125));
    CHECK_FALSE(some.full.total_usec.has_value());
    CHECK_FALSE(scan_number(std::string("1048576\n").substr(0, std::min(length, std::size_t{7}))));
    CHECK_FALSE(scan_limit(std::string("max\n").substr(0, std::min(length, std::size_t{3}))));
  }
  CHECK_FALSE(scan_cpu_max("200000 100").has_value());
  CHECK_FALSE(scan_cpu_max("max 100000").has_value());
  CHECK_FALSE(scan_cgroup_events("populated 1").populated.has_value());
}

TEST_CASE("a number below zero is absent, in every file") {
  constexpr const char* kNegatives[] = {"18446744073709547520", "9223372036854775808", "-4096"};
  for (const std::string number : kNegatives) {
    CHECK_FALSE(scan_cpu_stat("usage_usec " + number + "\n").usage_usec.has_value());
    CHECK_FALSE(scan_memory_stat("anon " + number + "\n").anon_bytes.has_value());
    CHECK_FALSE(scan_memory_stat("kernel " + number + "\nsock 1\n").kernel_bytes.has_value());
    CHECK_FALSE(scan_memory_events("max " + number + "\n").max.has_value());
    CHECK_FALSE(scan_amount(number + "\n").has_value());
    const Pressure pressure = scan_pressure("some avg10=0.00 total=" + number + "\n");
    CHECK_FALSE(pressure.some.total_usec.has_value());
  }
  CHECK(scan_amount("9223372036854775807\n") == (std::uint64_t{1} << 63) - 1);
}

TEST_CASE("if a key appears twice, the first number counts and no other key is lost") {
  const CpuStat cpu = scan_cpu_stat(
      "usage_usec 5\nusage_usec 6\nusage_usec 7\nusage_usec 7\nuser_usec x\nuser_usec 3\n"
      "system_usec 2\nnr_periods 9\nnr_throttled 8\nthrottled_usec 7\n");
  CHECK(cpu.usage_usec == 5);
  CHECK(cpu.user_usec == 3);
  CHECK(cpu.throttled_usec == 7);
}

TEST_CASE("huge pages are read if the kernel has a line for them") {
  CHECK(scan_memory_stat("anon 1\nhugetlb 2097152\npgfault 3\n").hugetlb_bytes == 2097152);
  CHECK_FALSE(scan_memory_stat("anon 1\n").hugetlb_bytes.has_value());
}

TEST_CASE("cgroup.events are flags") {
  const CgroupEvents events = scan_cgroup_events("populated 1\nfrozen 0\n");
  CHECK(events.populated == true);
  CHECK(events.frozen == false);
  CHECK_FALSE(scan_cgroup_events("populated 2\n").populated.has_value());
  CHECK_FALSE(scan_cgroup_events("").frozen.has_value());
}

namespace {

// The text in an allocation of exactly its size, so that the sanitizer detects a read past its end.
void scan_all(const std::string& text) {
  const std::unique_ptr<char[]> copy(new char[text.size()]);
  std::copy(text.begin(), text.end(), copy.get());
  const std::string_view view(copy.get(), text.size());
  scan_cpu_stat(view);
  scan_memory_stat(view);
  scan_memory_events(view);
  scan_io_stat(view);
  scan_cgroup_events(view);
  scan_cpu_max(view);
  scan_limit(view);
  scan_number(view);
  const Pressure pressure = scan_pressure(view);
  for (const auto& ratio : {pressure.some.avg10_ratio, pressure.full.avg60_ratio})
    if (ratio) CHECK((*ratio >= 0 && *ratio <= 1));
}

}  // namespace

TEST_CASE("arbitrary bytes do no harm to any scanner") {
  constexpr unsigned kSeed = 20240611;
  CAPTURE(kSeed);
  std::mt19937 random(kSeed);
  const std::string seeds[] = {
      "usage_usec 1\nnr_throttled 2\n", "anon 1\nkernel 2\npgmajfault 3\n",
      "8:0 rbytes=1 wbytes=2 rios=3 wios=4\n", "max 100000\n",
      "some avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00 total=1\n",
      "populated 1\nfrozen 0\n", "18446744073709551615\n"};
  for (int round = 0; round < 20'000; ++round) {
    std::string text = seeds[random() % std::size(seeds)];
    text.resize(random() % (text.size() + 1));
    for (auto changes = random() % 6; changes > 0 && !text.empty(); --changes)
      text[random() % text.size()] = static_cast<char>(random());
    scan_all(text);
  }
}

TEST_CASE("limit text that the kernel would not write is refused") {
  for (const char* text :
       {"", "max", "max ", "100000", "x 100000", "1 2 3", "-1 100000", "1 max"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_cpu_max(text).has_value());
  }
  for (const char* text : {"", "-1", "4096 ", "Max", "1e3", "18446744073709551616"}) {
    CAPTURE(text);
    CHECK_FALSE(parse_limit(text).has_value());
  }
}
