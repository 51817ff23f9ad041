// One signal that programs of ours count by cgroup.
#pragma once

#include <linux/types.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "collectors/ebpf/cgroup_owners.h"
#include "collectors/ebpf/counter_ledger.h"
#include "collectors/ebpf/hot_cgroups.h"
#include "collectors/ebpf/per_cpu_map.h"
#include "collectors/sample.h"

namespace cgphase {

// Owned and used by one thread. Its programs run as long as it lives.
class CgroupCounter {
 public:
  virtual ~CgroupCounter() = default;

  virtual const char* name() const = 0;  // "network"
  virtual const char* tier() const = 0;  // by what it is counted (docs/internals/ebpf.md): "tp_btf"

  // Takes what was counted since the last call. `sweep`: records of cgroups that are gone make
  // room.
  virtual Status read(CgroupOwners& owners, bool sweep) = 0;
  // What it knows of these containers, ascending by id, into the fields that are its own.
  virtual void fill_all(std::span<Sample> samples) const = 0;
  void fill(Sample& sample) const { fill_all({&sample, 1}); }
  // Of its waits for a processor, since the programs were loaded; nothing where it counts none.
  virtual std::optional<RunQueueHistogram> histogram(CgroupId) const { return std::nullopt; }
  virtual void forget(CgroupId container) = 0;

  // What containers have, and where another counter of the same signal goes on from before its
  // first reading. The former one lost events: of whom it has no sums nothing is known here either.
  virtual ContainerSums container_sums() const = 0;
  virtual void go_on_from(const ContainerSums& former) = 0;

  // Events that found no room in its map. While there are such, a container that has no record has
  // no fields.
  virtual std::uint64_t lost() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  // Descriptors of its programs, and how their cost is made less: of `every` events, a power of
  // two, one is looked at.
  virtual std::vector<int> programs() const = 0;
  virtual void look_at_one_of(std::uint32_t every) = 0;
  // Nanoseconds of one event, supposed where the kernel does not let them be measured; and events
  // so far, as far as it counts them.
  virtual double supposed_ns() const = 0;
  virtual std::uint64_t events() const = 0;
};

// What the programs of one counter keep, for all counters alike: a hash, and places. Record: a
// struct of counter_records.h, __u64 throughout, of whose words the first `sums` are sums.
template <class Record, std::size_t sums = sizeof(Record) / sizeof(std::uint64_t)>
class CounterTable {
 public:
  using Ledger = CounterLedger<sums>;
  using Counts = typename Ledger::Counts;
  using Container = typename Ledger::Container;

  CounterTable() = default;
  // `entered`, `lost`: the program's own words, which outlive this. The first is another one when a
  // cgroup came into the hash, the second counts events that found no room. `hot`: where the
  // programs look first.
  CounterTable(int fd, std::size_t max_entries, const __u64& entered, const __u64& lost,
               HotCgroups hot = {})
      : map_(fd, sizeof(Record), max_entries),
        entered_(&entered),
        lost_(&lost),
        hot_(std::move(hot)) {}

  // `each`: (Container&, const Record& of one processor), for what is no sum.
  template <class Each>
  Status read(CgroupOwners& owners, bool sweep, Each each) {
    const auto take = [&](std::uint64_t cgroup, std::span<const std::byte> bytes) {
      return take_hashed(cgroup, bytes, owners, each);
    };
    const Status done = read_hash(take, sweep);
    look_for_losses(sweep);
    all_ = {};
    for (Hot& one : given_) take_hot(one, owners, each);
    if (sweep) bury_the_gone(owners);
    return done;
  }
  Status read(CgroupOwners& owners, bool sweep) {
    return read(owners, sweep, [](Container&, const Record&) {});
  }

  // Nothing where something may have been lost.
  std::optional<Counts> of(CgroupId container) const {
    return losing_ && !ledger_.has(container) ? std::nullopt
                                              : std::optional(ledger_.of(container));
  }
  template <class Each>
  void for_each(std::span<Sample> samples, Each each) const {
    ledger_.for_each(samples, !losing_, each);
  }
  ContainerSums container_sums() const { return ledger_.container_sums(); }
  void go_on_from(const ContainerSums& former) {
    ledger_.go_on_from(former);
    losing_ = true;
  }
  void forget(CgroupId container) {
    ++forgotten_;
    ledger_.forget(container);
  }
  // Of all cgroups that have a record, in a container or not; of the hash as it was read last.
  Counts all() const {
    Counts sum = all_;
    add(sum, hashed_);
    return sum;
  }
  std::uint64_t memory_bytes() const {
    return map_memory_bytes(map_.fd()) + (hot_.fd() < 0 ? 0 : map_memory_bytes(hot_.fd()));
  }

 private:
  struct Hot {
    std::uint64_t cgroup = 0;
    std::uint32_t place = 0;
    std::uint64_t generation = 0;  // when `container` was looked up
    Container* container = nullptr;
    Counts taken{};
  };

  static Record record_at(const std::byte* bytes) {
    Record record;  // copied, for nothing says that these bytes lie as records must
    std::memcpy(&record, bytes, sizeof record);
    return record;
  }
  static void add(Counts& counts, const Counts& more) {
    for (std::size_t i = 0; i < sums; ++i) counts[i] += more[i];
  }
  static void add(Counts& counts, const Record& record) {
    std::array<std::uint64_t, sizeof(Record) / sizeof(std::uint64_t)> words;
    std::memcpy(&words, &record, sizeof words);
    for (std::size_t i = 0; i < sums; ++i) counts[i] += words[i];
  }

  // Cgroups that came into the hash are found by reading all of it. After that only those are
  // looked at that have no place, and once those that were given one: an event may have been on its
  // way. What comes later still is found by the next sweep.
  template <class Take>
  Status read_hash(const Take& take, bool sweep) {
    const std::uint64_t entered = entered_ == nullptr ? 0 : __atomic_load_n(entered_,
                                                                            __ATOMIC_RELAXED);
    if (entered == 0) return {};
    if (!sweep && entered == entered_before_) {
      for (const std::uint64_t cgroup : std::exchange(cold_, {})) {
        map_.look(cgroup, take);
        if (!hot_.place_of(cgroup)) cold_.push_back(cgroup);
      }
      return {};
    }
    hashed_cgroups_.clear();
    hashed_ = {};
    const Status done = map_.read([&](std::uint64_t cgroup, std::span<const std::byte> bytes) {
      hashed_cgroups_.push_back(cgroup);
      add(hashed_, take(cgroup, bytes));
    });
    if (done) entered_before_ = entered;
    cold_.clear();
    for (const std::uint64_t cgroup : hashed_cgroups_) give(cgroup);
    return done;
  }

  // Until a sweep finds that nothing was lost since the one before: who counts then has a record.
  void look_for_losses(bool sweep) {
    const std::uint64_t lost = lost_ == nullptr ? 0 : __atomic_load_n(lost_, __ATOMIC_RELAXED);
    if (lost != lost_before_) losing_ = true;
    else if (sweep) losing_ = false;
    if (sweep) lost_before_ = lost;
  }

  void give(std::uint64_t cgroup) {
    if (hot_.place_of(cgroup)) return;
    cold_.push_back(cgroup);
    if (const auto place = hot_.give(cgroup)) given_.push_back({.cgroup = cgroup, .place = *place});
  }

  template <class Each>
  Counts take_hashed(std::uint64_t cgroup, std::span<const std::byte> bytes, CgroupOwners& owners,
                   const Each& each) {
    Counts now{};
    const auto container = owners.owner(cgroup);
    for (std::size_t at = 0; at + sizeof(Record) <= bytes.size(); at += sizeof(Record)) {
      const Record record = record_at(bytes.data() + at);
      add(now, record);
      if (container) each(ledger_.container(*container), record);
    }
    ledger_.take(cgroup, now, container);
    return now;
  }

  template <class Each>
  void take_hot(Hot& one, CgroupOwners& owners, const Each& each) {
    if (const auto now = owners.generation() + forgotten_; one.generation != now) {
      const auto container = owners.owner(one.cgroup);
      one.container = container ? &ledger_.container(*container) : nullptr;
      one.generation = now;
    }
    Counts now{};
    for (std::size_t processor = 0; processor < processors_; ++processor) {
      const Record record = record_at(hot_.record(one.place, processor));
      add(now, record);
      if (one.container != nullptr) each(*one.container, record);
    }
    add(all_, now);
    if (one.container != nullptr) one.container->add(now, one.taken);
  }

  // Their records make room. All of them: of one that stayed the owner would be asked for again.
  void bury_the_gone(CgroupOwners& owners) {
    for (const std::uint64_t cgroup : hashed_cgroups_)
      if (owners.bury(cgroup)) remove(cgroup);
  }
  void remove(std::uint64_t cgroup) {
    std::erase_if(given_, [cgroup](const Hot& one) { return one.cgroup == cgroup; });
    std::erase(cold_, cgroup);
    hot_.take_back(cgroup);
    map_.remove(cgroup);
    ledger_.drop(cgroup);
  }

  PerCpuMap map_;
  const __u64* entered_ = nullptr;
  const __u64* lost_ = nullptr;
  HotCgroups hot_;
  std::vector<Hot> given_;
  std::vector<std::uint64_t> cold_;            // in the hash, to be looked at one by one
  std::vector<std::uint64_t> hashed_cgroups_;  // as of the last reading of all the hash
  std::uint64_t entered_before_ = 0;
  std::uint64_t lost_before_ = 0;  // as of the last sweep
  bool losing_ = false;
  std::uint64_t forgotten_ = 0;  // containers so far
  Ledger ledger_;
  Counts all_{}, hashed_{};  // of places, and of the hash
  std::size_t processors_ = possible_processors();
};

}  // namespace cgphase
