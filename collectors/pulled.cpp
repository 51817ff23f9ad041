#include "collectors/pulled.h"

#include <unistd.h>

#include <algorithm>

namespace cgphase {
namespace {

constexpr std::uint64_t kPullNsPerUsec = 1000;
// include/linux/sched/loadavg.h: decay factors per period, with 11 fractional bits.
constexpr unsigned kFixedBits = 11;
constexpr std::uint64_t kLeftOf10s = 1677, kLeftOf60s = 1981;
// Number of unchanged readings after which the kernel no longer updates the averages. One may fall
// between two updates.
constexpr int kMostUnchanged = 2;

// Rounds as the kernel prints: whole per cent and hundredths.
double ratio_of(std::uint64_t fixed) {
  const std::uint64_t whole = fixed >> kFixedBits;
  const std::uint64_t rest = fixed & ((1U << kFixedBits) - 1);
  return static_cast<double>(whole * 100 + ((rest * 100) >> kFixedBits)) / 10'000;
}

__extension__ using Wide = unsigned __int128;

std::uint64_t share(std::uint64_t part, std::uint64_t rest, std::uint64_t of) {
  return static_cast<std::uint64_t>(static_cast<Wide>(part) * of / (part + rest));
}

}  // namespace

void AdjustedCpuTime::fill(const pull_record& record, CpuStat& cpu) {
  // Another process has read the file since.
  if (record.printed_user_ns + record.printed_system_ns > user_ns_ + system_ns_) {
    user_ns_ = record.printed_user_ns;
    system_ns_ = record.printed_system_ns;
  }
  if (user_ns_ + system_ns_ < record.usage_ns) {
    std::uint64_t system = record.system_ns;
    if (system != 0)
      system = record.user_ns == 0 ? record.usage_ns
                                   : share(system, record.user_ns, record.usage_ns);
    system = std::max(system, system_ns_);
    std::uint64_t user = record.usage_ns - system;
    if (user < user_ns_ || system > record.usage_ns) {
      user = user_ns_;
      system = record.usage_ns - user;
    }
    user_ns_ = user;
    system_ns_ = system;
  }
  cpu.user_usec = user_ns_ / kPullNsPerUsec;
  cpu.system_usec = system_ns_ / kPullNsPerUsec;
}

void AgingStalls::take(const pull_record& record) {
  const bool news = record.stall_updated != updated_;
  updated_ = record.stall_updated;
  unchanged_ = news ? 0 : unchanged_ + 1;
  for (std::size_t i = 0; i < total_ns_.size(); ++i) {
    total_ns_[i] = record.stall_ns[i];
    if (news) {
      avg10_[i] = record.stall_avg[i][0];
      avg60_[i] = record.stall_avg[i][1];
    } else if (unchanged_ >= kMostUnchanged) {
      avg10_[i] = (avg10_[i] * kLeftOf10s) >> kFixedBits;
      avg60_[i] = (avg60_[i] * kLeftOf60s) >> kFixedBits;
    }
  }
}

Pressure AgingStalls::pressure(std::size_t resource) const {
  const auto line = [&](std::size_t i) {
    return PressureLine{.avg10_ratio = ratio_of(avg10_[i]), .avg60_ratio = ratio_of(avg60_[i]),
                        .total_usec = total_ns_[i] / kPullNsPerUsec};
  };
  return {line(2 * resource), line(2 * resource + 1)};
}

CpuStat cpu_stat_of(const pull_record& record) {
  CpuStat cpu;
  cpu.usage_usec = record.usage_ns / kPullNsPerUsec;
  if ((record.parts & PULL_BANDWIDTH) == 0) return cpu;
  cpu.nr_periods = record.nr_periods;
  cpu.nr_throttled = record.nr_throttled;
  cpu.throttled_usec = record.throttled_ns / kPullNsPerUsec;
  return cpu;
}

IoStat io_stat_of(const pull_record& record) {
  return {record.read_bytes, record.write_bytes, record.read_ios, record.write_ios};
}

MemoryEvents memory_events_of(const pull_record& record) {
  return {record.events[0], record.events[1], record.events[2], record.events[3],
          record.events[4]};
}

Bytes pages(std::uint64_t count) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return Bytes{count * page};
}

}  // namespace cgphase
