#include "agent/logging/host_log.h"

#include <doctest/doctest.h>

#include "tests/agent/logging/told_entries.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

StatusReport with_sources(int count, bool present) {
  StatusReport status;
  status.store.state = "off";
  for (int i = 0; i < count; ++i)
    status.sources.push_back({"source " + std::to_string(i), present, "for a test"});
  return status;
}

constexpr MonotonicTime kFirstLook{std::chrono::hours(1)};

}  // namespace

TEST_CASE("messages of the daemon about itself have the fields of their kind") {
  ToldEntries reported;
  HostLog log(reported.teller());
  LimitWriter::RestoreReport report;
  log.left_behind(report);
  CHECK(reported.entries.empty());
  report.restored = 2;
  log.left_behind(report);
  log.started("observe, 3 containers", Mode::observe);
  log.stopped(report);
  log.refused("no cgroup v2", 6);
  log.reloaded({"mode stays observe", "state_dir needs a restart"}, Mode::observe);
  log.reload_refused("cgphase.toml:3: no such key");
  log.companion_lost("fork: EAGAIN");
  log.history_off("disk full");
  log.damaged("holds.json");
  log.asked("pause {}", 1000);
  CHECK(reported.have_their_fields());
  CHECK(reported.text(0) ==
        "left behind by an earlier run: 2 limits restored, 0 left as somebody else set them, 0 "
        "cgroups gone");
  CHECK(reported.text(4) ==
        "configuration reloaded; mode stays observe; state_dir needs a restart");
  CHECK(reported.field(3, "EXIT_CODE") == "6");
  CHECK(reported.field(9, "REQUEST_UID") == "1000");
}

TEST_CASE("another manager is logged once when it comes and once when it goes") {
  ToldEntries reported;
  HostLog log(reported.teller());
  log.standing_down("", Mode::enforce);
  CHECK(reported.entries.empty());
  log.standing_down("kubelet runs", Mode::enforce);
  log.standing_down("kubelet runs", Mode::enforce);
  log.standing_down("", Mode::enforce);
  log.standing_down("", Mode::enforce);
  CHECK(reported.kinds() == std::vector{Message::host_stood_down, Message::host_resumed});
  CHECK(reported.field(0, "CAUSE") == "kubelet runs");
  CHECK(reported.have_their_fields());
}

TEST_CASE("a source is logged when it goes and comes back, not if it never was") {
  ToldEntries reported;
  HostLog log(reported.teller());
  StatusReport status = with_sources(2, true);
  status.sources[0].present = false;
  status.store.state = "ok";
  log.sources(status, kFirstLook);
  CHECK(reported.entries.empty());
  status.sources[1].present = false;
  status.store.state = "the disk is full";
  log.sources(status, kFirstLook);
  log.sources(status, kFirstLook);
  status.sources[1].present = true;
  log.sources(status, kFirstLook);
  CHECK(reported.kinds() ==
        std::vector{Message::source_lost, Message::source_lost, Message::source_back});
  CHECK(reported.field(0, "SOURCE") == "source 1");
  CHECK(reported.field(0, "CAUSE") == "for a test");
  CHECK(reported.field(1, "SOURCE") == "history");
  CHECK(reported.field(1, "CAUSE") == "the disk is full");
  CHECK(reported.have_their_fields());
}

TEST_CASE("a history damaged while the daemon runs is logged once, dropped samples too") {
  ToldEntries reported;
  HostLog log(reported.teller());
  StatusReport status = with_sources(1, true);
  status.store.quarantined = "/s/history.db.corrupt-1";  // at the start: logged when it was opened
  log.sources(status, kFirstLook);
  CHECK(reported.entries.empty());
  status.store.quarantined = "/s/history.db.corrupt-2";
  log.sources(status, kFirstLook);
  log.sources(status, kFirstLook);
  status.store.dropped_samples = 7;
  log.sources(status, kFirstLook);
  status.store.dropped_samples = 9;
  status.store.dropped_entries = 1;
  log.sources(status, kFirstLook);
  REQUIRE(reported.kinds() == std::vector{Message::stored_damaged, Message::stored_damaged});
  CHECK(reported.entries[0].text ==
        "the history file was replaced; the earlier one was kept as /s/history.db.corrupt-2");
  CHECK(reported.entries[1].text.find("because they cannot be written") != std::string::npos);
}

TEST_CASE("sources that come and go are limited per window, and the rest is logged after it") {
  ToldEntries reported;
  HostLog log(reported.teller());
  log.sources(with_sources(kMostSourceEntries + 1, true), kFirstLook);
  log.sources(with_sources(kMostSourceEntries + 1, false), kFirstLook);
  CHECK(reported.entries.size() == kMostSourceEntries);
  log.sources(with_sources(kMostSourceEntries + 1, false),
              kFirstLook + kSourceWindow - std::chrono::nanoseconds(1));
  CHECK(reported.entries.size() == kMostSourceEntries);
  log.sources(with_sources(kMostSourceEntries + 1, false), kFirstLook + kSourceWindow);
  CHECK(reported.entries.size() == kMostSourceEntries + 1);
  CHECK(reported.field(kMostSourceEntries, "SOURCE") == "source 10");
}
