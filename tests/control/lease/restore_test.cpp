#include "control/lease/restore.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "control/lease/heartbeat_watch.h"
#include "tests/cgroupfs/fake_cgroup.h"

using namespace cgphase;

namespace {

class Leased {
 public:
  Leased() {
    auto table = LeaseTable::open({.runtime_dir = runtime_.path(), .records = 16, .boot_id = "b"});
    REQUIRE_MESSAGE(table, table.error().text);
    leases_ = std::move(*table);
  }
  const std::string& root() const { return root_.path(); }
  LeaseTable& leases() { return *leases_; }
  // Leases the change and makes it.
  void change(const FakeCgroup& box, Knob knob, std::string_view to) {
    const KnobText before = text_of(box.get(file_name(knob)));
    REQUIRE(leases_->record(box.id(), box.path(), knob, before, text_of(to), "test"));
    box.put(file_name(knob), std::string(to) + "\n");
  }
  RestoreReport restore() { return restore_leases(*leases_, root()); }

 private:
  TemporaryDirectory root_, runtime_;
  std::unique_ptr<LeaseTable> leases_;
};

using std::chrono::milliseconds;
using std::chrono::seconds;

MonotonicTime at(milliseconds time) { return MonotonicTime(time); }

}  // namespace

// rule: S-04
TEST_CASE("a file with our value gets its original") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  leased.change(box, Knob::memory_max, "536870912");
  const RestoreReport report = leased.restore();
  CHECK(report.restored == 2);
  CHECK(report.failures.empty());
  CHECK(box.get("cpu.max") == "200000 100000");
  CHECK(box.get("memory.max") == "1073741824");
  CHECK(leased.leases().leased_records().empty());
}

TEST_CASE("an earlier value of ours is restored, too, because the last write may not have "
          "happened") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "150000 100000");
  REQUIRE(leased.leases().record(box.id(), box.path(), Knob::cpu_max, text_of("150000 100000"),
                               text_of("100000 100000"), "test"));
  CHECK(leased.restore().restored == 1);
  CHECK(box.get("cpu.max") == "200000 100000");
}

// rule: S-04
TEST_CASE("a foreign value stays") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  box.put("cpu.max", "70000 100000\n");
  const RestoreReport report = leased.restore();
  CHECK(report.restored == 0);
  CHECK(report.foreign == 1);
  CHECK(report.left.size() == 1);
  CHECK(box.get("cpu.max") == "70000 100000");
}

// rule: BUDGET-04
TEST_CASE("a raised memory.max comes back once what is in use fits, and is leased until then") {
  Leased leased;
  const FakeCgroup box(leased.root());  // needs 201 MiB
  box.put("memory.max", std::to_string(220 * kMiB) + "\n");
  leased.change(box, Knob::memory_max, std::to_string(800 * kMiB));
  leased.change(box, Knob::cpu_max, "300000 100000");
  RestoreReport report = leased.restore();
  CHECK(report.restored == 1);
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures[0].ends_with("what is in use would not fit and be killed"));
  CHECK(report.left == std::vector<Knob>{Knob::memory_max});
  CHECK(box.get("memory.max") == std::to_string(800 * kMiB));
  CHECK(leased.leases().leased_records().size() == 1);
  // Page cache of more than the original, which cannot be reclaimed here.
  box.put("memory.stat", "anon 1048576\nfile 0\nshmem 0\nslab_reclaimable 0\n");
  box.put("memory.current", std::to_string(221 * kMiB) + "\n");
  CHECK(leased.restore().left == std::vector<Knob>{Knob::memory_max});
  box.put("memory.current", std::to_string(100 * kMiB) + "\n");
  report = leased.restore();
  CHECK(report.restored == 1);
  CHECK(box.get("memory.max") == std::to_string(220 * kMiB));
  CHECK(leased.leases().leased_records().empty());
}

TEST_CASE("a file that contains its original is not written") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  box.put("cpu.max", "200000 100000\n");
  const RestoreReport report = leased.restore();
  CHECK(report.restored == 0);
  CHECK(report.foreign == 0);
  CHECK(leased.leases().leased_records().empty());
}

TEST_CASE("a removed cgroup counts as gone, not as a failure") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  leased.change(box, Knob::memory_max, "536870912");
  box.remove();
  const RestoreReport report = leased.restore();
  CHECK(report.gone == 1);
  CHECK(report.failures.empty());
}

TEST_CASE("a limit whose controller was disabled is given up, and the others are restored") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  leased.change(box, Knob::memory_high, "536870912");
  std::filesystem::remove(leased.root() + box.path() + "/memory.high");
  const RestoreReport report = leased.restore();
  CHECK(report.restored == 1);
  CHECK(report.gone == 0);
  CHECK(report.failures.empty());
  CHECK(report.left.empty());
  CHECK(leased.leases().leased_records().empty());
}

// rule: S-02
TEST_CASE("another cgroup of the same path is not written") {
  Leased leased;
  const FakeCgroup first(leased.root());
  leased.change(first, Knob::cpu_max, "50000 100000");
  std::filesystem::rename(first.directory(), leased.root() + "/moved");
  const FakeCgroup second(leased.root());
  second.put("cpu.max", "50000 100000\n");
  CHECK(leased.restore().gone == 1);
  CHECK(second.get("cpu.max") == "50000 100000");
}

TEST_CASE("leases are searched below the root that they name, whatever option the restorer gets") {
  Leased leased;
  const FakeCgroup box(leased.root());
  REQUIRE(leased.leases().set_cgroup_root(leased.root()));
  leased.change(box, Knob::cpu_max, "50000 100000");
  const TemporaryDirectory elsewhere;
  CHECK(restore_leases(leased.leases(), elsewhere.path()).restored == 1);
  CHECK(box.get("cpu.max") == "200000 100000");
}

TEST_CASE("if the hierarchy is not mounted, no cgroup counts as removed and all leases stay") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  for (const char* root : {"/proc", "/no/such/directory"}) {
    const RestoreReport report = restore_leases(leased.leases(), root);
    CHECK(report.gone == 0);
    REQUIRE(report.failures.size() == 1);
    CHECK(report.failures.front().find(root) != std::string::npos);
    CHECK(leased.leases().leased_records().size() == 1);
  }
  CHECK(leased.restore().restored == 1);
}

TEST_CASE("a lease whose path climbs out of the root is refused") {
  Leased leased;
  const FakeCgroup box(leased.root());
  Lease lease;
  lease.id = box.id();
  for (const char* path : {"/../box", "/a/../../box", "/..", "box", ""}) {
    lease.path = path;
    CHECK(open_leased_directory(leased.root(), lease).error().kind == ErrorKind::invalid);
  }
  lease.path = "/box";
  CHECK(open_leased_directory(leased.root(), lease));
}

TEST_CASE("a limit that cannot be restored is named and stays leased while the others are "
          "restored") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  leased.change(box, Knob::memory_max, "536870912");
  std::filesystem::remove(box.directory() + "/cpu.max");
  std::filesystem::create_directory(box.directory() + "/cpu.max");  // it cannot be read
  const RestoreReport report = leased.restore();
  CHECK(report.restored == 1);
  CHECK(report.left == std::vector{Knob::cpu_max});
  REQUIRE(report.failures.size() == 1);
  CHECK(report.failures.front().find("/box/cpu.max") != std::string::npos);
  CHECK(leased.leases().leased_records().size() == 1);
}

TEST_CASE("a raise by the fast path just after the release is reverted to the original") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  const int record = leased.leases().find(box.id(), Knob::cpu_max).value();
  REQUIRE(leased.leases().lease_for_fast_path(record, box.id(), Knob::cpu_max,
                                              text_of("50000 100000"), text_of("60000 100000")));
  box.put("cpu.max", "60000 100000\n");
  CHECK(release_restored(leased.leases(), record, box.id(), Knob::cpu_max, box.open().get()));
  CHECK(box.get("cpu.max") == "200000 100000");
  CHECK(leased.leases().leased_records().empty());
}

TEST_CASE("a raise by the fast path between reading the lease and the file is not foreign") {
  Leased leased;
  const FakeCgroup box(leased.root());
  leased.change(box, Knob::cpu_max, "50000 100000");
  const int record = leased.leases().find(box.id(), Knob::cpu_max).value();
  const auto raised_meanwhile = [&](const Lease&) -> Result<Fd> {
    REQUIRE(leased.leases().lease_for_fast_path(record, box.id(), Knob::cpu_max,
                                                text_of("50000 100000"), text_of("60000 100000")));
    box.put("cpu.max", "60000 100000\n");
    return box.open();
  };
  const auto report =
      restore_recorded(leased.leases(), recorded_leases(leased.leases()), raised_meanwhile,
                       {.release = true});
  CHECK(box.get("cpu.max") == "200000 100000");
  CHECK(leased.leases().leased_records().empty());
  CHECK(report.restored == 1);
  CHECK(report.foreign == 0);
  CHECK(report.left.empty());
}

// rule: S-04
TEST_CASE("a daemon is silent if its last heartbeat is older than the limit") {
  HeartbeatWatch watch(seconds(3), milliseconds(250));
  CHECK_FALSE(watch.silent(at(milliseconds(10'000)), at(milliseconds(10'000))));
  for (int t = 10'250; t <= 13'000; t += 250)
    CHECK_FALSE(watch.silent(at(milliseconds(t)), at(milliseconds(10'000))));
  CHECK(watch.silent(at(milliseconds(13'250)), at(milliseconds(10'000))));
  CHECK_FALSE(watch.silent(at(milliseconds(13'500)), at(milliseconds(13'500))));
}

TEST_CASE("a daemon without a first heartbeat is not silent") {
  HeartbeatWatch watch(seconds(3), milliseconds(250));
  for (int t = 0; t <= 60'000; t += 250)
    CHECK_FALSE(watch.silent(at(milliseconds(100'000 + t)), MonotonicTime{}));
}

TEST_CASE("a watcher that was delayed gives the daemon the full time again") {
  HeartbeatWatch watch(seconds(3), milliseconds(250));
  CHECK_FALSE(watch.silent(at(milliseconds(10'000)), at(milliseconds(10'000))));
  CHECK_FALSE(watch.silent(at(milliseconds(60'000)), at(milliseconds(10'000))));
  for (int t = 60'250; t <= 63'000; t += 250)
    CHECK_FALSE(watch.silent(at(milliseconds(t)), at(milliseconds(10'000))));
  CHECK(watch.silent(at(milliseconds(63'250)), at(milliseconds(10'000))));
}

TEST_CASE("the watcher pauses after a heartbeat and checks closely before it calls a daemon "
          "silent") {
  constexpr milliseconds kInterval{250};
  HeartbeatWatch watch(seconds(3), kInterval);
  CHECK(watch.rest() == kInterval);
  CHECK_FALSE(watch.silent(at(milliseconds(9'000)), MonotonicTime{}));
  CHECK(watch.rest() == kInterval);  // it has not begun to beat
  CHECK_FALSE(watch.silent(at(milliseconds(9'250)), at(milliseconds(9'000))));
  CHECK(watch.rest() == milliseconds(1750));
  CHECK_FALSE(watch.silent(at(milliseconds(11'000)), at(milliseconds(9'000))));
  for (int t = 11'250; t <= 12'000; t += 250) {
    CHECK(watch.rest() == kInterval);
    CHECK_FALSE(watch.silent(at(milliseconds(t)), at(milliseconds(9'000))));
  }
  CHECK(watch.silent(at(milliseconds(12'250)), at(milliseconds(9'000))));
  CHECK(watch.rest() == kInterval);
}

TEST_CASE("after a host freeze during a pause of the watcher, the daemon gets the full time "
          "again") {
  HeartbeatWatch watch(seconds(3), milliseconds(250));
  CHECK_FALSE(watch.silent(at(milliseconds(10'000)), at(milliseconds(10'000))));
  CHECK(watch.rest() == seconds(2));
  CHECK_FALSE(watch.silent(at(milliseconds(12'251)), at(milliseconds(10'000))));
  CHECK(watch.rest() == seconds(2));
  CHECK_FALSE(watch.silent(at(milliseconds(14'251)), at(milliseconds(10'000))));
  CHECK_FALSE(watch.silent(at(milliseconds(15'251)), at(milliseconds(15'000))));
}
