#include "collectors/cgroup_files.h"

#include <fcntl.h>

#include <vector>

#include "tests/collectors/one_cgroup.h"
#include "tests/few_descriptors.h"

using namespace cgphase;

TEST_CASE("every file goes to its field") {
  OneCgroup cgroup;
  cgroup.put("cpu.stat", "usage_usec 11\n");
  cgroup.put("cpu.max", "max 100000\n");
  cgroup.put("cpu.max.burst", "12\n");
  cgroup.put("cpu.weight", "13\n");
  cgroup.put("memory.current", "14\n");
  cgroup.put("memory.stat", "anon 15\n");
  cgroup.put("memory.events", "oom_kill 16\n");
  cgroup.put("memory.events.local", "max 28\noom 29\n");
  cgroup.put("memory.peak", "17\n");
  cgroup.put("memory.max", "18\n");
  cgroup.put("memory.high", "max\n");
  cgroup.put("memory.low", "19\n");
  cgroup.put("memory.min", "20\n");
  cgroup.put("memory.swap.current", "21\n");
  cgroup.put("memory.swap.max", "max\n");
  cgroup.put("io.stat", "8:0 rbytes=22\n");
  cgroup.put("pids.current", "23\n");
  cgroup.put("pids.max", "24\n");
  cgroup.put("cpu.pressure", "some avg10=0.00 total=25\n");
  cgroup.put("memory.pressure", "some avg10=0.00 total=26\n");
  cgroup.put("io.pressure", "full avg10=0.00 total=27\n");
  cgroup.put("cgroup.events", "populated 1\nfrozen 1\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  const Sample& sample = cgroup.sample;
  CHECK(sample.cpu.usage_usec == 11);
  CHECK(sample.limits.cpu_max == CpuMax{});
  CHECK(sample.limits.cpu_max_burst == Microseconds{12});
  CHECK(sample.limits.cpu_weight == 13);
  CHECK(sample.memory_current == Bytes{14});
  CHECK(sample.memory.anon_bytes == 15);
  CHECK(sample.memory_events.oom_kill == 16);
  CHECK(sample.own_limit_events.max == 28);
  CHECK(sample.own_limit_events.oom == 29);
  CHECK(sample.memory_peak == Bytes{17});
  CHECK(sample.limits.memory_max == MemoryLimit{Bytes{18}});
  CHECK(sample.limits.memory_high == MemoryLimit{});
  CHECK(sample.limits.memory_low == MemoryLimit{Bytes{19}});
  CHECK(sample.limits.memory_min == MemoryLimit{Bytes{20}});
  CHECK(sample.swap_current == Bytes{21});
  CHECK(sample.swap_max == MemoryLimit{});
  CHECK(sample.io.read_bytes == 22);
  CHECK(sample.pids_current == 23);
  CHECK(sample.pids_max == MemoryLimit{Bytes{24}});
  CHECK(sample.cpu_pressure.some.total_usec == 25);
  CHECK(sample.memory_pressure.some.total_usec == 26);
  CHECK(sample.io_pressure.full.total_usec == 27);
  CHECK(sample.populated == true);
  CHECK(sample.frozen == true);
}

TEST_CASE("a cgroup without any file is one whose fields are all absent") {
  OneCgroup cgroup;
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  const Sample& sample = cgroup.sample;
  CHECK_FALSE(sample.cpu.usage_usec.has_value());
  CHECK(sample.limits == Limits{});
  CHECK_FALSE(sample.memory_current.has_value());
  CHECK_FALSE(sample.io.read_bytes.has_value());
  CHECK_FALSE(sample.pids_max.has_value());
  CHECK_FALSE(sample.populated.has_value());
  CHECK_FALSE(memory_need(sample).has_value());
}

TEST_CASE("malformed files are absent fields") {
  OneCgroup cgroup;
  cgroup.put("memory.current", "many\n");
  cgroup.put("cpu.max", "a lot\n");
  cgroup.put("cpu.weight", "4294967296\n");
  cgroup.put("memory.max", "\xff\xff");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK_FALSE(cgroup.sample.memory_current.has_value());
  CHECK(cgroup.sample.limits == Limits{});
}

TEST_CASE("a directory removed before its files were opened is gone") {
  OneCgroup cgroup;
  cgroup.put("cpu.stat", "usage_usec 5\n");
  CgroupFiles files = cgroup.open();
  cgroup.remove("/c");
  CHECK_FALSE(cgroup.read(files));
}

TEST_CASE("pressure is read again after the kernel's two seconds, not before") {
  OneCgroup cgroup;
  cgroup.put("cpu.pressure", "some avg10=0.00 total=1\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  cgroup.put("cpu.pressure", "some avg10=0.00 total=2\n");
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.cpu_pressure.some.total_usec == 1);
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.cpu_pressure.some.total_usec == 2);
}

TEST_CASE("memory.stat of a cgroup that worked is read at every tick") {
  OneCgroup cgroup;
  cgroup.put("cpu.stat", "usage_usec 5\n");
  cgroup.put("memory.current", "100\n");
  cgroup.put("memory.stat", "anon 1\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  cgroup.put("memory.stat", "anon 2\n");
  cgroup.put("cpu.stat", "usage_usec 6\n");
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.memory.anon_bytes == 2);
  cgroup.put("memory.stat", "anon 3\n");
  cgroup.put("memory.current", "99\n");
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.memory.anon_bytes == 3);
}

TEST_CASE("memory.stat of an idle cgroup stands until its period is over") {
  OneCgroup cgroup;
  cgroup.put("cpu.stat", "usage_usec 5\n");
  cgroup.put("memory.current", "100\n");
  cgroup.put("memory.stat", "anon 1\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  cgroup.put("memory.stat", "anon 2\n");
  REQUIRE(cgroup.read(files, kIdleMemoryPeriod - std::chrono::nanoseconds(1)));
  CHECK(cgroup.sample.memory.anon_bytes == 1);
  REQUIRE(cgroup.read(files, std::chrono::nanoseconds(1)));
  CHECK(cgroup.sample.memory.anon_bytes == 2);
}

TEST_CASE("a file without a reported change is reused, and read again after its period") {
  OneCgroup cgroup;
  const auto put = [&](const std::string& number) {
    cgroup.put("memory.max", number);
    cgroup.put("memory.low", number);
    cgroup.put("memory.events", "low 0\nhigh " + number);
    cgroup.put("cgroup.events", "populated " + number);
  };
  const ReadPlan plan{.events = false, .limits = false, .writes_reported = true,
                      .memory_period = std::chrono::seconds(5)};
  const auto limit = [&] { return cgroup.sample.limits.memory_max->bytes->value; };
  put("0\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));  // the first reading reads all
  CHECK(cgroup.sample.populated == false);
  put("1\n");
  REQUIRE(cgroup.read(files, kEventsPeriod - std::chrono::nanoseconds(1), plan));
  CHECK(cgroup.sample.memory_events.high == 0);
  CHECK(cgroup.sample.populated == false);
  CHECK(limit() == 0);
  REQUIRE(cgroup.read(files, std::chrono::nanoseconds(1), plan));
  CHECK(cgroup.sample.memory_events.high == 1);
  CHECK(cgroup.sample.populated == true);
  CHECK(limit() == 0);
  REQUIRE(cgroup.read(files, kLimitsPeriod - kEventsPeriod, plan));
  CHECK(limit() == 1);
  CHECK(cgroup.sample.limits.memory_low == MemoryLimit{Bytes{1}});
}

TEST_CASE("only the files with a reported change are read") {
  OneCgroup cgroup;
  const auto put = [&](const std::string& number) {
    cgroup.put("memory.max", number);
    cgroup.put("memory.events", "low 0\nhigh " + number);
  };
  ReadPlan plan{.events = false, .limits = false, .writes_reported = true,
                .memory_period = std::chrono::seconds(5)};
  put("0\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  put("1\n");
  plan.events = true;
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  CHECK(cgroup.sample.memory_events.high == 1);
  CHECK(cgroup.sample.limits.memory_max == MemoryLimit{Bytes{0}});
  plan.events = false;
  plan.limits = true;
  put("2\n");
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  CHECK(cgroup.sample.memory_events.high == 1);
  CHECK(cgroup.sample.limits.memory_max == MemoryLimit{Bytes{2}});
}

TEST_CASE("a limit with a reported write is read although its file was absent before") {
  OneCgroup cgroup;
  ReadPlan plan{.events = false, .limits = false, .writes_reported = true};
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  cgroup.put("memory.max", "1\n");
  cgroup.put("memory.low", "2\n");
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  CHECK(cgroup.sample.limits == Limits{});
  plan.limits = true;
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), plan));
  CHECK(cgroup.sample.limits.memory_max == MemoryLimit{Bytes{1}});
  CHECK(cgroup.sample.limits.memory_low == MemoryLimit{Bytes{2}});
}

TEST_CASE("the last descriptors are not used for files of cgroups") {
  OneCgroup cgroup;
  cgroup.put("cpu.stat", "usage_usec 1\n");
  cgroup.put("memory.current", "2\n");
  cgroup.put("pids.current", "3\n");
  CgroupFiles files = cgroup.open();
  const FewDescriptors few(static_cast<int>(kReservedDescriptors) + 2);
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.cpu.usage_usec == 1);
  CHECK(cgroup.sample.memory_current == Bytes{2});
  CHECK_FALSE(cgroup.sample.pids_current);
  CHECK(files.short_of_descriptors());
  std::vector<Fd> others;
  while (auto other = open_path(cgroup.root(), O_RDONLY)) others.push_back(std::move(*other));
  CHECK(others.size() > kReservedDescriptors / 2);  // some may have been open before
}

TEST_CASE("limits that may be changed are read every few seconds without a report") {
  OneCgroup cgroup;
  const ReadPlan close{.events = false, .limits = false, .writes_reported = true,
                       .limits_period = kDetailLimitsPeriod};
  cgroup.put("memory.max", "0\n");
  cgroup.put("memory.stat", "anon 0\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), close));
  cgroup.put("memory.max", "1\n");
  cgroup.put("memory.stat", "anon 1\n");
  REQUIRE(cgroup.read(files, kDetailLimitsPeriod - std::chrono::nanoseconds(1), close));
  CHECK(cgroup.sample.limits.memory_max == MemoryLimit{Bytes{0}});
  CHECK(cgroup.sample.memory.anon_bytes == 1);
  REQUIRE(cgroup.read(files, std::chrono::nanoseconds(1), close));
  CHECK(cgroup.sample.limits.memory_max == MemoryLimit{Bytes{1}});
}

namespace {

// Files that differ at each reading, and the record of a walk.
struct WalkedCgroup : OneCgroup {
  pull_record record{};
  int number = 0;
  ReadPlan plan{.events = false, .limits = false, .writes_reported = true};

  WalkedCgroup() {
    record.parts = PULL_STATE | PULL_LIMITS;
    REQUIRE((files = open(), read_next(std::chrono::seconds(1))));
  }
  bool read_next(std::chrono::nanoseconds after) {
    const std::string text = std::to_string(number++) + "\n";
    put("memory.max", text);
    put("memory.low", text);
    put("cgroup.events", "populated 1\nfrozen " + std::to_string(number % 2) + "\n");
    return read(*files, after, plan, {.record = &record});
  }
  std::uint64_t limit() const {
    CHECK(sample.limits.memory_max == sample.limits.memory_low);
    return sample.limits.memory_max->bytes->value;
  }
};

}  // namespace

TEST_CASE("limits in a record are read when it changes, and every ten minutes") {
  WalkedCgroup cgroup;
  REQUIRE(cgroup.read_next(kWalkedLimitsPeriod - std::chrono::nanoseconds(1)));
  CHECK(cgroup.limit() == 0);
  REQUIRE(cgroup.read_next(std::chrono::nanoseconds(1)));
  CHECK(cgroup.limit() == 2);
  ++cgroup.record.limits;
  REQUIRE(cgroup.read_next(std::chrono::seconds(1)));
  CHECK(cgroup.limit() == 3);
  REQUIRE(cgroup.read_next(std::chrono::seconds(1)));
  CHECK(cgroup.limit() == 3);
}

TEST_CASE("a limit is read after a change of the record although its file was absent before") {
  WalkedCgroup cgroup;
  cgroup.put("cpu.max", "50000 100000\n");
  cgroup.put("pids.max", "9\n");
  REQUIRE(cgroup.read_next(std::chrono::seconds(1)));
  CHECK_FALSE(cgroup.sample.limits.cpu_max.has_value());
  ++cgroup.record.limits;
  REQUIRE(cgroup.read_next(std::chrono::seconds(1)));
  CHECK(cgroup.sample.limits.cpu_max.has_value());
  CHECK(cgroup.sample.pids_max.has_value());
}

TEST_CASE("a limit whose file appears without a report is read with the absent files") {
  WalkedCgroup cgroup;
  cgroup.put("cpu.max", "50000 100000\n");
  REQUIRE(cgroup.read_next(kAbsentPeriod - std::chrono::nanoseconds(1)));
  CHECK_FALSE(cgroup.sample.limits.cpu_max.has_value());
  REQUIRE(cgroup.read_next(std::chrono::nanoseconds(1)));
  CHECK(cgroup.sample.limits.cpu_max.has_value());
  cgroup.put("pids.max", "9\n");
  REQUIRE(cgroup.read_next(kAbsentPeriod));
  CHECK(cgroup.sample.pids_max.has_value());
}

TEST_CASE("limits that may be changed and are in a record are read once a minute") {
  WalkedCgroup cgroup;
  cgroup.plan.limits_period = kDetailLimitsPeriod;
  REQUIRE(cgroup.read_next(kLimitsPeriod - std::chrono::nanoseconds(1)));
  CHECK(cgroup.limit() == 0);
  REQUIRE(cgroup.read_next(std::chrono::nanoseconds(1)));
  CHECK(cgroup.limit() == 2);
}

TEST_CASE("limits that a record lacks are read as often as without a walk") {
  WalkedCgroup cgroup;
  cgroup.record.parts = PULL_STATE;
  REQUIRE(cgroup.read_next(kLimitsPeriod));
  CHECK(cgroup.limit() == 1);
}

TEST_CASE("whether a cgroup is frozen is read when the state in the record changes") {
  WalkedCgroup cgroup;
  CHECK(cgroup.sample.frozen == true);
  REQUIRE(cgroup.read_next(std::chrono::seconds(1)));
  CHECK(cgroup.sample.frozen == true);
  for (int i = 0; i < 2; ++i) {
    ++cgroup.record.state;
    REQUIRE(cgroup.read_next(std::chrono::seconds(1)));
  }
  CHECK(cgroup.sample.frozen == false);
}

TEST_CASE("need of an observed cgroup is as old as allowed, and newer where much moved") {
  OneCgroup cgroup;
  const ReadPlan observed{.memory_period = std::chrono::seconds(5)};
  int usage = 0;
  const auto read = [&](const char* current, const char* need, std::chrono::nanoseconds after) {
    cgroup.put("cpu.stat", "usage_usec " + std::to_string(++usage) + "\n");
    cgroup.put("memory.current", current);
    cgroup.put("memory.stat", std::string("anon ") + need);
    cgroup.put("memory.swap.current", need);
    REQUIRE(cgroup.read(*cgroup.files, after, observed));
    CHECK(cgroup.sample.memory.anon_bytes == cgroup.sample.swap_current->value);
    return *cgroup.sample.memory.anon_bytes;
  };
  cgroup.files.emplace(cgroup.open());
  CHECK(read("3200\n", "1\n", std::chrono::seconds(1)) == 1);
  CHECK(read("3300\n", "2\n", std::chrono::seconds(1)) == 1);  // 1/32 more
  CHECK(read("3301\n", "3\n", std::chrono::seconds(1)) == 3);
  CHECK(read("3197\n", "4\n", std::chrono::seconds(1)) == 4);
  CHECK(read("3197\n", "5\n", std::chrono::seconds(5) - std::chrono::nanoseconds(1)) == 4);
  CHECK(read("3197\n", "6\n", std::chrono::nanoseconds(1)) == 6);
}

TEST_CASE("of one of many that are observed, what changes no decision is read every ten seconds") {
  OneCgroup cgroup;
  const ReadPlan sparse{.memory_period = kSparsePeriod, .sparse = true};
  const auto put = [&](const std::string& number) {
    cgroup.put("pids.current", number + "\n");
    for (const char* file : {"cpu.pressure", "memory.pressure", "io.pressure"})
      cgroup.put(file, "some avg10=0.00 total=" + number + "\n");
  };
  const auto all = [&](std::uint64_t number) {
    const Sample& sample = cgroup.sample;
    return sample.pids_current == number && sample.cpu_pressure.some.total_usec == number &&
           sample.memory_pressure.some.total_usec == number &&
           sample.io_pressure.some.total_usec == number;
  };
  put("1");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files, std::chrono::seconds(1), sparse));
  CHECK(all(1));
  put("2");
  REQUIRE(cgroup.read(files, kSparsePeriod - std::chrono::nanoseconds(1), sparse));
  CHECK(all(1));
  REQUIRE(cgroup.read(files, std::chrono::nanoseconds(1), sparse));
  CHECK(all(2));
  put("3");
  REQUIRE(cgroup.read(files, kPressurePeriod));  // somebody may change its limits now
  CHECK(all(3));
}

TEST_CASE("of one of many that are observed, io.stat is read when CPU time went by") {
  OneCgroup cgroup;
  const ReadPlan sparse{.memory_period = kSparsePeriod, .sparse = true};
  const auto put = [&](const char* usage, const char* bytes) {
    cgroup.put("cpu.stat", std::string("usage_usec ") + usage + "\n");
    cgroup.put("io.stat", std::string("8:0 rbytes=") + bytes + "\n");
  };
  const auto read = [&](std::chrono::nanoseconds after, const ReadPlan& plan) {
    REQUIRE(cgroup.read(*cgroup.files, after, plan));
    return cgroup.sample.io.read_bytes.value();
  };
  cgroup.files.emplace(cgroup.open());
  put("5", "1");
  CHECK(read(std::chrono::seconds(1), sparse) == 1);
  put("6", "2");
  CHECK(read(std::chrono::seconds(1), sparse) == 2);
  put("6", "3");
  CHECK(read(kSparsePeriod - std::chrono::nanoseconds(1), sparse) == 2);
  CHECK(read(std::chrono::nanoseconds(1), sparse) == 3);
  put("6", "4");
  CHECK(read(std::chrono::seconds(1), {}) == 4);
}

TEST_CASE("events at the own limit are read again when there are new ones below it") {
  OneCgroup cgroup;
  const auto at = [&](const char* all, const char* own) {
    cgroup.put("memory.events", std::string("low 0\nhigh 0\n") + all);
    cgroup.put("memory.events.local", std::string("low 0\nhigh 0\n") + own);
  };
  at("max 4\noom 1\noom_kill 1\n", "max 3\noom 0\noom_kill 0\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.own_limit_events.max == 3);
  CHECK(cgroup.sample.own_limit_events.oom == 0);
  at("max 4\noom 1\noom_kill 1\n", "max 9\noom 9\n");  // as the kernel never has it
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.own_limit_events.max == 3);
  at("max 4\noom 2\noom_kill 2\n", "max 3\noom 1\noom_kill 0\n");
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.own_limit_events.oom == 1);
  cgroup.remove("/c/memory.events.local");
  cgroup.put("memory.events", "low 0\nhigh 0\nmax 5\noom 2\noom_kill 2\n");
  REQUIRE(cgroup.read(files));
  CHECK_FALSE(cgroup.sample.own_limit_events.max.has_value());
  CHECK_FALSE(cgroup.sample.own_limit_events.oom.has_value());
}

TEST_CASE("limits that change seldom are read again after their period") {
  OneCgroup cgroup;
  cgroup.put("memory.low", "1\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  cgroup.put("memory.low", "2\n");
  REQUIRE(cgroup.read(files, kSlowPeriod - std::chrono::nanoseconds(1)));
  CHECK(cgroup.sample.limits.memory_low == MemoryLimit{Bytes{1}});
  REQUIRE(cgroup.read(files, std::chrono::nanoseconds(1)));
  CHECK(cgroup.sample.limits.memory_low == MemoryLimit{Bytes{2}});
}

TEST_CASE("a file that comes later is found after its period") {
  OneCgroup cgroup;
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  cgroup.put("cpu.max", "max 100000\n");
  cgroup.put("pids.max", "9\n");
  REQUIRE(cgroup.read(files, kAbsentPeriod - std::chrono::nanoseconds(1)));
  CHECK_FALSE(cgroup.sample.limits.cpu_max.has_value());
  REQUIRE(cgroup.read(files, std::chrono::nanoseconds(1)));
  CHECK(cgroup.sample.limits.cpu_max.has_value());
  REQUIRE(cgroup.read(files, kSlowPeriod));
  CHECK(cgroup.sample.pids_max.has_value());
}

TEST_CASE("a file that vanished is looked for at each reading, and found as soon as it is back") {
  OneCgroup cgroup;
  cgroup.put("pids.max", "9\n");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK(cgroup.sample.pids_max.has_value());
  cgroup.remove("/c/pids.max");
  REQUIRE(cgroup.read(files, kSlowPeriod));
  CHECK_FALSE(cgroup.sample.pids_max.has_value());
  for (int i = 0; i < 3; ++i) REQUIRE(cgroup.read(files, std::chrono::seconds(1)));
  CHECK_FALSE(cgroup.sample.pids_max.has_value());
  cgroup.put("pids.max", "8\n");
  REQUIRE(cgroup.read(files, std::chrono::seconds(1)));
  CHECK(cgroup.sample.pids_max.has_value());
}

TEST_CASE("a link in place of a kernel file is not followed") {
  OneCgroup cgroup;
  cgroup.write("/elsewhere", "5\n");
  std::filesystem::create_symlink(cgroup.root() + "/elsewhere",
                                  cgroup.root() + "/c/memory.current");
  CgroupFiles files = cgroup.open();
  REQUIRE(cgroup.read(files));
  CHECK_FALSE(cgroup.sample.memory_current.has_value());
}

TEST_CASE("every kernel file has a name of its own") {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kKernelFileCount; ++i)
    names.emplace_back(kernel_file_name(static_cast<KernelFile>(i)));
  std::sort(names.begin(), names.end());
  CHECK(std::unique(names.begin(), names.end()) == names.end());
  CHECK_FALSE(names.front().empty());
}
