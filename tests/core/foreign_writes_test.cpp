#include "core/foreign_writes.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <vector>

#include "base/text.h"

using namespace cgphase;

namespace {

using std::chrono::seconds;

constexpr CgroupId kWritten{30, 23}, kOther{30, 24};
constexpr MonotonicTime kLongAgo{};

LimitWrite write_of(const std::string& file, const std::string& value, int second = 100) {
  return {.time = MonotonicTime(seconds(second)),
          .directory = kWritten.inode,
          .file = file,
          .value = value,
          .pid = 812,
          .command = "dockerd",
          .writer_cgroup = 68,
          .writer_path = "/system.slice/docker.service"};
}

ForeignWrites remembered(std::vector<LimitWrite> writes) {
  ForeignWrites known;
  known.remember(std::move(writes), std::vector{kWritten});
  return known;
}

// Whether a write of `value` is taken for what made `limits`.
bool explains(const std::string& file, const std::string& value, const Limits& limits) {
  return !remembered({write_of(file, value)}).writer(kWritten, limits, kLongAgo).empty();
}

Limits memory_limits(std::optional<std::uint64_t> bytes) {
  Limits limits;
  limits.memory_max.emplace();
  if (bytes) limits.memory_max->bytes = Bytes{*bytes};
  return limits;
}

Limits cpu_limits(std::optional<std::uint64_t> quota, std::uint64_t period = 100'000) {
  Limits limits;
  limits.cpu_max = CpuMax{std::nullopt, Microseconds{period}};
  if (quota) limits.cpu_max->quota = Microseconds{*quota};
  return limits;
}

}  // namespace

TEST_CASE("a write is reported with its command, pid, unit, file and value") {
  CHECK(remembered({write_of("memory.max", "536870912")})
            .writer(kWritten, memory_limits(536870912), kLongAgo) ==
        "dockerd (pid 812, docker.service) wrote memory.max 536870912");
  LimitWrite homeless = write_of("cpu.max", "50000 100000");
  homeless.writer_path.clear();
  CHECK(remembered({homeless}).writer(kWritten, cpu_limits(50'000), kLongAgo) ==
        "dockerd (pid 812) wrote cpu.max 50000 100000");
}

TEST_CASE("hostile commands, cgroups and values become printable text") {
  LimitWrite write = write_of("memory.max", "512M");
  write.command = "\x1b[2J\xff";
  write.writer_path = "/a\nb/\x1b.scope";
  CHECK(remembered({write}).writer(kWritten, memory_limits(512 << 20), kLongAgo) ==
        "\"\\x1b[2J\\xff\" (pid 812, \\x1b.scope) wrote memory.max 512M");
}

TEST_CASE("a command, a unit or a value that imitates our words is in quotes") {
  LimitWrite write = write_of("cpu.max", "50000 100000 (pid 1, init.scope)");
  write.command = "systemd (pid 1,";
  write.writer_path = "/a) wrote \"1\"; b (pid 1, init.scope";
  CHECK(remembered({write}).writer(kWritten, cpu_limits(50'000), kLongAgo) ==
        "\"systemd (pid 1,\" (pid 812, \"a) wrote \\\"1\\\"; b (pid 1, init.scope\") wrote cpu.max "
        "\"50000 100000 (pid 1, init.scope)\"");
  write = write_of("memory.max", "512M");
  write.command = "\xef\xbc\x88pid 1";  // a parenthesis of another alphabet
  CHECK(remembered({write}).writer(kWritten, memory_limits(512 << 20), kLongAgo)
            .starts_with("\"\xef\xbc\x88pid 1\" (pid 812, "));
  write.command.clear();
  CHECK(remembered({write}).writer(kWritten, memory_limits(512 << 20), kLongAgo)
            .starts_with("\"\" (pid 812, "));
}

TEST_CASE("a name that is cut stays well-formed text") {
  for (std::size_t letters = 120; letters < 130; ++letters) {
    LimitWrite write = write_of("memory.max", "512M");
    write.writer_path = "/\n/";
    for (std::size_t i = 0; i < letters; ++i) write.writer_path += "\xc3\xa9";
    const std::string reported =
        remembered({write}).writer(kWritten, memory_limits(512 << 20), kLongAgo);
    CHECK(reported == printable(reported));
  }
}

TEST_CASE("only a write whose value is in force explains it") {
  CHECK(explains("memory.max", "536870912", memory_limits(536870912)));
  CHECK(explains("memory.max", "512M", memory_limits(536870912)));
  CHECK(explains("memory.max", "max", memory_limits(std::nullopt)));
  CHECK_FALSE(explains("memory.max", "536870912", memory_limits(536875008)));
  CHECK_FALSE(explains("memory.max", "max", memory_limits(536870912)));
  CHECK_FALSE(explains("memory.max", "536870912", memory_limits(std::nullopt)));
  CHECK_FALSE(explains("memory.max", "nonsense", memory_limits(0)));
  CHECK_FALSE(explains("memory.max", "", memory_limits(0)));
  CHECK_FALSE(explains("memory.max", "536870912", Limits{}));
  CHECK(explains("cpu.max", "50000 100000", cpu_limits(50'000)));
  CHECK(explains("cpu.max", "50000", cpu_limits(50'000, 20'000)));
  CHECK(explains("cpu.max", "max 100000", cpu_limits(std::nullopt)));
  CHECK_FALSE(explains("cpu.max", "50000 100000", cpu_limits(50'000, 20'000)));
  CHECK_FALSE(explains("cpu.max", "max", cpu_limits(50'000)));
  CHECK_FALSE(explains("cpu.max", "50000", cpu_limits(std::nullopt)));
  CHECK_FALSE(explains("cpu.max", "", cpu_limits(std::nullopt)));
  CHECK_FALSE(explains("cpu.max", "50000", memory_limits(50'000)));
  Limits burst = cpu_limits(50'000);
  burst.cpu_max_burst = Microseconds{7000};
  CHECK(explains("cpu.max.burst", "7000", burst));
  CHECK_FALSE(explains("cpu.max.burst", "7001", burst));
  CHECK_FALSE(explains("cpu.max.burst", "7000", cpu_limits(50'000)));
}

TEST_CASE("the kernel takes whole pages, so a write of a part of one explains what is left of it") {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  CHECK(explains("memory.max", std::to_string(2 * page - 1), memory_limits(page)));
  CHECK_FALSE(explains("memory.max", std::to_string(2 * page), memory_limits(page)));
}

TEST_CASE("the newest of several matching writes is reported, and none from before the start") {
  std::vector<LimitWrite> writes = {write_of("memory.max", "512M", 100),
                                    write_of("cpu.max", "50000", 101),
                                    write_of("memory.max", "nonsense", 102)};
  writes[1].pid = 813;
  const ForeignWrites known = remembered(writes);
  Limits both = cpu_limits(50'000);
  both.memory_max = memory_limits(512 << 20).memory_max;
  CHECK(known.writer(kWritten, both, kLongAgo).starts_with("dockerd (pid 813, "));
  CHECK(known.writer(kWritten, memory_limits(512 << 20), kLongAgo)
            .starts_with("dockerd (pid 812, "));
  CHECK_FALSE(known.writer(kWritten, both, MonotonicTime(seconds(101))).empty());
  CHECK(known.writer(kWritten, both, MonotonicTime(seconds(102))).empty());
}

TEST_CASE("writes to cgroups that are no containers are not kept, and of one that is gone none") {
  ForeignWrites known;
  known.remember({write_of("memory.max", "512M")}, std::vector{kOther});
  CHECK(known.writer(kWritten, memory_limits(512 << 20), kLongAgo).empty());
  known.remember({write_of("memory.max", "512M")}, std::vector{kOther, kWritten});
  CHECK(known.writer(kOther, memory_limits(512 << 20), kLongAgo).empty());
  CHECK_FALSE(known.writer(kWritten, memory_limits(512 << 20), kLongAgo).empty());
  known.forget(kWritten);
  CHECK(known.writer(kWritten, memory_limits(512 << 20), kLongAgo).empty());
}

TEST_CASE("eight writes of a container are kept, of the same again one") {
  std::vector<LimitWrite> writes;
  for (int i = 1; i < 8; ++i) writes.push_back(write_of("cpu.max", std::to_string(i * 1000)));
  for (int i = 0; i < 100; ++i) writes.push_back(write_of("memory.max", "512M", i));
  ForeignWrites known = remembered(writes);
  CHECK_FALSE(known.writer(kWritten, memory_limits(512 << 20), kLongAgo).empty());
  CHECK_FALSE(known.writer(kWritten, cpu_limits(1000), kLongAgo).empty());
  known.remember({write_of("cpu.max", "8000")}, std::vector{kWritten});
  CHECK(known.writer(kWritten, cpu_limits(1000), kLongAgo).empty());
  CHECK_FALSE(known.writer(kWritten, cpu_limits(2000), kLongAgo).empty());
}

TEST_CASE("a write that changes nothing explains nothing") {
  const Limits before = memory_limits(1 << 30), now = memory_limits(512 << 20);
  const std::vector<ForeignWrites::Reading> changed = {{kWritten, &before, &now}},
                                            same = {{kWritten, &now, &now}};
  const LimitWrite first = write_of("memory.max", "512M", 100);
  LimitWrite again = write_of("memory.max", "512M", 110);
  again.pid = 999;
  ForeignWrites known;
  known.observe({first}, changed, MonotonicTime(seconds(101)));
  known.observe({again}, same, MonotonicTime(seconds(111)));
  known.observe({}, same, MonotonicTime(seconds(112)));
  CHECK(known.writer(kWritten, now, kLongAgo).starts_with("dockerd (pid 812, "));
}

TEST_CASE("one that is newer than the reading waits for the next") {
  const Limits before = memory_limits(1 << 30), now = memory_limits(512 << 20);
  const std::vector<ForeignWrites::Reading> not_yet = {{kWritten, &before, &before}},
                                            then = {{kWritten, &before, &now}};
  for (const bool newer : {true, false}) {
    ForeignWrites known;
    known.observe({write_of("memory.max", "512M", 100)}, not_yet,
                  MonotonicTime(seconds(newer ? 100 : 101)));
    CHECK(known.writer(kWritten, now, kLongAgo).empty());
    known.observe({}, then, MonotonicTime(seconds(102)));
    CHECK(known.writer(kWritten, now, kLongAgo).empty() != newer);
  }
}

TEST_CASE("what hostile names can add to the journal is bounded") {
  LimitWrite write = write_of("memory.max", "512M");
  write.writer_path = "/" + std::string(4000, '\x1b') + ".scope";
  CHECK(remembered({write}).writer(kWritten, memory_limits(512 << 20), kLongAgo).size() < 1024);
}

TEST_CASE("a cgroup's unit is the innermost service or scope of its path") {
  CHECK(unit_of("/init.scope") == "init.scope");
  CHECK(unit_of("/system.slice/docker.service") == "docker.service");
  CHECK(unit_of("/user.slice/user-0.slice/session-3.scope") == "session-3.scope");
  CHECK(unit_of("/machine.slice/libpod-ab.scope/container") == "libpod-ab.scope");
  CHECK(unit_of("/lxc.payload.a/b") == "/lxc.payload.a/b");
  CHECK(unit_of("/") == "/");
}
