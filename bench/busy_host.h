// A host whose containers alternate between a busy and a quiet time, each in its own rhythm and
// never at its limits. It advances one virtual second per call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "collectors/sample.h"

namespace cgphase {

class BusyHost {
 public:
  explicit BusyHost(std::uint64_t containers) {
    tick_.host = {.cpu_cores = 64, .memory = Bytes{512 * kGiB}};
    tick_.time = MonotonicTime(std::chrono::seconds(100));
    tick_.wall_time = WallTime(std::chrono::seconds(1'700'000'000));
    for (std::uint64_t i = 0; i < containers; ++i) add();
  }

  // The next second. The result is valid until the next call.
  const NodeSample& next() {
    tick_.time += std::chrono::seconds(1);
    tick_.wall_time += std::chrono::seconds(1);
    tick_.appeared = std::exchange(coming_, {});
    tick_.vanished = std::exchange(going_, {});
    second_ += 1;
    for (Sample& sample : tick_.containers) {
      const std::uint64_t rhythm = 60 + 7 * ((sample.id.inode - kFirst) % 40);
      const bool busy = second_ % rhythm < rhythm / 3;
      random_ = random_ * 6364136223846793005 + 1442695040888963407;
      const double noise = 1 + 0.2 * static_cast<double>(random_ >> 11) * 0x1p-53;
      *sample.cpu.usage_usec += static_cast<std::uint64_t>(noise * (busy ? 2.5e6 : 0.2e6));
      *sample.cpu.nr_periods += 10;
      const auto bytes = static_cast<std::uint64_t>(noise * (busy ? 2e9 : 0.5e9));
      sample.memory.anon_bytes = bytes;
      sample.memory_current = Bytes{bytes};
    }
    return tick_;
  }

  // In the next second the oldest container is gone and a new one exists. Returns the old one.
  CgroupId replace_oldest() {
    const CgroupId id = tick_.containers.front().id;
    going_.push_back(id);
    tick_.containers.erase(tick_.containers.begin());
    add();
    return id;
  }

 private:
  static constexpr std::uint64_t kFirst = 100;

  void add() {
    ContainerInfo info;
    info.id = {1, next_++};
    info.path = "/c" + std::to_string(info.id.inode);
    info.name = "c" + std::to_string(info.id.inode);
    coming_.push_back(info);
    Sample sample;
    sample.id = info.id;
    sample.limits.cpu_max = CpuMax{Microseconds{400'000}, Microseconds{100'000}};
    sample.limits.memory_max = MemoryLimit{Bytes{4 * kGiB}};
    sample.cpu = {.usage_usec = 0, .nr_periods = 0, .nr_throttled = 0, .throttled_usec = 0};
    sample.memory.file_bytes = 0;
    sample.memory_events = {.low = 0, .high = 0, .max = 0, .oom = 0, .oom_kill = 0};
    sample.populated = true;
    tick_.containers.push_back(sample);
  }

  NodeSample tick_;
  std::vector<ContainerInfo> coming_;
  std::vector<CgroupId> going_;
  std::uint64_t second_ = 0, random_ = 1, next_ = kFirst;
};

}  // namespace cgphase
