#include "agent/observers/burst_watch.h"

#include <doctest/doctest.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>

#include "storage/store.h"

using namespace cgphase;
using nlohmann::json;

namespace {

constexpr CgroupId kWatched{1, 7}, kNextRun{1, 8};

// Ticks of a second: idle for `idle` of each 20, then 1000 bytes a second received.
class WatchedRuns {
 public:
  void run(CgroupId id, int ticks, int idle) {
    for (int i = 0; i < ticks; ++i) {
      if (i % 20 >= idle) received_ += 1000;
      Sample sample;
      sample.id = id;
      sample.network.receive_bytes = received_;
      NodeSample tick;
      tick.time = MonotonicTime(std::chrono::seconds(++seconds_));
      tick.containers.push_back(sample);
      watch.observe(tick);
    }
  }

  // As the agent does; what the database has after it.
  std::optional<json> end(CgroupId id, const std::string& image) {
    const std::optional<RunBursts> run = watch.end(id);
    if (!run) return std::nullopt;
    watch.add(image, *run);
    return stored_[image] = merge_bursts(stored_[image], *run);
  }

  BurstWatch watch;

 private:
  std::map<std::string, json> stored_;
  std::uint64_t received_ = 0;
  int seconds_ = 0;
};

}  // namespace

TEST_CASE("of a container that was never seen and an image without runs nothing is known") {
  const json report = BurstWatch().report(kWatched, "web");
  for (const char* part : {"now", "next"}) {
    CHECK(report[part].size() == kBurstSources);
    for (const json& series : report[part]) CHECK(series.is_null());
  }
}

TEST_CASE("a run is measured while it lasts, and foretells the next of its image") {
  WatchedRuns runs;
  runs.run(kWatched, 200, 15);
  json report = runs.watch.report(kWatched, "web");
  const json now = report["now"]["network_receive"];
  CHECK(now["idle_seconds"]["mean"] == 15);
  CHECK(now["burst_seconds"]["mean"] == 5);
  CHECK(now["burst_consumption"]["mean"] == 5000);
  CHECK(now["bursting"] == true);
  CHECK(now["low"] == 0);
  CHECK(now["high"] == 1000);
  CHECK(report["now"]["network_transmit"].is_null());
  CHECK(report["next"]["network_receive"].is_null());

  const auto stored = runs.end(kWatched, "web");
  REQUIRE(stored);
  CHECK_FALSE(runs.end(kWatched, "web"));
  runs.run(kNextRun, 200, 10);
  report = runs.watch.report(kNextRun, "web");
  CHECK(report["now"]["network_receive"]["idle_seconds"]["mean"] == 10);
  CHECK(report["next"]["network_receive"]["idle_seconds"]["value"] == 15);
  CHECK(runs.watch.report(kNextRun, "db")["next"]["network_receive"].is_null());
  REQUIRE(runs.end(kNextRun, "web"));
  const json next = runs.watch.report(kNextRun, "web")["next"]["network_receive"]["idle_seconds"];
  CHECK(next["runs"] == 2);
  CHECK(next["relative_error"] == 0.5);
}

TEST_CASE("what is stored of an image foretells its next run after the daemon started anew") {
  Store store = Store::open({.path = ":memory:", .boot_id = "boot"}).value();
  {
    WatchedRuns runs;
    runs.run(kWatched, 200, 15);
    const auto ended = runs.end(kWatched, "web");
    REQUIRE(ended);
    REQUIRE(store.save_learned("web#bursts", *ended));
  }
  BurstWatch watch;
  CHECK_FALSE(watch.knows("web"));
  const auto loaded = store.load_learned("web#bursts");
  REQUIRE(loaded);
  watch.remember("web", *loaded);
  CHECK(watch.knows("web"));
  const json next = watch.report(kWatched, "web")["next"]["network_receive"];
  CHECK(next["burst_seconds"]["value"] == 5);
  watch.remember("db", json{{"schema", 99}});
  CHECK_FALSE(watch.knows("db"));
}

TEST_CASE("a run without bursts and one that only vanished leave nothing behind") {
  WatchedRuns runs;
  runs.run(kWatched, 200, 20);
  CHECK_FALSE(runs.end(kWatched, "web"));
  runs.run(kNextRun, 200, 15);
  NodeSample tick;
  tick.vanished = {kNextRun};
  runs.watch.observe(tick);
  CHECK_FALSE(runs.end(kNextRun, "web"));
  CHECK_FALSE(runs.watch.knows("web"));
}

TEST_CASE("of more images than are kept the first by name goes") {
  WatchedRuns runs;
  runs.run(kWatched, 200, 15);
  const auto stored = runs.end(kWatched, "b");
  REQUIRE(stored);
  for (std::size_t i = 1; i < kBurstImages; ++i)
    runs.watch.remember("c" + std::to_string(i), *stored);
  CHECK(runs.watch.knows("b"));
  runs.watch.remember("d", *stored);
  CHECK_FALSE(runs.watch.knows("b"));
  CHECK(runs.watch.knows("d"));
}
