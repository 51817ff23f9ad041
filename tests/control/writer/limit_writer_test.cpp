#include <doctest/doctest.h>
#include <poll.h>
#include <sys/inotify.h>

#include <filesystem>

#include "control/writer/kernel_limit_writer.h"
#include "tests/cgroupfs/fake_cgroup.h"
#include "tests/control/writer/recording_limit_writer.h"

using namespace cgphase;

namespace {

class Writing {
 public:
  Writing() : box(root_.path()) {
    leases = std::move(
        *LeaseTable::open({.runtime_dir = runtime_.path(), .records = 16, .boot_id = "b"}));
    auto made = KernelLimitWriter::create(
        {.cgroup_root = root_.path(), .leases = leases.get(), .allow_plain_directory = true});
    REQUIRE_MESSAGE(made, made.error().text);
    writer = std::move(*made);
    REQUIRE(writer->attach(box.id(), box.path(), box.open()));
    before = box.limits();
  }
  LimitChange change(const Limits& after, bool raise = false) const {
    LimitChange result;
    result.decision_id = 7;
    result.id = box.id();
    result.path = box.path();
    result.old_limits = box.limits();
    result.new_limits = after;
    result.raise = raise;
    result.reason = "test";
    return result;
  }
  std::vector<LimitResult> wait_for_some() {
    pollfd ready{writer->result_fd(), POLLIN, 0};
    REQUIRE(::poll(&ready, 1, 30'000) == 1);
    return writer->drain_results();
  }
  LimitResult wait() {
    const auto results = wait_for_some();
    REQUIRE(results.size() == 1);
    return results.front();
  }
  LimitResult write(const LimitChange& what) {
    writer->submit(what);
    return wait();
  }
  Limits with_quota(std::uint64_t usec) const {
    Limits after = box.limits();
    after.cpu_max->quota = Microseconds{usec};
    return after;
  }
  Limits with_memory(std::uint64_t bytes) const {
    Limits after = box.limits();
    after.memory_high = MemoryLimit{Bytes{bytes}};
    return after;
  }
  std::size_t held() const { return leases->leased_records().size(); }
  const std::string& root() const { return root_.path(); }
  const std::string& runtime() const { return runtime_.path(); }

 private:
  TemporaryDirectory root_, runtime_;

 public:
  FakeCgroup box;
  Limits before;
  std::unique_ptr<LeaseTable> leases;
  std::unique_ptr<KernelLimitWriter> writer;
};

// Records the written files in order, without repetitions in a row.
class WriteOrder {
 public:
  explicit WriteOrder(const FakeCgroup& box) : inotify_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {
    REQUIRE(::inotify_add_watch(inotify_.get(), box.directory().c_str(), IN_MODIFY) >= 0);
  }
  std::vector<std::string> files() const {
    alignas(inotify_event) char buffer[4096];
    std::vector<std::string> names;
    for (;;) {
      const ssize_t count = ::read(inotify_.get(), buffer, sizeof buffer);
      if (count <= 0) return names;
      for (ssize_t at = 0; at < count;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
        if (names.empty() || names.back() != event->name) names.emplace_back(event->name);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
  }

 private:
  Fd inotify_;
};

}  // namespace

// rule: S-03
TEST_CASE("a lowering is written, read back, and leased") {
  Writing writing;
  const LimitResult result = writing.write(writing.change(writing.with_quota(150'000)));
  CHECK(result.written);
  CHECK(result.error.empty());
  CHECK(result.decision_id == 7);
  CHECK(result.in_force.cpu_max->quota->value == 150'000);
  CHECK(writing.box.get("cpu.max") == "150000 100000");
  const auto record = writing.leases->find(writing.box.id(), Knob::cpu_max);
  CHECK(writing.leases->read(record.value())->values.original.view() == "200000 100000");
  CHECK(writing.leases->read(record.value())->reason == "test");
}

TEST_CASE("a raise back to the original ends the lease") {
  Writing writing;
  writing.write(writing.change(writing.with_quota(150'000)));
  CHECK(writing.held() == 1);
  CHECK(writing.write(writing.change(writing.with_quota(200'000), true)).written);
  CHECK(writing.box.get("cpu.max") == "200000 100000");
  CHECK(writing.held() == 0);
}

TEST_CASE("a lowering is refused if somebody else changed the file since the decision") {
  Writing writing;
  const LimitChange change = writing.change(writing.with_quota(150'000));
  writing.box.put("cpu.max", "180000 100000\n");
  const LimitResult result = writing.write(change);
  CHECK_FALSE(result.written);
  CHECK(result.failed_as == ErrorKind::invalid);
  CHECK(result.in_force.cpu_max->quota->value == 180'000);
  CHECK(writing.box.get("cpu.max") == "180000 100000");
  CHECK(writing.held() == 0);
}

TEST_CASE("a burst above the new quota is lowered before the quota and restored after it") {
  Writing writing;
  writing.box.put("cpu.max.burst", "180000\n");
  const WriteOrder order(writing.box);
  CHECK(writing.write(writing.change(writing.with_quota(100'000))).written);
  CHECK(order.files() == std::vector<std::string>{"cpu.max.burst", "cpu.max"});
  CHECK(writing.box.get("cpu.max.burst") == "100000");
  CHECK(writing.write(writing.change(writing.with_quota(200'000), true)).written);
  CHECK(order.files() == std::vector<std::string>{"cpu.max", "cpu.max.burst"});
  CHECK(writing.box.get("cpu.max.burst") == "180000");
  CHECK(writing.held() == 0);
}

// rule: MEM-01
TEST_CASE("memory.high falls before memory.max and rises after it") {
  Writing writing;
  Limits after = writing.with_memory(700 * kMiB);
  after.memory_max = MemoryLimit{Bytes{800 * kMiB}};
  const WriteOrder order(writing.box);
  CHECK(writing.write(writing.change(after)).written);
  CHECK(order.files() == std::vector<std::string>{"memory.high", "memory.max"});
  CHECK(writing.write(writing.change(writing.before, true)).written);
  CHECK(order.files() == std::vector<std::string>{"memory.max", "memory.high"});
}

// rule: MEM-04
TEST_CASE("memory.high is not lowered if need exceeds the ceiling by one byte") {
  Writing writing;
  const std::uint64_t need = 209715200 + 1048576;
  LimitChange change = writing.change(writing.with_memory(512 * kMiB));
  change.memory_need_ceiling = Bytes{need - 1};
  const LimitResult result = writing.write(change);
  CHECK(result.failed_as == ErrorKind::invalid);
  CHECK(result.error.find("need") != std::string::npos);
  CHECK(writing.box.get("memory.high") == "max");
  CHECK(writing.held() == 0);
  change.memory_need_ceiling = Bytes{need};
  CHECK(writing.write(change).written);
}

TEST_CASE("without memory.reclaim memory.high is not lowered below the memory in use") {
  Writing writing;
  const WriteOrder order(writing.box);
  writing.box.put("memory.current", std::to_string(600 * kMiB) + "\n");
  const LimitResult result = writing.write(writing.change(writing.with_memory(512 * kMiB)));
  CHECK(result.failed_as == ErrorKind::invalid);
  CHECK(result.error.find("in use") != std::string::npos);
  CHECK(writing.box.get("memory.high") == "max");
  CHECK(std::ranges::count(order.files(), "memory.high") == 0);
}

// rule: BUDGET-04
TEST_CASE("memory.max is not lowered below need or below what cannot be reclaimed") {
  Writing writing;
  const auto lowered_to = [&](std::uint64_t bytes) {
    Limits after = writing.before;
    after.memory_max = MemoryLimit{Bytes{bytes}};
    return writing.write(writing.change(after));
  };
  CHECK_FALSE(lowered_to(150 * kMiB).written);
  writing.box.put("memory.current", std::to_string(600 * kMiB) + "\n");
  CHECK_FALSE(lowered_to(601 * kMiB).written);
  CHECK(writing.box.get("memory.max") == std::to_string(kGiB));
  CHECK(lowered_to(700 * kMiB).written);
}

TEST_CASE("memory.high is never lowered below need, with or without a ceiling") {
  Writing writing;
  CHECK_FALSE(writing.write(writing.change(writing.with_memory(150 * kMiB))).written);
  CHECK(writing.box.get("memory.high") == "max");
}

TEST_CASE("memory.high is not lowered if need cannot be read") {
  Writing writing;
  std::filesystem::remove(writing.box.directory() + "/memory.stat");
  CHECK_FALSE(writing.write(writing.change(writing.with_memory(512 * kMiB))).written);
  CHECK(writing.box.get("memory.high") == "max");
}

// rule: S-06
TEST_CASE("if one knob fails, the earlier ones are rolled back") {
  Writing writing;
  Limits after = writing.with_memory(150 * kMiB);
  after.cpu_max->quota = Microseconds{100'000};
  after.memory_high = MemoryLimit{Bytes{140 * kMiB}};
  CHECK_FALSE(writing.write(writing.change(after)).written);
  CHECK(writing.box.limits() == writing.before);
  CHECK(writing.held() == 0);
}

TEST_CASE("a change of a removed cgroup fails as gone") {
  Writing writing;
  const LimitChange change = writing.change(writing.with_quota(150'000));
  writing.box.remove();
  CHECK(writing.write(change).failed_as == ErrorKind::gone);
}

// rule: S-02
TEST_CASE("another cgroup of the same path is never written") {
  Writing writing;
  const LimitChange change = writing.change(writing.with_quota(150'000));
  std::filesystem::rename(writing.box.directory(), writing.root() + "/moved");
  const FakeCgroup impostor(writing.root());
  CHECK(writing.write(change).failed_as == ErrorKind::gone);
  CHECK(impostor.get("cpu.max") == "200000 100000");
}

// rule: S-02
TEST_CASE("a directory of another cgroup is not attached") {
  Writing writing;
  const FakeCgroup other(writing.root(), "/other");
  CHECK(writing.writer->attach(writing.box.id(), "/box", other.open()).error().kind ==
        ErrorKind::gone);
}

TEST_CASE("a plain directory is refused outside tests") {
  const TemporaryDirectory root, runtime;
  const auto leases =
      std::move(*LeaseTable::open({.runtime_dir = runtime.path(), .records = 4, .boot_id = "b"}));
  const auto writer =
      KernelLimitWriter::create({.cgroup_root = root.path(), .leases = leases.get()});
  CHECK(writer.error().kind == ErrorKind::unsupported);
}

TEST_CASE("a change of a container that is not attached fails as gone") {
  Writing writing;
  const LimitChange change = writing.change(writing.with_quota(150'000));
  writing.writer->detach(writing.box.id());
  CHECK(writing.write(change).failed_as == ErrorKind::gone);
}

TEST_CASE("a path too long for a lease is not written") {
  Writing writing;
  const std::string name = "/" + std::string(200, 'n');
  const FakeCgroup outer(writing.root(), name);
  const FakeCgroup inner(writing.root(), name + name);
  REQUIRE(writing.writer->attach(inner.id(), inner.path(), inner.open()));
  LimitChange change = writing.change(writing.with_quota(150'000));
  change.id = inner.id();
  CHECK(writing.write(change).failed_as == ErrorKind::invalid);
  CHECK(inner.get("cpu.max") == "200000 100000");
}

TEST_CASE("restore restores one container, restore_all restores all") {
  Writing writing;
  const FakeCgroup other(writing.root(), "/other");
  REQUIRE(writing.writer->attach(other.id(), other.path(), other.open()));
  writing.write(writing.change(writing.with_quota(150'000)));
  LimitChange second = writing.change(writing.with_quota(150'000));
  second.id = other.id();
  second.path = other.path();
  second.old_limits = other.limits();
  second.new_limits.cpu_max->quota = Microseconds{90'000};
  CHECK(writing.write(second).written);
  CHECK(writing.writer->restore(writing.box.id()).restored == 1);
  CHECK(writing.box.get("cpu.max") == "200000 100000");
  CHECK(other.get("cpu.max") == "90000 100000");
  CHECK(writing.writer->restore_all().restored == 1);
  CHECK(other.get("cpu.max") == "200000 100000");
  CHECK(writing.held() == 0);
}

TEST_CASE("restore_all keeps a foreign value and reports it") {
  Writing writing;
  writing.write(writing.change(writing.with_quota(150'000)));
  writing.box.put("cpu.max", "170000 100000\n");
  const auto report = writing.writer->restore_all();
  CHECK(report.foreign == 1);
  CHECK(report.restored == 0);
  CHECK(writing.box.get("cpu.max") == "170000 100000");
}

TEST_CASE("a detached container that still exists is restored by its path") {
  Writing writing;
  writing.write(writing.change(writing.with_quota(150'000)));
  writing.writer->detach(writing.box.id());
  CHECK(writing.writer->restore_all().restored == 1);
  CHECK(writing.box.get("cpu.max") == "200000 100000");
}

TEST_CASE("a detached container that no longer exists leaves no lease") {
  Writing writing;
  writing.write(writing.change(writing.with_quota(150'000)));
  writing.box.remove();
  writing.writer->detach(writing.box.id());
  CHECK(writing.held() == 0);
}

TEST_CASE("after a revocation nothing is changed until the agent acknowledges it") {
  Writing writing;
  writing.write(writing.change(writing.with_quota(150'000)));
  writing.leases->revoke();
  writing.box.put("cpu.max", "200000 100000\n");  // as the companion does
  CHECK(writing.writer->revoked());
  const LimitChange again = writing.change(writing.with_quota(150'000));
  CHECK(writing.write(again).failed_as == ErrorKind::denied);
  CHECK(writing.box.get("cpu.max") == "200000 100000");
  CHECK(writing.writer->not_original(writing.box.id()).empty());
  writing.writer->acknowledge_revocation();
  CHECK(writing.held() == 0);
  CHECK(writing.write(again).written);
}

TEST_CASE("not_original lists the knobs whose files do not contain the original") {
  Writing writing;
  const CgroupId id = writing.box.id();
  CHECK(writing.writer->not_original(id).empty());
  writing.write(writing.change(writing.with_quota(150'000)));
  CHECK(writing.writer->not_original(id) == std::vector{Knob::cpu_max});
  writing.leases->revoke();  // by a restorer that failed
  CHECK(writing.writer->not_original(id) == std::vector{Knob::cpu_max});
  writing.box.put("cpu.max", "170000 100000\n");  // a foreign value
  CHECK(writing.writer->not_original(id) == std::vector{Knob::cpu_max});
  writing.box.put("cpu.max", "200000 100000\n");
  CHECK(writing.writer->not_original(id).empty());
}

// rule: S-11
TEST_CASE("a lowering submitted before a raise is not written after it") {
  Writing writing;
  writing.write(writing.change(writing.with_quota(150'000)));
  const LimitChange lower = writing.change(writing.with_quota(100'000));
  const LimitChange raise = writing.change(writing.with_quota(200'000), true);
  for (int round = 0; round < 50; ++round) {
    writing.writer->submit(lower);
    writing.writer->submit(raise);
    for (std::size_t seen = 0; seen < 2;) {
      pollfd ready{writing.writer->result_fd(), POLLIN, 0};
      REQUIRE(::poll(&ready, 1, 30'000) == 1);
      seen += writing.writer->drain_results().size();
    }
    CHECK(writing.box.get("cpu.max") == "200000 100000");
  }
}

TEST_CASE("the heartbeat reaches the lease table") {
  Writing writing;
  writing.writer->heartbeat(MonotonicTime(std::chrono::seconds(5)));
  CHECK(writing.leases->last_beat() == MonotonicTime(std::chrono::seconds(5)));
}

TEST_CASE("reclaim is written to memory.reclaim, and a kernel without the file is reported") {
  Writing writing;
  writing.writer->submit_reclaim(writing.box.id(), Bytes{4096});
  CHECK(writing.wait().failed_as == ErrorKind::not_found);
  writing.box.put("memory.reclaim", "");
  writing.writer->submit_reclaim(writing.box.id(), Bytes{4096});
  CHECK(writing.wait().written);
  CHECK(writing.box.get("memory.reclaim") == "4096");
}

TEST_CASE("a container has one reclaim at a time, and limits go first") {
  Writing writing;
  writing.box.put("memory.reclaim", "");
  for (int i = 0; i < 5000; ++i) writing.writer->submit_reclaim(writing.box.id(), Bytes{4096});
  writing.writer->submit(writing.change(writing.with_quota(150'000)));
  // The lowering has its place, and each reclaim its result.
  int reclaims = 0, lowerings = 0;
  while (reclaims + lowerings < 5001)
    for (const LimitResult& result : writing.wait_for_some()) {
      if (result.decision_id == 0) ++reclaims;
      else lowerings += result.written;
    }
  CHECK(lowerings == 1);
}

TEST_CASE("the recording writer writes nothing and reports what would be in force") {
  Writing writing;
  RecordingLimitWriter dry;
  REQUIRE(dry.attach(writing.box.id(), writing.box.path(), writing.box.open()));
  dry.submit(writing.change(writing.with_quota(150'000)));
  const auto results = dry.drain_results();
  REQUIRE(results.size() == 1);
  CHECK(results.front().written);
  CHECK(results.front().in_force.cpu_max->quota->value == 150'000);
  CHECK(dry.changes().size() == 1);
  CHECK(writing.box.get("cpu.max") == "200000 100000");
  CHECK(dry.restore_all().restored == 1);
  CHECK(dry.restore_all().restored == 0);
}

TEST_CASE("the recording writer fails as often as requested") {
  Writing writing;
  RecordingLimitWriter dry;
  REQUIRE(dry.attach(writing.box.id(), writing.box.path(), writing.box.open()));
  dry.fail_next(1, Error{ErrorKind::io, "by a test"});
  dry.submit(writing.change(writing.with_quota(150'000)));
  dry.submit(writing.change(writing.with_quota(150'000)));
  const auto results = dry.drain_results();
  CHECK(results[0].error == "by a test");
  CHECK_FALSE(results[0].written);
  CHECK(results[1].written);
  CHECK(dry.changes().size() == 1);
}
