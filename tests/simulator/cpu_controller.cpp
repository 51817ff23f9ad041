// kernel/sched/core.c and fair.c of Linux 6.1: tg_set_cfs_bandwidth, cpu_max_write,
// __refill_cfs_bandwidth_runtime; kernel/sched/psi.c for the averages.
#include <algorithm>
#include <cerrno>
#include <cmath>

#include "tests/simulator/cgroup_kernel.h"

namespace cgphase::simulator {
namespace {

constexpr std::uint64_t kSmallestUsec = 1'000;      // minimum of quota and period
constexpr std::uint64_t kLongestPeriodUsec = 1'000'000;
constexpr std::uint64_t kMostRuntimeUsec = (1ULL << 44) / 1000 * 1000;  // max_cfs_runtime
constexpr std::uint64_t kSliceUsec = 50'000;
constexpr std::uint64_t kPressureUsec = 2'000'000;

// tg_set_cfs_bandwidth. The same rules apply to a new quota and a new burst.
bool allowed(const CpuController& cpu) {
  if (cpu.period_usec < kSmallestUsec || cpu.period_usec > kLongestPeriodUsec) return false;
  if (!cpu.quota_usec) return true;
  if (*cpu.quota_usec < kSmallestUsec || *cpu.quota_usec > kMostRuntimeUsec) return false;
  return cpu.burst_usec <= *cpu.quota_usec;
}

std::uint64_t most_tokens(const CpuController& cpu) { return *cpu.quota_usec + cpu.burst_usec; }

void take(CpuController& to, const CpuController& from) {
  to = from;
  // A new bandwidth starts with a full bucket.
  if (to.quota_usec) to.tokens_usec = std::min(to.tokens_usec + *to.quota_usec, most_tokens(to));
}

std::string_view word_of(std::string_view& text) {
  const auto blank = [](char one) { return one == ' ' || one == '\t' || one == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  std::size_t length = 0;
  while (length < text.size() && !blank(text[length])) ++length;
  const std::string_view word = text.substr(0, length);
  text.remove_prefix(length);
  return word;
}

// sscanf("%llu"): only the leading digits count.
std::optional<std::uint64_t> leading_number(std::string_view word) {
  if (word.empty() || word.front() < '0' || word.front() > '9') return std::nullopt;
  std::uint64_t number = 0;
  for (const char digit : word) {
    if (digit < '0' || digit > '9') break;
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  return number;
}

void average(double& value, double share, double seconds) {
  const double keep = std::exp(-2.0 / seconds);
  value = value * keep + share * (1 - keep);
}

}  // namespace

// "QUOTA", "QUOTA PERIOD", "max" or "max PERIOD". An omitted period is unchanged.
int CgroupKernel::write_cpu_max(Cgroup& cgroup, std::string_view text) {
  CpuController wanted = cgroup.cpu;
  const std::string_view quota = word_of(text);
  if (quota.empty()) return EINVAL;
  if (const auto period = leading_number(word_of(text))) wanted.period_usec = *period;
  if (const auto number = leading_number(quota))
    wanted.quota_usec = *number;
  else if (quota == "max")
    wanted.quota_usec.reset();
  else
    return EINVAL;
  if (!allowed(wanted)) return EINVAL;
  take(cgroup.cpu, wanted);
  return 0;
}

int CgroupKernel::write_cpu_burst(Cgroup& cgroup, std::string_view text) {
  const auto burst = parse_number_text(text);
  if (!burst || *burst > kMostRuntimeUsec) return EINVAL;
  CpuController wanted = cgroup.cpu;
  wanted.burst_usec = *burst;
  if (!allowed(wanted)) return EINVAL;
  take(cgroup.cpu, wanted);
  return 0;
}

int CgroupKernel::write_cpu_weight(Cgroup& cgroup, std::string_view text) {
  const auto weight = parse_number_text(text);
  if (!weight) return EINVAL;
  if (*weight < 1 || *weight > 10'000) return ERANGE;
  cgroup.cpu.weight = *weight;
  return 0;
}

void CgroupKernel::refill() {
  for (auto& [inode, one] : cgroups_) {
    CpuController& cpu = one.cpu;
    if (now_usec_ < cpu.next_refill_usec) continue;
    cpu.next_refill_usec = now_usec_ + cpu.period_usec;
    if (cpu.quota_usec) {
      // A period without a runnable task is not counted.
      if (cpu.used) ++cpu.nr_periods;
      if (cpu.throttled) ++cpu.nr_throttled;
      cpu.tokens_usec = std::min(cpu.tokens_usec + *cpu.quota_usec, most_tokens(cpu));
    }
    cpu.used = cpu.throttled = false;
  }
}

// One process gets what it wants, at most its share of the machine and what its cgroups have left.
void CgroupKernel::run_process(const SimulatedProcess& process, std::uint64_t usec, double share) {
  const double time = static_cast<double>(usec);
  const auto wanted = static_cast<std::uint64_t>(process.cores * time);
  auto got = static_cast<std::uint64_t>(process.cores * time * share);
  Cgroup* limiting = nullptr;
  for (Cgroup* one = at(process.cgroup); one != nullptr; one = at(one->parent)) {
    one->cpu.used = one->cpu.used || wanted > 0;
    if (!one->cpu.quota_usec || one->cpu.tokens_usec >= got) continue;
    got = one->cpu.tokens_usec;
    limiting = one;
  }
  if (limiting != nullptr) {
    limiting->cpu.throttled = true;
    limiting->cpu.throttled_usec += wanted - got;
  }
  for (Cgroup* one = at(process.cgroup); one != nullptr; one = at(one->parent)) {
    if (one->cpu.quota_usec) one->cpu.tokens_usec -= got;
    one->cpu.usage_usec += got;
    if (got < wanted)
      one->cpu_pressure.stalled_usec += static_cast<std::uint64_t>(
          time * static_cast<double>(wanted - got) / static_cast<double>(wanted));
  }
}

void CgroupKernel::run_slice(std::uint64_t usec) {
  const auto runs = [&](const SimulatedProcess& process) {
    for (const Cgroup* one = at(process.cgroup); one != nullptr; one = at(one->parent))
      if (one->frozen) return false;
    return process.cores > 0;
  };
  double wanted = 0;
  for (const auto& [pid, process] : processes_)
    if (runs(process)) wanted += process.cores;
  const double share = wanted > machine_.cores ? machine_.cores / wanted : 1;
  for (const auto& [pid, process] : processes_)
    if (runs(process)) run_process(process, usec, share);
}

void CgroupKernel::update_pressure() {
  for (auto& [inode, one] : cgroups_) {
    for (PressureState* state : {&one.cpu_pressure, &one.memory_pressure}) {
      const auto stalled = std::min(state->stalled_usec, kPressureUsec);
      const double share = static_cast<double>(stalled) / static_cast<double>(kPressureUsec);
      state->total_usec += stalled;
      state->stalled_usec = 0;
      average(state->avg10, share, 10);
      average(state->avg60, share, 60);
      average(state->avg300, share, 300);
    }
  }
}

void CgroupKernel::advance(std::uint64_t usec) {
  const std::uint64_t end = now_usec_ + usec;
  while (now_usec_ < end) {
    const std::uint64_t slice = std::min(kSliceUsec, end - now_usec_);
    run_slice(slice);
    now_usec_ += slice;
    refill();
    if (now_usec_ - pressure_time_usec_ < kPressureUsec) continue;
    pressure_time_usec_ = now_usec_;
    update_pressure();
  }
}

}  // namespace cgphase::simulator
