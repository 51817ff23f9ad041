// The host's history as a trace: from the files of a stopped daemon, and through the socket of a
// running one with a real store behind it.
#include "cli/host_history.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/file.h"
#include "protocol/history.h"
#include "tests/cli/command_run.h"
#include "tests/storage/points.h"
#include "tests/text.h"
#include "traces/trace.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

ContainerInfo named(std::uint64_t inode, const std::string& name) {
  ContainerInfo info;
  info.id = {41, inode};
  info.path = "/system.slice/" + name;
  info.name = name;
  info.image = "shop/" + name + ":7";
  return info;
}

HistoryPoint point_of(std::uint64_t inode, std::uint64_t second) {
  HistoryPoint point{at_second(static_cast<double>(second)), full_sample({41, inode}, second), {}};
  point.phase = {.state = PhaseState::known, .index = static_cast<int>(second % 3), .distance = 0.5,
                 .margin = 2};
  point.original.cpu_max = CpuMax{Microseconds{250'000}};
  point.original.memory_max = MemoryLimit{Bytes{kGiB}};
  point.host = {8, Bytes{16 * kGiB}};
  // Leaves out what a trace does not contain; the kernel's ratios are never above 1.
  point.sample.swap_max.reset();
  point.sample.pids_max.reset();
  double ratio = 0.25;
  for (Pressure* pressure : {&point.sample.cpu_pressure, &point.sample.memory_pressure,
                             &point.sample.io_pressure})
    for (PressureLine* line : {&pressure->some, &pressure->full})
      line->avg10_ratio = ratio, line->avg60_ratio = ratio / 2, ratio += 0.01;
  return point;
}

// A store with a container of 300 seconds, a later one of 20 seconds, and the second run of the
// first one in another cgroup.
struct World {
  World() {
    Result<Store> opened =
        Store::open({.path = command.directory() / "history.db", .boot_id = "boot-1"});
    REQUIRE(opened);
    store.emplace(*std::move(opened));
    add(1, "web", 0, 300);
    add(2, "job", 100, 120);
    add(3, "web", 1000, 1010);
    REQUIRE(store->flush());
  }

  void add(std::uint64_t inode, const std::string& name, std::uint64_t from, std::uint64_t to) {
    REQUIRE(store->add_container(named(inode, name), at_second(static_cast<double>(from))));
    for (std::uint64_t second = from; second < to; ++second)
      REQUIRE(store->append({point_of(inode, second)}, {}, {}));
  }

  void serve() {
    command.serve([this](const Request& request) {
      if (const auto* page = std::get_if<RecordsRequest>(&request)) {
        std::vector<RecordEntry> entries;
        const auto found = store->records(page->after.value_or(0), 2);
        for (const StoredRecord& record : *found)
          entries.push_back({record.record, record.stored.container, record.stored.first_seen});
        return ok_reply(records_page(entries));
      }
      const auto& asked = std::get<HistoryRequest>(request);
      const auto points = store->history_of(*asked.record, *time_of(asked.from_seconds),
                                            *time_of(asked.until_seconds), kHistoryPagePoints);
      return ok_reply(history_page(*points));
    });
  }
  void stop() { store.reset(); }

  HostHistory offline() const { return {.socket = {}, .state_dir = state_dir(), .containers = {},
                                        .since = {}, .until = {}}; }
  std::string state_dir() const { return command.directory() / "."; }

  CommandRun command;
  std::optional<Store> store;
  std::string file = command.directory() / "out.csv";
};

void check_samples(const Execution& execution, std::uint64_t inode, std::uint64_t from,
                   std::uint64_t to) {
  REQUIRE(execution.rows.size() == to - from);
  for (std::uint64_t second = from; second < to; ++second) {
    const TraceRow& row = execution.rows[second - from];
    HistoryPoint expected = point_of(inode, second);
    expected.sample.id = row.sample.id;
    expected.sample.limits = expected.original;
    CHECK(same(row.sample, expected.sample));
    CHECK(row.wall_time == expected.time);
    REQUIRE(row.columns.size() == 3);
    CHECK(row.columns[0] == second % 3);
    CHECK(row.columns[1] ==
          point_of(inode, second).sample.limits.cpu_cores()->value);
  }
}

void check_trace(const std::string& path) {
  const Result<Trace> trace =
      read_trace(path, {.columns = {"phase", "cpu.limit.now.cores", "mem.limit.now"}});
  REQUIRE_MESSAGE(trace.has_value(), (trace ? "" : trace.error().text));
  REQUIRE(trace->executions.size() == 3);
  CHECK(trace->executions[0].id == "/system.slice/web");
  CHECK(trace->executions[1].id == "/system.slice/job");
  CHECK(trace->executions[2].id == "/system.slice/web#2");
  CHECK(trace->executions[2].service == "shop/web:7");
  CHECK(trace->executions[0].original == point_of(1, 0).original);
  CHECK(trace->executions[0].host.cpu_cores == 8);
  check_samples(trace->executions[0], 1, 0, 300);
  check_samples(trace->executions[1], 2, 100, 120);
  check_samples(trace->executions[2], 3, 1000, 1010);
}

// The running command, which is the only child of this process.
pid_t command_pid() {
  std::ifstream children("/proc/thread-self/children");
  pid_t pid = 0;
  children >> pid;
  REQUIRE(pid > 0);
  return pid;
}

// Bit n is signal n + 1.
std::uint64_t signals_held(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string word; status >> word;)
    if (std::uint64_t held = 0; word == "SigBlk:" && status >> std::hex >> held) return held;
  FAIL("no SigBlk");
  return 0;
}

// A daemon that samples "web" once and, after the first request, "ghost" once.
struct Following {
  Following() {
    command.serve([this](const Request& request) {
      if (const auto* show = std::get_if<ShowRequest>(&request))
        return show->container == "ghost"
                   ? error_reply(Exit::no_container, "no container 'ghost'")
                   : ok_reply(json::object());
      if (const auto* page = std::get_if<RecordsRequest>(&request))
        return page->after.value_or(0) > 0
                   ? records_page({})
                   : records_page(std::vector<RecordEntry>{{7, named(1, "web"), {}},
                                                           {8, named(2, "ghost"), {}}});
      at_history();
      const auto& asked = std::get<HistoryRequest>(request);
      HistoryPoint point = point_of(static_cast<std::uint64_t>(*asked.record) - 6, 0);
      point.time = *time_of(asked.until_seconds) - std::chrono::microseconds(1);
      return ok_reply(history_page(std::vector{point}));
    });
  }
  Ran record(std::vector<std::string> containers = {"web"}) {
    containers.insert(containers.begin(), {"record", "--for", "1ms", "-o", file});
    return command.run(containers);
  }
  CommandRun command;
  std::string file = command.directory() / "out.csv";
  std::function<void()> at_history = [] {};
};

}  // namespace

TEST_CASE("the files of a stopped daemon contain the samples that it stored") {
  World world;
  world.stop();
  const auto trace = host_trace(world.offline());
  REQUIRE_MESSAGE(trace.has_value(), (trace ? "" : trace.error().text));
  CHECK(trace->counts.executions == 3);
  CHECK(trace->counts.rows == 330);
  check_trace(trace->path);
}

TEST_CASE("record reads from the daemon page by page and writes the same samples") {
  World world;
  world.serve();
  const Ran ran = world.command.run({"record", "-o", world.file});
  REQUIRE_MESSAGE(ran.exit == 0, ran.err);
  CHECK(ran.out.empty());
  CHECK(has(ran.err, "330 rows of 3 executions"));
  check_trace(world.file);
  CHECK(world.command.requests().size() > 8);
}

TEST_CASE("record compresses if the name ends in .gz, and the trace is the same") {
  World world;
  world.serve();
  const std::string packed = world.file + ".gz";
  REQUIRE(world.command.run({"record", "-q", "-o", packed}).exit == 0);
  world.stop();
  REQUIRE(world.command.run({"record", "-o", world.file, "--state-dir", world.state_dir()}).exit ==
          0);
  check_trace(packed);
  CHECK(read_trace(packed)->crc == read_trace(world.file)->crc);
  CHECK(read_file(packed, 1 << 22)->size() * 4 < read_file(world.file, 1 << 22)->size());
}

TEST_CASE("record writes every limit into a column, as in the kernel's files") {
  World world;
  world.stop();
  REQUIRE(world.command.run({"record", "-o", world.file, "--state-dir", world.state_dir(), "job"})
              .exit == 0);
  const std::vector<std::string> names = {"cpu.max.burst.usec", "cpu.weight", "memory.high",
                                          "memory.low", "memory.min"};
  const Result<Trace> trace = read_trace(world.file, {.columns = names});
  REQUIRE(trace);
  const Limits expected = point_of(2, 100).sample.limits;
  const TraceRow& row = trace->executions.at(0).rows.at(0);
  const auto bytes = [](const std::optional<MemoryLimit>& limit) {
    return limit && limit->bytes ? std::optional<double>(limit->bytes->value) : std::nullopt;
  };
  CHECK(row.columns[0] == static_cast<double>(expected.cpu_max_burst->value));
  CHECK(row.columns[1] == static_cast<double>(*expected.cpu_weight));
  CHECK(row.columns[2] == bytes(expected.memory_high));
  CHECK(row.columns[3] == bytes(expected.memory_low));
  CHECK(row.columns[4] == bytes(expected.memory_min));
  const auto unread = read_trace(world.file, {.columns = {"memory.swap.max", "pids.max"}});
  REQUIRE(unread);
  CHECK(unread->executions.at(0).rows.at(0).columns.size() == 2);
}

TEST_CASE("record --for starts now and refuses options that contradict it") {
  World world;
  const auto record = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"record", "-o", world.file});
    return world.command.run(words);
  };
  CHECK(record({"--for", "1ms"}).exit == 4);  // at once, because no daemon answers
  world.serve();
  for (const char* wrong : {"0s", "soon", "31d"})
    CHECK(has(record({"--for", wrong}).err, "is not a duration up to 30 days"));
  CHECK(record({"--for", "1ms", "--since", "-10m"}).exit == 2);
  CHECK(record({"--for", "1ms", "--state-dir", world.state_dir()}).exit == 2);
  const Ran nothing = record({"--for", "1ms"});  // the store ends in the past
  CHECK(nothing.exit == 6);
  CHECK(has(nothing.err, "nothing was recorded in this time; `cgphase list` shows"));
  CHECK_FALSE(has(nothing.err, "--since"));
  CHECK_FALSE(read_file(world.file, 1 << 22));
}

TEST_CASE("record --for writes the samples since its start") {
  CommandRun command;
  HistoryPoint point = point_of(1, 0);
  std::optional<WallTime> begun;
  command.serve([&](const Request& request) {
    if (const auto* page = std::get_if<RecordsRequest>(&request))
      return page->after.value_or(0) > 0
                 ? records_page({})
                 : records_page(std::vector<RecordEntry>{{7, named(1, "web"), point.time}});
    if (!begun) begun = *time_of(std::get<HistoryRequest>(request).from_seconds);
    point.time = *begun + std::chrono::microseconds(500);
    return ok_reply(history_page(std::vector{point}));
  });
  const std::string file = command.directory() / "out.csv";
  const WallTime before = SystemClock().wall_now();
  const Ran ran = command.run({"record", "--for", "1ms", "-o", file});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(has(ran.err, "1 rows of 1 executions"));
  CHECK(*begun >= before - std::chrono::microseconds(2));
  CHECK(read_trace(file)->executions.at(0).rows.size() == 1);
}

TEST_CASE("signals end the wait of record --for, except those that its caller ignores") {
  Following following;
  std::uint64_t held = 0;
  following.at_history = [&] { held = signals_held(command_pid()); };
  ::signal(SIGHUP, SIG_IGN);
  const Ran ran = following.record();
  ::signal(SIGHUP, SIG_DFL);
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK((held >> (SIGTERM - 1) & 1) == 1);
  CHECK((held >> (SIGINT - 1) & 1) == 1);
  CHECK((held >> (SIGHUP - 1) & 1) == 0);
}

TEST_CASE("a signal after the wait of record --for loses no samples, and Ctrl-C leaves no files") {
  Following following;
  following.at_history = [] {
    REQUIRE(::kill(command_pid(), SIGTERM) == 0);
    REQUIRE(::kill(command_pid(), SIGHUP) == 0);
  };
  const Ran ran = following.record();
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(read_trace(following.file)->executions.at(0).rows.size() == 1);
  REQUIRE(std::filesystem::remove(following.file));
  following.at_history = [] { REQUIRE(::kill(command_pid(), SIGINT) == 0); };
  CHECK(following.record().exit == 128 + SIGINT);
  for (const auto& file : std::filesystem::directory_iterator(following.command.directory().path()))
    CHECK_FALSE(has(file.path().filename().string(), "out.csv"));
}

TEST_CASE("record --for reports missing containers and an unwritable output before it waits") {
  Following following;
  const Ran ran = following.record({"ghost", "web"});
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(ran.err.starts_with("cgphase: no container 'ghost' yet; waiting for it\n"));
  CHECK_FALSE(has(ran.err, "'web'"));
  CHECK(has(ran.err, "2 rows of 2 executions"));
  const std::size_t asked = following.command.requests().size();
  following.file = following.command.directory() / "none/out.csv";
  CHECK(following.record().exit == 6);
  CHECK(following.command.requests().size() == asked);
}

TEST_CASE("record --for keeps a pipe open from before its wait to the end") {
  Following following;
  following.file = following.command.directory() / "pipe";
  REQUIRE(::mkfifo(following.file.c_str(), 0600) == 0);
  const Fd reader = open_path(following.file, O_RDONLY | O_NONBLOCK).value();
  char text[4096];
  ssize_t waiting = 0;
  following.at_history = [&] { waiting = ::read(reader.get(), text, sizeof text); };
  const Ran ran = following.record();
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(waiting < 0);  // EAGAIN, not the end of file
  CHECK(::read(reader.get(), text, sizeof text) > 0);
  CHECK(std::filesystem::is_fifo(following.file));
}

TEST_CASE("a signal after the wait of record --for ends it at once if it writes to a pipe") {
  Following following;
  following.file = following.command.directory() / "pipe";
  REQUIRE(::mkfifo(following.file.c_str(), 0600) == 0);
  const Fd reader = open_path(following.file, O_RDONLY | O_NONBLOCK).value();
  for (const int signal : {SIGINT, SIGTERM}) {
    CAPTURE(signal);
    following.at_history = [&] { REQUIRE(::kill(command_pid(), signal) == 0); };
    CHECK(following.record().exit == 128 + signal);
  }
}

TEST_CASE("record takes names, ids and time spans, and refuses containers not in the history") {
  World world;
  world.stop();
  const auto record = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"record", "-o", world.file, "--state-dir", world.state_dir()});
    return world.command.run(words);
  };
  CHECK(has(record({"job"}).err, "20 rows of 1 executions"));
  CHECK(has(record({"web"}).err, "310 rows of 2 executions"));
  CHECK(has(record({"/system.slice/job", "--since", "@1700000110"}).err, "10 rows of 1 exec"));
  const Ran missing = record({"jop"});
  CHECK(missing.exit == 3);
  CHECK(has(missing.err, "did you mean 'job'?"));
  const Result<std::string> before = read_file(world.file, 1 << 22);
  const Ran nothing = record({"--until", "@1000"});
  CHECK(nothing.exit == 6);
  CHECK(has(nothing.err, "nothing was recorded in this time"));
  CHECK(read_file(world.file, 1 << 22).value() == before.value());
  CHECK(record({"--since", "soon"}).exit == 2);
  CHECK(world.command.run({"record", "--state-dir", world.state_dir()}).exit == 2);
}

TEST_CASE("a state directory in use by a daemon is refused") {
  World world;
  const Ran busy =
      world.command.run({"record", "-o", world.file, "--state-dir", world.state_dir()});
  CHECK(busy.exit == 6);
  CHECK(has(busy.err, "in use by a running cgphased"));
  CHECK(world.command.run({"record", "-o", world.file, "--state-dir", "/nonexistent"}).exit == 6);
  CHECK(world.command.run({"record", "-o", world.file}).exit == 4);
  CHECK_FALSE(read_file(world.file, 1 << 22));
}
