#include "collectors/gpu/gpu_thread.h"

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <thread>
#include <utility>

#include "tests/in_child.h"

using namespace cgphase;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr uid_t kUserWithoutGpuThreads = 60'003;  // no other process here has it
constexpr GpuThread::Periods kQuick{milliseconds(1), milliseconds(1)};

class FixedClock final : public Clock {
 public:
  MonotonicTime monotonic_now() const override { return MonotonicTime(seconds(100)); }
  WallTime wall_now() const override { return {}; }
};

std::shared_ptr<const Clock> at_100_s() { return std::make_shared<FixedClock>(); }

template <class Wanted>
std::shared_ptr<const GpuReading> await_reading(const GpuSource& source, Wanted wanted) {
  for (;; std::this_thread::yield())
    if (auto reading = source.latest(); reading && wanted(*reading)) return reading;
}

// A driver that signals its call and returns when it is released.
struct HeldDriver {
  std::promise<void> began, may_answer, gone;

  static GpuThread::Read of(const std::shared_ptr<HeldDriver>& held) {
    // Destroyed on the thread after the last reading.
    const std::shared_ptr<void> end(nullptr, [held](void*) { held->gone.set_value(); });
    return [held, end](MonotonicTime, const std::vector<CgroupPath>&) {
      held->began.set_value();
      held->may_answer.get_future().wait();
      return GpuReading{};
    };
  }
};

int read_without_thread() {
  const rlimit none{1, 1};
  if (::getuid() == 0 && ::setuid(kUserWithoutGpuThreads) != 0) return 1;
  if (::setrlimit(RLIMIT_NPROC, &none) != 0) return 2;
  GpuThread gpus([](MonotonicTime, const std::vector<CgroupPath>&) { return GpuReading{}; },
                 at_100_s(), kQuick);
  const Source source = gpus.source({});
  const bool reported = !source.present && source.detail.find("cgphase-gpus") != std::string::npos;
  return reported && gpus.latest() == nullptr ? 0 : 3;
}

}  // namespace

TEST_CASE("GPUs are read repeatedly on a separate thread, and the newest reading is kept") {
  const std::thread::id asking = std::this_thread::get_id();
  GpuThread gpus([asking, count = 0](MonotonicTime now, const std::vector<CgroupPath>&) mutable {
    GpuReading reading{.time = now, .devices = {{}}, .clients = {}, .summary = "here"};
    reading.clients.resize(static_cast<std::size_t>(++count));
    if (std::this_thread::get_id() == asking) reading.summary = "on the thread that asks";
    return reading;
  }, at_100_s(), kQuick);
  const auto reading =
      await_reading(gpus, [](const GpuReading& one) { return one.clients.size() > 2; });
  CHECK(reading->time == MonotonicTime(seconds(100)));
  const Source source = gpus.source(MonotonicTime(seconds(100)));
  CHECK(source.name == "GPU telemetry");
  CHECK(source.present);
  CHECK(source.detail == "here");
}

TEST_CASE("the thread scans the containers that were set last") {
  GpuThread gpus([](MonotonicTime, const std::vector<CgroupPath>& containers) {
    GpuReading reading;
    reading.summary = std::to_string(containers.size());
    return reading;
  }, at_100_s(), kQuick);
  gpus.set_containers({"/a", "/b"});
  (void)await_reading(gpus, [](const GpuReading& reading) { return reading.summary == "2"; });
  CHECK_FALSE(gpus.source({}).present);  // no device
  gpus.set_containers({});
  (void)await_reading(gpus, [](const GpuReading& reading) { return reading.summary == "0"; });
}

TEST_CASE("nothing waits for a hung driver, not even at the end, and it is reported") {
  const auto held = std::make_shared<HeldDriver>();
  {
    GpuThread gpus(HeldDriver::of(held), at_100_s(), kQuick);
    held->began.get_future().wait();
    CHECK(gpus.latest() == nullptr);
    CHECK(gpus.source(MonotonicTime(seconds(110))).detail == "not read yet");
    const Source source = gpus.source(MonotonicTime(seconds(111)));
    CHECK_FALSE(source.present);
    CHECK(source.detail == "the driver has not answered for 11 s");
    gpus.set_containers({"/a"});
  }
  held->may_answer.set_value();
  held->gone.get_future().wait();  // it is closed, and was not called again: `began` is set once
}

TEST_CASE("a driver that does not close is awaited only briefly") {
  const auto held = std::make_shared<HeldDriver>();
  {
    std::shared_ptr<void> end(nullptr, [held](void*) {
      held->may_answer.get_future().wait();
      held->gone.set_value();
    });
    GpuThread gpus([end = std::move(end)](MonotonicTime, const std::vector<CgroupPath>&) {
      return GpuReading{};
    }, at_100_s(), {milliseconds(1), seconds(1'000'000)});
    (void)await_reading(gpus, [](const GpuReading&) { return true; });
  }
  held->may_answer.set_value();
  held->gone.get_future().wait();
}

TEST_CASE("if no thread can be started, the source reports it and the process continues") {
  CHECK(in_child(read_without_thread) == 0);
}

TEST_CASE("if GPUs are not read, the reason is reported") {
  const auto none = no_gpu_source("gpu.enabled is false");
  CHECK(none->latest() == nullptr);
  CHECK(none->source({}).detail == "gpu.enabled is false");
  CHECK_FALSE(none->source({}).present);
}
