#include "collectors/ebpf/run_queue_counter.h"

#include <bpf/libbpf.h>
#include <skeletons/run_queue.skel.h>
#include <skeletons/run_queue_classic.skel.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "base/clock.h"
#include "collectors/ebpf/counter_records.h"
#include "collectors/ebpf/tiers.h"

namespace cgphase {
namespace {

constexpr std::uint64_t kNsPerUsec = 1000;
static_assert(RUN_QUEUE_BUCKETS == kRunQueueBuckets);

// The words of run_queue_counts that are sums, in its order.
struct Sums {
  std::uint64_t wait_ns, waits, voluntary, involuntary;
  std::array<std::uint64_t, RUN_QUEUE_BUCKETS> histogram;
};
static_assert(sizeof(Sums) == RUN_QUEUE_SUMS * sizeof(std::uint64_t) &&
              offsetof(run_queue_counts, longest_ns) == sizeof(Sums));

// The typed program copies nothing. So it loads even if a lockdown forbids copying kernel memory.
void choose_typed(run_queue& skeleton) {
  (void)bpf_program__set_autoload(skeleton.progs.count_copied, false);
  (void)bpf_map__set_autocreate(skeleton.maps.seen_pids, false);
}

void choose_copied(run_queue& skeleton) {
  (void)bpf_program__set_autoload(skeleton.progs.count_typed, false);
  (void)bpf_map__set_autocreate(skeleton.maps.seen_tasks, false);
}

constexpr Tier<run_queue> kTiers[] = {{"tp_btf", ProbeKind::typed, choose_typed},
                                        {"raw_tp", ProbeKind::copying, choose_copied}};

constexpr const char* kTracepoint = "tracepoint";
constexpr Tier<run_queue_classic> kClassic[] = {
    {kTracepoint, ProbeKind::classic, [](run_queue_classic&) {}}};

std::vector<int> programs_of(const run_queue& skeleton) {
  const int typed = bpf_program__fd(skeleton.progs.count_typed);
  return {typed >= 0 ? typed : bpf_program__fd(skeleton.progs.count_copied)};
}
std::vector<int> programs_of(const run_queue_classic& skeleton) {
  return {bpf_program__fd(skeleton.progs.count_switch), bpf_program__fd(skeleton.progs.see_wakeup),
          bpf_program__fd(skeleton.progs.see_birth)};
}

template <class Skeleton>
void size_maps(Skeleton& skeleton, std::uint32_t room) {
  (void)bpf_map__set_max_entries(skeleton.maps.counted, room);
  size_places(skeleton, room, sizeof(run_queue_counts));
}

template <class Skeleton>
class KernelRunQueueCounter final : public CgroupCounter {
 public:
  KernelRunQueueCounter(Started<Skeleton> started, std::uint32_t room)
      : started_(std::move(started)),
        table_(bpf_map__fd(started_.probe->maps.counted), room, started_.probe->bss->entered,
               started_.probe->bss->lost,
               places_of(*started_.probe, room, sizeof(run_queue_counts))) {}

  const char* name() const override { return "run queue"; }
  const char* tier() const override { return started_.tier; }

  Status read(CgroupOwners& owners, bool sweep) override {
    __u64& reading = started_.probe->bss->reading;
    number_ = __atomic_load_n(&reading, __ATOMIC_RELAXED);
    const auto keep_longest = [this](Table::Container& container, const run_queue_counts& record) {
      if (container.reading != number_) container.highest = 0;
      container.reading = number_;
      if (record.reading == number_)
        container.highest = std::max<std::uint64_t>(container.highest, record.longest_ns);
    };
    const Status done = table_.read(owners, sweep, keep_longest);
    __atomic_store_n(&reading, number_ + 1, __ATOMIC_RELAXED);
    return done;
  }

  void fill_all(std::span<Sample> samples) const override {
    table_.for_each(samples, [this](Sample& sample, const Table::Container& container) {
      const auto sums = std::bit_cast<Sums>(container.sum);
      RunQueueStat& stat = sample.run_queue;
      stat.wait_usec = sums.wait_ns / kNsPerUsec;
      stat.waits = sums.waits;
      stat.voluntary_switches = sums.voluntary;
      stat.involuntary_switches = sums.involuntary;
      stat.longest_wait_usec =
          container.reading == number_ ? container.highest / kNsPerUsec : 0;
    });
  }
  std::optional<RunQueueHistogram> histogram(CgroupId container) const override {
    const auto counts = table_.of(container);
    if (!counts) return std::nullopt;
    return std::bit_cast<Sums>(*counts).histogram;
  }
  void forget(CgroupId container) override { table_.forget(container); }
  ContainerSums container_sums() const override { return table_.container_sums(); }
  void continue_from(const ContainerSums& previous) override { table_.continue_from(previous); }

  std::uint64_t lost() const override {
    return __atomic_load_n(&started_.probe->bss->lost, __ATOMIC_RELAXED);
  }
  std::uint64_t memory_bytes() const override { return table_.memory_bytes(); }

  std::vector<int> programs() const override { return programs_of(*started_.probe); }
  void count_one_of(std::uint32_t every) override {
    __atomic_store_n(&started_.probe->bss->sampling_mask, every - 1, __ATOMIC_RELAXED);
  }
  // Cost for a task that has not run for long (docs/internals/ebpf.md).
  double assumed_ns() const override { return 500; }
  std::uint64_t events() const override {
    return std::bit_cast<Sums>(table_.all()).waits;
  }

 private:
  using Table = CounterTable<run_queue_counts, RUN_QUEUE_SUMS>;
  Started<Skeleton> started_;
  Table table_;
  std::uint64_t number_ = 0;  // number of the last reading
};

template <class Skeleton, class Prepare>
Result<std::unique_ptr<CgroupCounter>> start_one_of(const char* name,
                                                    const std::vector<Tier<Skeleton>>& tiers,
                                                    std::uint32_t room, Prepare prepare) {
  auto started = start_first<Skeleton>(name, tiers, [&](Skeleton& skeleton) {
    size_maps(skeleton, room);
    prepare(skeleton);
  });
  if (!started) return std::unexpected(started.error());
  return std::make_unique<KernelRunQueueCounter<Skeleton>>(std::move(*started), room);
}

}  // namespace

Result<std::unique_ptr<CgroupCounter>> start_run_queue_counter(std::uint32_t room,
                                                               std::string_view tier) {
  const Status typed = check_types();
  if (tier == kTracepoint || (tier.empty() && !typed)) {
    auto classic = start_one_of<run_queue_classic>("run_queue_classic",
                                                   tiers_named<run_queue_classic>(kClassic, tier),
                                                   room, [](run_queue_classic&) {});
    if (classic || typed) return classic;
    return failure(typed.error().kind, typed.error().text + "; " + classic.error().text);
  }
  if (!typed) return std::unexpected(typed.error());
  const auto since_boot = SystemClock().monotonic_now().time_since_epoch();
  return start_one_of<run_queue>("run_queue", tiers_named<run_queue>(kTiers, tier), room,
                                 [&](run_queue& skeleton) {
                                   skeleton.rodata->loaded_ns =
                                       static_cast<__u64>(since_boot.count());
                                 });
}

}  // namespace cgphase
