#include "cgroupfs/knob_file.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <initializer_list>
#include <random>

#include "cgroupfs/cgroup_directory.h"
#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

namespace {

Limits parsed(Knob knob, std::string_view text) {
  Limits limits;
  REQUIRE(parse_knob(knob, text, limits));
  return limits;
}

std::string there_and_back(Knob knob, std::string_view text) {
  return std::string(format_knob(knob, parsed(knob, text)).value().view());
}

ErrorKind refused(Knob knob, std::string_view text) {
  Limits limits;
  return parse_knob(knob, text, limits).error().kind;
}

ErrorKind refused(Knob knob, const Limits& limits) {
  return format_knob(knob, limits).error().kind;
}

std::array<Knob, kKnobCount> order(std::string_view cpu_before, std::string_view cpu_after,
                                   std::string_view memory_before, std::string_view memory_after) {
  Limits before = parsed(Knob::cpu_max, cpu_before), after = parsed(Knob::cpu_max, cpu_after);
  before.memory_max = parsed(Knob::memory_max, memory_before).memory_max;
  after.memory_max = parsed(Knob::memory_max, memory_after).memory_max;
  return write_order(before, after);
}

// A number of any size, often at a bound or next to one.
std::uint64_t any_number(std::mt19937_64& random, std::initializer_list<std::uint64_t> bounds) {
  const std::uint64_t wide = random() >> (random() % 64);
  if (random() % 4 != 0) return wide;
  return bounds.begin()[random() % bounds.size()] + random() % 3 - 1;
}

Limits any_limits(std::mt19937_64& random) {
  const auto memory = [&] {
    return random() % 8 == 0 ? MemoryLimit{}
                             : MemoryLimit{Bytes{any_number(random, {0, kLargestMemoryBytes})}};
  };
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{any_number(random, {kSmallestQuotaUsec, kLargestQuotaUsec})},
                          Microseconds{any_number(random, {kSmallestPeriodUsec,
                                                           kLargestPeriodUsec})}};
  if (random() % 8 == 0) limits.cpu_max->quota.reset();
  limits.cpu_max_burst = Microseconds{any_number(random, {0, kLargestQuotaUsec})};
  limits.cpu_weight =
      static_cast<std::uint32_t>(any_number(random, {kSmallestWeight, kLargestWeight}));
  limits.memory_max = memory();
  limits.memory_high = memory();
  limits.frozen = random() % 2 == 0;
  return limits;
}

const MemoryLimit& memory_of(Knob knob, const Limits& limits) {
  return knob == Knob::memory_max ? *limits.memory_max : *limits.memory_high;
}

// The kernel's bounds, written a second time for the test.
bool within_bounds(Knob knob, const Limits& limits) {
  const auto between = [](std::uint64_t value, std::uint64_t least, std::uint64_t most) {
    return least <= value && value <= most;
  };
  switch (knob) {
    case Knob::cpu_max:
      return between(limits.cpu_max->period.value, 1'000, 1'000'000) &&
             (!limits.cpu_max->quota || between(limits.cpu_max->quota->value, 1'000, 1ULL << 43));
    case Knob::cpu_max_burst: return between(limits.cpu_max_burst->value, 0, 1ULL << 43);
    case Knob::cpu_weight: return between(*limits.cpu_weight, 1, 10'000);
    case Knob::cgroup_freeze: return true;
    case Knob::memory_max:
    case Knob::memory_high:
      return between(memory_of(knob, limits).bytes.value_or(Bytes{0}).value, 0, 1ULL << 62);
  }
  return false;
}

// The same value; memory may have been rounded up to a whole page.
bool is_rounded(Knob knob, const Limits& wanted, const Limits& back) {
  if (knob != Knob::memory_max && knob != Knob::memory_high)
    return compare_knob(knob, back, wanted) == 0;
  const MemoryLimit &before = memory_of(knob, wanted), &after = memory_of(knob, back);
  if (!before.bytes || !after.bytes) return !before.bytes && !after.bytes;
  return after.bytes->value % kPageBytes == 0 && after.bytes->value >= before.bytes->value &&
         after.bytes->value - before.bytes->value < kPageBytes;
}

bool comes_before(const std::array<Knob, kKnobCount>& all, Knob first, Knob second) {
  return std::find(all.begin(), all.end(), first) < std::find(all.begin(), all.end(), second);
}

}  // namespace

// rule: S-13
TEST_CASE("the text of every knob survives reading and writing") {
  for (const char* text : {"50000 100000", "max 100000", "1000 1000", "8796093022208 1000000"})
    CHECK(there_and_back(Knob::cpu_max, text) == text);
  for (const char* text : {"0", "100000"}) CHECK(there_and_back(Knob::cpu_max_burst, text) == text);
  for (const char* text : {"1", "100", "10000"})
    CHECK(there_and_back(Knob::cpu_weight, text) == text);
  for (const char* text : {"0", "1"}) CHECK(there_and_back(Knob::cgroup_freeze, text) == text);
  for (const char* text : {"0", "4096", "max", "4611686018427387904"}) {
    CHECK(there_and_back(Knob::memory_max, text) == text);
    CHECK(there_and_back(Knob::memory_high, text) == text);
  }
}

// rule: S-13
TEST_CASE("every possible value of a knob survives writing and reading, and no value beyond its "
          "bounds is written") {
  constexpr std::uint32_t kSeed = 1, kRounds = 20'000;
  CAPTURE(kSeed);
  std::mt19937_64 random(kSeed);
  std::array<int, kKnobCount> written{}, beyond{};
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    const Limits limits = any_limits(random);
    for (const Knob knob : kKnobs) {
      const auto at = static_cast<std::size_t>(knob);
      const Result<KnobText> text = format_knob(knob, limits);
      CAPTURE(file_name(knob));
      CHECK(text.has_value() == within_bounds(knob, limits));
      if (!text) {
        ++beyond[at];
        CHECK(text.error().kind == ErrorKind::invalid);
        continue;
      }
      ++written[at];
      CAPTURE(std::string(text->view()));
      const Limits back = parsed(knob, text->view());
      CHECK(format_knob(knob, back).value() == *text);
      CHECK(is_rounded(knob, limits, back));
      CHECK(same_value(knob, *text, text_of(std::string(text->view()) + "\n")));
    }
  }
  for (const Knob knob : kKnobs) {
    CHECK(written[static_cast<std::size_t>(knob)] > 1000);
    // A flag has none.
    if (knob != Knob::cgroup_freeze) CHECK(beyond[static_cast<std::size_t>(knob)] > 1000);
  }
}

TEST_CASE("cpu.max with max quota reads as no limit") {
  const Limits limits = parsed(Knob::cpu_max, "max 50000\n");
  CHECK_FALSE(limits.cpu_max->quota.has_value());
  CHECK(limits.cpu_max->period.value == 50'000);
}

TEST_CASE("malformed text is rejected and changes nothing") {
  for (const char* text : {"", "max", "50000", "x 100000", "50000 0", "1 2 3", "-1 100000",
                           "50000 999", "50000 1000001"})
    CHECK(refused(Knob::cpu_max, text) == ErrorKind::invalid);
  for (const char* text : {"", "max", "1.5", "-1"})
    CHECK(refused(Knob::cpu_max_burst, text) == ErrorKind::invalid);
  for (const char* text : {"10001", "idle"})
    CHECK(refused(Knob::cpu_weight, text) == ErrorKind::invalid);
  for (const char* text : {"2", "-1", "", "on", "max"})
    CHECK(refused(Knob::cgroup_freeze, text) == ErrorKind::invalid);
  for (const char* text : {"", "MAX", "4096 4096", "99999999999999999999"})
    CHECK(refused(Knob::memory_max, text) == ErrorKind::invalid);
}

TEST_CASE("a quota is written from one millisecond on") {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{kSmallestQuotaUsec}, Microseconds{100'000}};
  CHECK(format_knob(Knob::cpu_max, limits).value().view() == "1000 100000");
  limits.cpu_max->quota = Microseconds{kSmallestQuotaUsec - 1};
  CHECK(refused(Knob::cpu_max, limits) == ErrorKind::invalid);
}

TEST_CASE("a quota is written up to its bound") {
  Limits limits;
  limits.cpu_max = CpuMax{Microseconds{kLargestQuotaUsec}, Microseconds{100'000}};
  CHECK(format_knob(Knob::cpu_max, limits));
  limits.cpu_max->quota = Microseconds{kLargestQuotaUsec + 1};
  CHECK(refused(Knob::cpu_max, limits) == ErrorKind::invalid);
}

TEST_CASE("a period outside the kernel's bounds is rejected") {
  Limits limits;
  for (const std::uint64_t period : {kSmallestPeriodUsec, kLargestPeriodUsec}) {
    limits.cpu_max = CpuMax{Microseconds{5000}, Microseconds{period}};
    CHECK(format_knob(Knob::cpu_max, limits));
  }
  for (const std::uint64_t period : {kSmallestPeriodUsec - 1, kLargestPeriodUsec + 1}) {
    limits.cpu_max = CpuMax{Microseconds{5000}, Microseconds{period}};
    CHECK(refused(Knob::cpu_max, limits) == ErrorKind::invalid);
  }
}

TEST_CASE("a weight outside 1 to 10000 is rejected") {
  Limits limits;
  for (const std::uint32_t weight : {kSmallestWeight, kLargestWeight}) {
    limits.cpu_weight = weight;
    CHECK(format_knob(Knob::cpu_weight, limits));
  }
  for (const std::uint32_t weight : {kSmallestWeight - 1, kLargestWeight + 1}) {
    limits.cpu_weight = weight;
    CHECK(refused(Knob::cpu_weight, limits) == ErrorKind::invalid);
  }
}

TEST_CASE("memory is written in whole pages and never rounded down") {
  Limits limits;
  limits.memory_max = MemoryLimit{Bytes{1'000'000}};
  CHECK(format_knob(Knob::memory_max, limits).value().view() == "1003520");
  limits.memory_max = MemoryLimit{Bytes{kLargestMemoryBytes}};
  CHECK(format_knob(Knob::memory_max, limits));
  limits.memory_max = MemoryLimit{Bytes{kLargestMemoryBytes + 1}};
  CHECK(refused(Knob::memory_max, limits) == ErrorKind::invalid);
}

TEST_CASE("an absent field has nothing to write") {
  for (const Knob knob : kKnobs) CHECK(refused(knob, Limits{}) == ErrorKind::not_found);
}

TEST_CASE("a value of 31 characters fits, one of 32 does not") {
  CHECK(KnobText::from(std::string(31, '1')).value().view().size() == 31);
  CHECK_FALSE(KnobText::from(std::string(32, '1')).has_value());
}

TEST_CASE("max is above every number, and cpu.max compares by quota / period") {
  const auto compare = [](Knob knob, const char* after, const char* before) {
    return compare_knob(knob, parsed(knob, after), parsed(knob, before));
  };
  CHECK(compare(Knob::memory_max, "max", "4611686018427387904") > 0);
  CHECK(compare(Knob::memory_max, "4096", "max") < 0);
  CHECK(compare(Knob::memory_high, "max", "max") == 0);
  CHECK(compare(Knob::cpu_max, "max 100000", "800000 100000") > 0);
  CHECK(compare(Knob::cpu_max, "50000 100000", "25000 50000") == 0);
  CHECK(compare(Knob::cpu_max, "50000 100000", "50000 50000") < 0);
  CHECK(compare(Knob::cpu_weight, "200", "100") > 0);
  CHECK(compare(Knob::cgroup_freeze, "1", "0") < 0);
}

TEST_CASE("a burst is cut to a quota below it, and fits every other quota") {
  const auto cut = [](const char* burst, const char* quota) {
    return cut_to_quota(text_of(burst), text_of(quota));
  };
  CHECK(cut("50001", "50000 100000") == text_of("50000"));
  CHECK_FALSE(cut("50000", "50000 100000"));
  CHECK_FALSE(cut("50000", "max 100000"));
  CHECK_FALSE(cut("50000", "no quota"));
}

// rule: CPU-01
TEST_CASE("the quota is written before the burst if the CPU limit rises, after it if it falls") {
  const auto up = order("50000 100000", "80000 100000", "max", "max");
  CHECK(comes_before(up, Knob::cpu_max, Knob::cpu_max_burst));
  const auto down = order("80000 100000", "50000 100000", "max", "max");
  CHECK(comes_before(down, Knob::cpu_max_burst, Knob::cpu_max));
}

// rule: MEM-01
TEST_CASE("memory.max is written before memory.high if memory rises, after it if it falls") {
  const auto up = order("max 100000", "max 100000", "4096", "8192");
  CHECK(comes_before(up, Knob::memory_max, Knob::memory_high));
  const auto down = order("max 100000", "max 100000", "8192", "4096");
  CHECK(comes_before(down, Knob::memory_high, Knob::memory_max));
}

TEST_CASE("limits are read from a directory, and a missing file is an absent field") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  std::filesystem::remove(box.directory() + "/cpu.max.burst");
  const Limits limits = read_limits(box.open().get()).value();
  CHECK(limits.cpu_cores()->value == 2.0);
  CHECK(limits.memory_bytes()->value == kGiB);
  CHECK_FALSE(limits.memory_high->bytes.has_value());
  CHECK_FALSE(limits.cpu_max_burst.has_value());
  CHECK_FALSE(limits.memory_min.has_value());
}

TEST_CASE("a removed directory reads and writes as gone") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  const Fd directory = box.open();
  CHECK(directory_alive(directory.get()));
  box.remove();
  CHECK_FALSE(directory_alive(directory.get()));
  CHECK(read_limits(directory.get()).error().kind == ErrorKind::gone);
  CHECK(write_knob(directory.get(), Knob::cpu_max, text_of("max 100000")).error().kind ==
        ErrorKind::gone);
}

// rule: SEC-04
TEST_CASE("a knob that is a symbolic link is not followed") {
  const TemporaryDirectory root;
  const FakeCgroup box(root.path());
  std::filesystem::rename(box.directory() + "/cpu.max", root.path() + "/elsewhere");
  std::filesystem::create_symlink(root.path() + "/elsewhere", box.directory() + "/cpu.max");
  CHECK_FALSE(write_knob(box.open().get(), Knob::cpu_max, text_of("max 100000")));
  CHECK(get_file(root.path() + "/elsewhere") == "200000 100000\n");
}
