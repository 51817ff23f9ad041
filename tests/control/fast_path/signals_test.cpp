// Signals of the kernel to the fast path, with the real inotify on plain files. PSI triggers and
// the events of kernfs are tested in tests/kernel.
#include "control/fast_path/signals.h"

#include <doctest/doctest.h>
#include <poll.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "control/fast_path/slot.h"
#include "tests/control/fast_path/watched.h"
#include "tests/few_descriptors.h"

using namespace cgphase;
using std::chrono::milliseconds;

namespace {

constexpr const char* kLowered = "536870912";
constexpr const char* kOriginal = "1073741824";
constexpr milliseconds kAtOnce{1};  // long before the next check is due

std::string max_event(int count) {
  return "low 0\nhigh 0\nmax " + std::to_string(count) + "\noom 0\n";
}

long events_that_overflow() {
  long limit = 0;
  std::ifstream("/proc/sys/fs/inotify/max_queued_events") >> limit;
  REQUIRE(limit > 0);
  return limit + 1;
}

// Alternates between two files, because the kernel merges equal events that follow each other.
void flood(const FakeCgroup& box, long events) {
  std::ofstream one(box.directory() + "/cgroup.procs"), other(box.directory() + "/cgroup.freeze");
  for (long i = 0; i < events; ++i) (i % 2 == 0 ? one : other) << '0' << std::flush;
}

std::ptrdiff_t open_descriptors() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

// A pipe accepts the text of a PSI trigger as the kernel does, and is never ready.
void take_triggers(const FakeCgroup& box) {
  for (const char* file : {"memory.pressure", "cpu.pressure"})
    REQUIRE(::mkfifo((box.directory() + "/" + file).c_str(), 0600) == 0);
}

}  // namespace

TEST_CASE("a wait ends when a check is called for, and reports a stop once") {
  for (const bool reported : {false, true}) {
    auto signals =
        FastPathSignals::create({.places = 1, .pressure = false, .inotify = reported}).value();
    signals->call(0);
    CHECK(signals->collect(std::chrono::hours(1)));
    CHECK(signals->waiting(0) != 0);
    signals->stop();
    CHECK_FALSE(signals->collect(std::chrono::hours(1)));
    CHECK(signals->collect(milliseconds(0)));
  }
}

TEST_CASE("the fast path acts on an event when it is reported, not when the next check is due") {
  for (const bool reported : {true, false}) {
    Watched guarded({.containers = 4, .inotify = reported});
    guarded.lower(Knob::memory_max, kLowered);
    guarded.look();
    guarded.box.put("memory.events", max_event(1));
    guarded.look(kAtOnce);
    CHECK(guarded.box.get("memory.max") == (reported ? kOriginal : kLowered));
    guarded.look(kFastPathRiskInterval);
    CHECK(guarded.box.get("memory.max") == kOriginal);
  }
}

TEST_CASE("containers with a pending event are checked before containers that are merely due") {
  Watched guarded;
  const FakeCgroup reported(guarded.root(), "/told");
  guarded.lower(Knob::memory_max, kLowered);
  guarded.lower(reported, Knob::memory_max, kLowered);
  guarded.look();
  guarded.box.put("memory.current", "530000000\n");
  guarded.box.put("memory.stat", "anon 530000000\n");
  reported.put("memory.events", max_event(1));
  guarded.look();
  const auto actions = guarded.fast_path->take_actions();
  REQUIRE(actions.size() == 2);
  CHECK(actions[0].id == reported.id());
}

TEST_CASE("an event before the first check is not lost") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  guarded.box.put("memory.events", max_event(1));
  guarded.look(kAtOnce);
  CHECK(guarded.box.get("memory.max") == kOriginal);
}

// rule: MEM-07
TEST_CASE("when processes end or start, all original limits are restored at once") {
  for (const bool end : {true, false}) {
    Watched guarded;
    guarded.box.put("cgroup.events", end ? "populated 1\nfrozen 0\n" : "populated 0\nfrozen 0\n");
    guarded.box.put("cpu.max.burst", "150000\n");
    guarded.lower(Knob::cpu_max_burst, "50000");
    guarded.lower(Knob::cpu_max, "50000 100000");
    guarded.lower(Knob::memory_high, kLowered);
    guarded.lower(Knob::memory_max, kLowered);
    guarded.box.put("cgroup.events", end ? "populated 0\nfrozen 0\n" : "populated 1\nfrozen 0\n");
    guarded.look(kAtOnce);
    CHECK(guarded.box.get("cpu.max") == "200000 100000");
    CHECK(guarded.box.get("cpu.max.burst") == "150000");
    CHECK(guarded.box.get("memory.max") == kOriginal);
    CHECK(guarded.box.get("memory.high") == "max");
    const auto actions = guarded.fast_path->take_actions();
    REQUIRE(actions.size() == 4);
    for (const FastPathAction& action : actions) CHECK(action.reason == Reason::restored);
    CHECK(actions[0].knob == Knob::cpu_max);
    CHECK(actions[2].knob == Knob::memory_max);
  }
}

TEST_CASE("somebody else's limit wakes the agent once for each value, and is kept") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  guarded.look();
  CHECK(guarded.fast_path->outside_writes() == 0);
  pollfd woken{guarded.fast_path->action_fd(), POLLIN, 0};
  CHECK(::poll(&woken, 1, 0) == 0);
  for (const char* value : {"700000000\n", "700000000\n", "800000000\n"}) {
    guarded.box.put("memory.max", value);
    guarded.look(kAtOnce);
  }
  CHECK(guarded.fast_path->outside_writes() == 2);
  CHECK(::poll(&woken, 1, 0) == 1);
  CHECK(guarded.fast_path->take_actions().empty());
  CHECK(guarded.box.get("memory.max") == "800000000");
}

TEST_CASE("somebody else's memory.max wakes the agent while memory.high is lowered") {
  Watched guarded;
  guarded.lower(Knob::memory_high, kLowered);
  guarded.look();
  CHECK(guarded.fast_path->outside_writes() == 0);
  for (const char* value : {"700000000\n", "700000000\n", "800000000\n"}) {
    guarded.box.put("memory.max", value);
    guarded.look(kAtOnce);
  }
  CHECK(guarded.fast_path->outside_writes() == 2);
  CHECK(guarded.box.get("memory.max") == "800000000");
}

TEST_CASE("an original restored by somebody else is an outside write, our own values are not") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  guarded.lower(Knob::memory_max, "500000000");
  guarded.look();
  CHECK(guarded.fast_path->outside_writes() == 0);
  guarded.box.put("memory.max", std::string(kOriginal) + "\n");
  guarded.look(kAtOnce);
  CHECK(guarded.fast_path->outside_writes() == 1);
}

TEST_CASE("a raise by the fast path is no outside write") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  guarded.box.put("memory.events", max_event(1));
  guarded.look(kAtOnce);
  guarded.look(kAtOnce);
  CHECK(guarded.box.get("memory.max") == kOriginal);
  CHECK(guarded.fast_path->outside_writes() == 0);
}

TEST_CASE("after an overflow of inotify's queue every container is checked") {
  Watched guarded;
  const FakeCgroup other(guarded.root(), "/other");
  guarded.lower(Knob::memory_max, kLowered);
  guarded.lower(other, Knob::memory_max, kLowered);
  guarded.look();
  flood(other, events_that_overflow());
  guarded.box.put("memory.events", max_event(1));  // this event is lost
  // The clock does not move, so only signals cause a check. A check takes at least one event.
  for (long i = events_that_overflow(); i > 0 && guarded.box.get("memory.max") == kLowered; --i)
    guarded.look(milliseconds(0));
  CHECK(guarded.box.get("memory.max") == kOriginal);
  CHECK(other.get("memory.max") == kLowered);
}

TEST_CASE("a container whose files change all the time is checked less often, but never starves") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  guarded.look();
  for (int i = 0; i < kPromptLooks; ++i) {
    guarded.box.put("memory.events", max_event(0));
    guarded.look(milliseconds(0));
  }
  guarded.box.put("memory.events", max_event(1));
  const milliseconds next = guarded.look(kAtOnce);
  CHECK(guarded.box.get("memory.max") == kLowered);
  CHECK(next < kPromptLookPace);
  guarded.look(next);
  CHECK(guarded.box.get("memory.max") == kOriginal);
}

TEST_CASE("files that do not matter cause no check") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  guarded.look();
  guarded.box.put("memory.current", "530000000\n");
  guarded.box.put("memory.stat", "anon 530000000\n");
  guarded.box.put("cgroup.procs", "1\n");
  guarded.look(kAtOnce);
  CHECK(guarded.box.get("memory.max") == kLowered);
}

TEST_CASE("a vanished container causes no action, nor does one that takes its place") {
  Watched guarded({.containers = 1});
  guarded.lower(Knob::memory_max, kLowered);
  guarded.box.remove();
  guarded.look(kAtOnce);
  CHECK(guarded.look() == kFastPathRiskInterval);
  guarded.fast_path->drop(guarded.box.id());
  guarded.look(kAtOnce);
  const FakeCgroup next(guarded.root(), "/next");
  guarded.lower(next, Knob::memory_max, kLowered);
  next.put("memory.events", max_event(1));
  guarded.look(kAtOnce);
  CHECK(next.get("memory.max") == kOriginal);
}

TEST_CASE("a late signal of a place's former container does not reach its next one") {
  Watched guarded({.containers = 1});
  const FakeCgroup former(guarded.root(), "/former"), next(guarded.root(), "/next");
  for (const FakeCgroup* box : {&former, &next}) take_triggers(*box);
  guarded.lower(former, Knob::memory_max, kLowered);
  guarded.fast_path->drop(former.id());
  guarded.look(kAtOnce);
  former.remove();
  guarded.look(kAtOnce);  // reports that the watch is lost
  guarded.lower(next, Knob::memory_max, kLowered);
  CHECK(guarded.look(kAtOnce) == kFastPathQuietInterval);
}

TEST_CASE("a hundred containers that start, cause an event and end leave nothing behind") {
  Watched guarded({.containers = 2});
  const auto before = open_descriptors();
  for (int i = 0; i < 100; ++i) {
    const FakeCgroup box(guarded.root(), "/c" + std::to_string(i));
    guarded.lower(box, Knob::memory_max, kLowered);
    box.put("memory.events", max_event(1));
    guarded.look(kAtOnce);
    CHECK(box.get("memory.max") == kOriginal);
    release_lease(*guarded.leases, box.id(), Knob::memory_max);
    guarded.fast_path->drop(box.id());
    if (i % 2 == 0) box.remove();
    guarded.look(kAtOnce);
  }
  guarded.fast_path->close_dropped();
  CHECK(open_descriptors() == before);
}

TEST_CASE("neither raising nor dropping waits until the files of other containers are closed") {
  Watched guarded;
  const FakeCgroup first(guarded.root(), "/first"), second(guarded.root(), "/second");
  const FakeCgroup third(guarded.root(), "/third"), fourth(guarded.root(), "/fourth");
  for (const FakeCgroup* box : {&first, &second, &third})
    guarded.lower(*box, Knob::memory_max, kLowered);
  for (const FakeCgroup* box : {&first, &second}) guarded.fast_path->drop(box->id());
  guarded.look(kAtOnce);
  const auto before = open_descriptors();
  guarded.lower(third, Knob::memory_max, "500000000");
  guarded.fast_path->drop(third.id());
  guarded.fast_path->take_actions();
  CHECK(open_descriptors() == before);
  guarded.lower(fourth, Knob::memory_max, kLowered);
  CHECK(open_descriptors() > before);
  guarded.look(kAtOnce);
  for (int i = 0; i < 2; ++i) guarded.fast_path->close_dropped();
  CHECK(open_descriptors() < before);
}

TEST_CASE("a container covered again before its former slot is released still gets signals") {
  Watched guarded({.containers = 2});
  guarded.lower(Knob::memory_max, kLowered);
  guarded.fast_path->drop(guarded.box.id());
  guarded.lower(Knob::memory_max, "500000000");  // in the second slot
  guarded.look(kAtOnce);
  guarded.fast_path->close_dropped();  // the first slot
  guarded.lower(Knob::memory_high, "400000000");
  guarded.look(kAtOnce);
  guarded.box.put("memory.events", max_event(1));
  guarded.look(kAtOnce);
  CHECK(guarded.box.get("memory.max") == kOriginal);
}

TEST_CASE("the sources report what is missing and why") {
  Watched guarded({.containers = 2, .inotify = false});
  guarded.lower(Knob::memory_max, kLowered);
  CHECK_FALSE(guarded.fast_path->pressure().present);
  CHECK(guarded.fast_path->pressure().detail ==
        "1 of 1 containers are polled: this kernel has no PSI (CONFIG_PSI, psi=1) (ENOENT)");
  CHECK_FALSE(guarded.fast_path->inotify().present);
  Watched reported;
  reported.lower(Knob::memory_max, kLowered);
  CHECK(reported.fast_path->inotify().present);
  reported.fast_path->drop(reported.box.id());
  reported.look();
  reported.fast_path->close_dropped();
  CHECK(reported.fast_path->pressure().detail ==
        "lowered containers are polled: this kernel has no PSI (CONFIG_PSI, psi=1) (ENOENT)");
}

TEST_CASE("a container that has all sources does not hide why another one lacks one") {
  Watched guarded;
  guarded.lower(Knob::memory_max, kLowered);
  const FakeCgroup reported(guarded.root(), "/told");
  take_triggers(reported);
  guarded.lower(reported, Knob::memory_max, kLowered);
  CHECK(guarded.fast_path->pressure().detail ==
        "1 of 2 containers are polled: this kernel has no PSI (CONFIG_PSI, psi=1) (ENOENT)");
}

TEST_CASE("if descriptors run short, a container has all its triggers or none, or is rejected") {
  std::set<std::ptrdiff_t> opened;
  for (int more = 0; more < 20; ++more) {
    Watched guarded;
    take_triggers(guarded.box);
    const Fd directory = guarded.box.open();
    const auto before = open_descriptors();
    const FewDescriptors few(kSpareDescriptors + more);
    const Status covered =
        guarded.fast_path->cover(guarded.box.id(), directory.get(), Knob::memory_max, 0);
    opened.insert(open_descriptors() - before);
    CHECK(open_at(directory.get(), "memory.max", O_WRONLY));
    if (!covered) CHECK(covered.error().kind == ErrorKind::io);
  }
  CHECK(opened == std::set<std::ptrdiff_t>{0, 11, 14});
}

TEST_CASE("if descriptors run out, nothing may be lowered") {
  Watched guarded;
  const Fd directory = guarded.box.open();
  const FewDescriptors few(3);
  const Status covered =
      guarded.fast_path->cover(guarded.box.id(), directory.get(), Knob::memory_max, 0);
  REQUIRE_FALSE(covered.has_value());
  CHECK(covered.error().kind == ErrorKind::io);
}

// rule: S-12
TEST_CASE("the fast path's thread allocates nothing, whatever happens") {
  const SystemClock clock;
  const TemporaryDirectory runtime, root;
  const FakeCgroup box(root.path());
  const auto leases =
      std::move(*LeaseTable::open({.runtime_dir = runtime.path(), .records = 4, .boot_id = "b"}));
  const auto fast_path = std::move(*FastPath::create({.leases = leases.get(), .clock = &clock}));
  const auto record = leases->record(box.id(), box.path(), Knob::memory_max, text_of(kOriginal),
                                   text_of(kLowered), "test");
  box.put("memory.max", std::string(kLowered) + "\n");
  REQUIRE(fast_path->cover(box.id(), box.open().get(), Knob::memory_max, record.value()));
  REQUIRE(fast_path->start());
  const long overflow = events_that_overflow();
  std::ofstream one(box.directory() + "/cgroup.procs"), other(box.directory() + "/memory.high");
  const Fd events = open_path(box.directory() + "/memory.events", O_WRONLY).value();
  const std::string event = max_event(1);
  pollfd acted{fast_path->action_fd(), POLLIN, 0};
  const long before = allocation_count();
  for (long i = 0; i < overflow; ++i) (i % 2 == 0 ? one : other) << '0' << std::flush;
  CHECK(pwrite_text(events.get(), event));
  const int woken = ::poll(&acted, 1, 30'000);
  const long after = allocation_count();
  CHECK(woken == 1);
  CHECK(after == before);
  fast_path->stop();
  CHECK(box.get("memory.max") == kOriginal);
}
