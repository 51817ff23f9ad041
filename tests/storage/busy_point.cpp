#include "tests/storage/busy_point.h"

namespace cgphase::test {

WallTime at_second(double second) {
  return WallTime(std::chrono::nanoseconds(1'700'000'000'000'000'000 +
                                           static_cast<std::int64_t>(second * 1e9)));
}

HistoryPoint busy_point(CgroupId id, std::uint64_t second) {
  HistoryPoint point;
  point.time =
      at_second(static_cast<double>(second)) + std::chrono::nanoseconds(second * 7919 % 90000);
  Sample& s = point.sample;
  s.id = id;
  const std::uint64_t noise = second * 2654435761U % 1000;
  s.cpu = {second * 730'000 + noise * 41,
           second * 640'000 + noise * 31,
           second * 90'000 + noise * 10,
           second * 10,
           second / 3,
           second / 3 * 1234};
  s.limits.cpu_max = CpuMax{Microseconds{200'000}, Microseconds{100'000}};
  s.limits.cpu_weight = 100;
  s.limits.memory_max = MemoryLimit{Bytes{4 * kGiB}};
  s.limits.memory_high = MemoryLimit{};
  s.limits.memory_low = s.limits.memory_min = MemoryLimit{Bytes{0}};
  s.memory_current = Bytes{800 * kMiB + noise * 4096};
  s.memory_peak = Bytes{900 * kMiB};
  s.memory.anon_bytes = 500 * kMiB + noise * 8192;
  s.memory.file_bytes = 250 * kMiB + second / 5 * 4096;
  s.memory.shmem_bytes = s.memory.unevictable_bytes = 0;
  s.memory.kernel_bytes = 30 * kMiB + noise / 100 * 4096;
  s.memory.slab_reclaimable_bytes = 12 * kMiB + noise * 8;
  s.memory.slab_unreclaimable_bytes = 4 * kMiB;
  s.memory.sock_bytes = 0;
  s.memory.inactive_file_bytes = 100 * kMiB + second / 5 * 4096;
  s.memory.active_file_bytes = 150 * kMiB;
  s.memory.inactive_anon_bytes = 500 * kMiB + noise * 8192;
  s.memory.pgfault = second * 1200 + noise;
  s.memory.pgmajfault = 17;
  s.memory.workingset_refault_file = s.memory.workingset_refault_anon = 0;
  s.memory.pgscan = s.memory.pgsteal = s.memory.pgscan_direct = 0;
  s.memory_events = {0, 0, 0, 0, 0};
  s.swap_current = Bytes{0};
  s.swap_max = MemoryLimit{};
  s.io = {second / 4 * 65536, second * 8192, second / 4 * 2, second * 2};
  s.pids_current = 23;
  s.pids_max = MemoryLimit{};
  s.cpu_pressure.some = {0.01, 0.012, second * 900 + noise};
  s.memory_pressure.some = s.io_pressure.some = {0.0, 0.0, 0};
  s.cpu_pressure.full = s.memory_pressure.full = s.io_pressure.full = {0.0, 0.0, 0};
  s.populated = true;
  s.frozen = false;
  // A model step every five seconds.
  point.phase = {PhaseState::known, static_cast<int>(second / 120 % 4),
                 0.01 * static_cast<double>(second / 5 * 31 % 97),
                 0.02 * static_cast<double>(second / 5 * 17 % 89)};
  return point;
}

}  // namespace cgphase::test
