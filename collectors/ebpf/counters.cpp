#include "collectors/ebpf/counters.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "collectors/ebpf/cgroup_counter.h"
#include "collectors/ebpf/cost_budget.h"
#include "collectors/ebpf/network_counter.h"
#include "collectors/ebpf/program_cost.h"
#include "collectors/ebpf/rare_event_counters.h"
#include "collectors/ebpf/run_queue_counter.h"

namespace cgphase {
namespace {

using Start = Result<std::unique_ptr<CgroupCounter>> (*)(const CgroupPaths&, std::uint32_t room);
struct Signal {
  const char* name;
  Start start;
};
Result<std::unique_ptr<CgroupCounter>> start_run_queue(const CgroupPaths&, std::uint32_t room) {
  return start_run_queue_counter(room);
}
Result<std::unique_ptr<CgroupCounter>> start_block(const CgroupPaths& paths, std::uint32_t room) {
  return start_block_counter(paths, room);
}
Result<std::unique_ptr<CgroupCounter>> start_tcp(const CgroupPaths&, std::uint32_t room) {
  return start_tcp_counter(room);
}
constexpr Signal kSignals[] = {{"network", start_network_counter},
                               {"run queue", start_run_queue},
                               {"block devices", start_block},
                               {"TCP retransmits", start_tcp}};

// Room for twice the present number of cgroups, and for a burst of new ones.
constexpr std::size_t kSpareRoom = 256;
constexpr std::size_t kMostRoom = 65536;
std::uint32_t room_for(std::size_t cgroups) {
  return static_cast<std::uint32_t>(2 * cgroups + kSpareRoom);
}
constexpr std::chrono::seconds kSweepInterval{60};
constexpr std::chrono::seconds kCostInterval{60};
// Maximum age of a measurement while few events make a new one unnecessary. Starting and stopping a
// measurement rewrites kernel code, which costs more than those events.
constexpr std::chrono::minutes kLongestUnmeasured{10};
constexpr std::chrono::minutes kRetryInterval{10};
constexpr double kSkippedNs = 20;  // cost of a skipped event, if nothing can be measured

std::string percent(double ratio) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.2f %%", 100 * ratio);
  return text.data();
}

// One signal, and its counter if there is one.
struct Slot {
  Signal signal;
  std::unique_ptr<CgroupCounter> counter{};
  std::uint32_t room = 0;         // room of its map, or a larger room that was refused
  std::uint64_t lost_before = 0;  // as of the last sweep
  std::uint64_t lost_before_start = 0;  // lost by the counters before it
  std::string why_not{};
  std::string error{};  // error of the last reading
  CounterCost cost{.every = 0};
  MonotonicTime retry_at{};
  ProgramRuns runs_before{};
  std::uint64_t events_before = 0;
  double measured_ns = 0;         // cost of one event
  std::uint64_t events_seen = 0;  // at the last check whether to measure
};

ProgramRuns runs_of(const CgroupCounter& counter) {
  ProgramRuns sum;
  for (const int program : counter.programs()) {
    const ProgramRuns runs = program_runs(program);
    sum.ns += runs.ns;
    sum.count += runs.count;
  }
  return sum;
}

std::string describe(const Slot& slot) {
  std::string text = slot.counter->tier();
  if (slot.cost.every > 1)
    text += ", one event of " + std::to_string(slot.cost.every) + " to stay within the CPU budget";
  if (const std::uint64_t lost = slot.lost_before_start + slot.counter->lost(); lost > 0)
    text += ", " + std::to_string(lost) + " events were not counted for lack of room";
  if (!slot.error.empty()) text += ", " + slot.error;
  return text;
}

}  // namespace

struct KernelCounters::Impl {
  Impl(const std::string& cgroup_root, double budget) : owners(cgroup_root), budget_ratio(budget) {
    for (const Signal& signal : kSignals) slots.push_back({.signal = signal});
  }

  void start(Slot& slot, MonotonicTime now) {
    const std::uint32_t room = room_for(owners.paths().count(kMostRoom / 2));
    auto started = slot.signal.start(owners.paths(), room);
    slot.retry_at = MonotonicTime::max();  // a retry would fail again
    if (!started) {
      slot.why_not = started.error().text;
      return;
    }
    slot.cost = {};
    slot.lost_before_start = 0;
    count_by(slot, std::move(*started), room, now);
  }

  // A running measurement belongs to the previous counter.
  void count_by(Slot& slot, std::unique_ptr<CgroupCounter> counter, std::uint32_t room,
                MonotonicTime now) {
    slot.counter = std::move(counter);
    slot.room = room;
    slot.lost_before = 0;
    accounting.reset();
    costs_since.reset();
    measured.reset();
    next_cost = now;
  }

  // If events found no room, and not only because of removed cgroups, a counter with more room
  // replaces this one. If the kernel refuses it, this one continues.
  void grow(Slot& slot, MonotonicTime now) {
    const std::uint64_t lost = slot.counter->lost();
    if (lost == std::exchange(slot.lost_before, lost)) return;
    const std::size_t cgroups = owners.paths().count(kMostRoom / 2);
    if (cgroups <= slot.room / 2) return;
    const std::uint32_t room = room_for(cgroups);
    auto started = slot.signal.start(owners.paths(), room);
    if (!started) {
      slot.room = room;
      return;
    }
    (void)slot.counter->read(owners, false);  // counts that were made while the new one was loaded
    (*started)->continue_from(slot.counter->container_sums());
    if (slot.cost.every > 1) (*started)->count_one_of(slot.cost.every);
    slot.lost_before_start += slot.counter->lost();
    count_by(slot, std::move(*started), room, now);
  }

  void read(Slot& slot, const NodeSample& tick, bool sweep) {
    for (const CgroupId& id : tick.vanished) slot.counter->forget(id);
    const Status done = slot.counter->read(owners, sweep);
    slot.error = done ? "" : done.error().text;
  }

  void begin_costs(MonotonicTime now) {
    accounting = RunTimeAccounting::start();
    costs_since = now;
    for (Slot& slot : slots) {
      if (!slot.counter) continue;
      slot.runs_before = runs_of(*slot.counter);
      slot.events_before = slot.counter->events();
    }
  }

  void end_costs(MonotonicTime now) {
    const double seconds = seconds_between(*costs_since, now);
    std::vector<CounterCost> costs;
    for (Slot& slot : slots) {
      if (slot.counter) {
        double ns = static_cast<double>(runs_of(*slot.counter).ns - slot.runs_before.ns);
        if (!accounting) {
          const auto events = static_cast<double>(events_since(slot, slot.events_before));
          ns = events * (slot.counter->assumed_ns() / slot.cost.every +
                         (slot.cost.every > 1 ? kSkippedNs : 0));
        }
        slot.cost.core_ratio = ns / (1e9 * seconds);
        const std::uint64_t events = events_since(slot, slot.events_before);
        slot.measured_ns = events > 0 ? ns / static_cast<double>(events) : 0;
      }
      costs.push_back(slot.cost);
    }
    costs_assumed = !accounting && std::ranges::any_of(slots, [](const Slot& slot) {
      return slot.counter != nullptr;
    });
    accounting.reset();
    costs_since.reset();
    next_cost = now + kCostInterval;
    measured = asked_at = now;
    for (Slot& slot : slots)
      if (slot.counter) slot.events_seen = slot.counter->events();
    const auto step = next_step(costs, budget_ratio);
    if (!step) return;
    take_step(slots[step->counter], step->every, now);
    measured.reset();
    next_cost = now;  // checks whether it was enough
  }

  // Events of removed cgroups are no longer included.
  static std::uint64_t events_since(const Slot& slot, std::uint64_t before) {
    const std::uint64_t events = slot.counter->events();
    return events - std::min(before, events);
  }

  // Estimates the cost from the events since the last check. An event costs what was measured, or
  // more than on an idle machine.
  bool needs_measuring(MonotonicTime now) {
    if (!measured || now <= asked_at || now - *measured >= kLongestUnmeasured) return true;
    const double seconds = seconds_between(std::exchange(asked_at, now), now);
    std::vector<CounterCost> expected;
    for (Slot& slot : slots) {
      expected.push_back({.every = slot.cost.every});
      if (!slot.counter) continue;
      const std::uint64_t before = std::exchange(slot.events_seen, slot.counter->events());
      const double events = static_cast<double>(slot.events_seen - std::min(before,
                                                                            slot.events_seen));
      const double event_ns = std::max(slot.measured_ns, slot.counter->assumed_ns());
      expected.back().core_ratio = events * event_ns / (1e9 * seconds);
    }
    return !surely_cheap(expected, budget_ratio);
  }

  void take_step(Slot& slot, std::uint32_t every, MonotonicTime now) {
    slot.cost.every = every;
    if (every > 0) return slot.counter->count_one_of(every);
    slot.counter.reset();
    slot.retry_at = now + kRetryInterval;
    slot.why_not = std::string("its programs ") +
                   (costs_assumed ? "are assumed to cost " : "cost ") +
                   percent(slot.cost.core_ratio) + " of a core, and the CPU budget is " +
                   percent(budget_ratio) + ": out of the kernel for ten minutes";
  }

  void watch_costs(MonotonicTime now) {
    if (costs_since && now > *costs_since) return end_costs(now);
    if (costs_since || now < next_cost) return;
    if (needs_measuring(now)) begin_costs(now);
    else next_cost = now + kCostInterval;
  }

  CgroupOwners owners;
  const double budget_ratio;
  std::vector<Slot> slots;
  bool asked = false;
  MonotonicTime next_sweep{};
  MonotonicTime next_cost{};
  std::optional<MonotonicTime> measured;
  MonotonicTime asked_at{};
  std::optional<MonotonicTime> costs_since;
  std::optional<RunTimeAccounting> accounting;
  bool costs_assumed = false;  // the kernel could not measure the costs last time
};

KernelCounters::KernelCounters(const std::string& cgroup_root, double budget_ratio)
    : impl_(std::make_unique<Impl>(cgroup_root, budget_ratio)) {}
KernelCounters::~KernelCounters() = default;

void KernelCounters::fill(NodeSample& tick) {
  const bool sweep = tick.time >= impl_->next_sweep;
  if (sweep) impl_->next_sweep = tick.time + kSweepInterval;
  impl_->owners.follow(tick);
  for (Slot& slot : impl_->slots) {
    if (!slot.counter && (!impl_->asked || tick.time >= slot.retry_at))
      impl_->start(slot, tick.time);
    if (!slot.counter) continue;
    impl_->read(slot, tick, sweep);
    if (sweep) impl_->grow(slot, tick.time);
    slot.counter->fill_all(tick.containers);
  }
  if (sweep) impl_->owners.end_sweep();
  impl_->asked = true;
  impl_->watch_costs(tick.time);
}

std::optional<RunQueueHistogram> KernelCounters::run_queue_histogram(CgroupId container) const {
  for (const Slot& slot : impl_->slots)
    if (slot.counter)
      if (const auto histogram = slot.counter->histogram(container)) return histogram;
  return std::nullopt;
}

std::vector<Source> KernelCounters::sources() const {
  std::vector<Source> sources;
  for (const Slot& slot : impl_->slots) {
    const std::string name = std::string("eBPF: ") + slot.signal.name;
    if (slot.counter)
      sources.push_back({name, true, describe(slot)});
    else
      sources.push_back({name, false, impl_->asked ? slot.why_not : "not started yet"});
  }
  if (const std::uint64_t unknown = impl_->owners.unknown(); unknown > 0)
    sources.push_back({"eBPF: owners", true,
                       std::to_string(unknown) +
                           " cgroups were removed before they were looked up: "
                           "their counts belong to no container"});
  if (impl_->costs_assumed)
    sources.push_back({"eBPF: costs", true,
                       "assumed for each event, because measuring them needs CAP_SYS_ADMIN"});
  return sources;
}

std::uint64_t KernelCounters::memory_bytes() const {
  std::uint64_t sum = 0;
  for (const Slot& slot : impl_->slots)
    if (slot.counter) sum += slot.counter->memory_bytes();
  return sum;
}

}  // namespace cgphase
