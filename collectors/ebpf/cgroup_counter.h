// One signal that BPF programs count by cgroup.
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

// Owned and used by one thread. Its programs run as long as it exists.
class CgroupCounter {
 public:
  virtual ~CgroupCounter() = default;

  virtual const char* name() const = 0;  // "network"
  virtual const char* tier() const = 0;  // how it is counted (docs/internals/ebpf.md): "tp_btf"

  // Reads the counts since the last call. With `sweep`, records of removed cgroups are deleted.
  virtual Status read(CgroupOwners& owners, bool sweep) = 0;
  // Fills its own fields of these containers, which ascend by id.
  virtual void fill_all(std::span<Sample> samples) const = 0;
  void fill(Sample& sample) const { fill_all({&sample, 1}); }
  // The container's waits for a processor since the programs were loaded; absent if this counter
  // has none.
  virtual std::optional<RunQueueHistogram> histogram(CgroupId) const { return std::nullopt; }
  virtual void forget(CgroupId container) = 0;

  // The sums of containers, for another counter of the same signal that continues before its first
  // reading. The previous counter lost events. So a container without sums there is unknown here
  // too.
  virtual ContainerSums container_sums() const = 0;
  virtual void continue_from(const ContainerSums& previous) = 0;

  // Events that found no room in its map. While events are lost, a container without a record has
  // no fields.
  virtual std::uint64_t lost() const = 0;
  virtual std::uint64_t memory_bytes() const = 0;

  // Descriptors of its programs, and the way to lower their cost: only one event of `every`, a
  // power of two, is counted.
  virtual std::vector<int> programs() const = 0;
  virtual void count_one_of(std::uint32_t every) = 0;
  // Assumed cost of one event in nanoseconds, if the kernel cannot measure it; and the number of
  // events so far, if it counts them.
  virtual double assumed_ns() const = 0;
  virtual std::uint64_t events() const = 0;
};

// The records of the programs of one counter: in a hash, and in places of their own. Record is a
// struct of counter_records.h with only __u64 fields, whose first `sums` words are sums.
template <class Record, std::size_t sums = sizeof(Record) / sizeof(std::uint64_t)>
class CounterTable {
 public:
  using Ledger = CounterLedger<sums>;
  using Counts = typename Ledger::Counts;
  using Container = typename Ledger::Container;

  CounterTable() = default;
  // `entered` and `lost` are words of the program and must outlive this object. The first changes
  // if a cgroup enters the hash. The second counts events that found no room. `hot`: the places
  // that the programs search first.
  CounterTable(int fd, std::size_t max_entries, const __u64& entered, const __u64& lost,
               HotCgroups hot = {})
      : map_(fd, sizeof(Record), max_entries),
        entered_(&entered),
        lost_(&lost),
        hot_(std::move(hot)) {}

  // `each` is called with (Container&, const Record& of one processor), for fields that are not
  // sums.
  template <class Each>
  Status read(CgroupOwners& owners, bool sweep, Each each) {
    const auto take = [&](std::uint64_t cgroup, std::span<const std::byte> bytes) {
      return take_hashed(cgroup, bytes, owners, each);
    };
    const Status done = read_hash(take, sweep);
    update_losses(sweep);
    all_ = {};
    for (Hot& one : given_) take_hot(one, owners, each);
    if (sweep) remove_gone(owners);
    return done;
  }
  Status read(CgroupOwners& owners, bool sweep) {
    return read(owners, sweep, [](Container&, const Record&) {});
  }

  // Absent if events may have been lost.
  std::optional<Counts> of(CgroupId container) const {
    return losing_ && !ledger_.has(container) ? std::nullopt
                                              : std::optional(ledger_.of(container));
  }
  template <class Each>
  void for_each(std::span<Sample> samples, Each each) const {
    ledger_.for_each(samples, !losing_, each);
  }
  ContainerSums container_sums() const { return ledger_.container_sums(); }
  void continue_from(const ContainerSums& previous) {
    ledger_.continue_from(previous);
    losing_ = true;
  }
  void forget(CgroupId container) {
    ++forgotten_;
    ledger_.forget(container);
  }
  // Sum over all cgroups with a record, in a container or not; the hash as of its last reading.
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
    std::uint64_t generation = 0;  // generation of the lookup of `container`
    Container* container = nullptr;
    Counts taken{};
  };

  static Record record_at(const std::byte* bytes) {
    Record record;  // copied, because the bytes may not be aligned
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

  // New cgroups in the hash are found by reading all of it. After that, only cgroups without a
  // place are read, and once those that were given one, because an event may have been in progress.
  // A later event is found by the next sweep.
  template <class Take>
  Status read_hash(const Take& take, bool sweep) {
    const std::uint64_t entered = entered_ == nullptr ? 0 : __atomic_load_n(entered_,
                                                                            __ATOMIC_RELAXED);
    if (entered == 0) return {};
    if (!sweep && entered == entered_before_) {
      for (const std::uint64_t cgroup : std::exchange(cold_, {})) {
        map_.lookup(cgroup, take);
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
    for (const std::uint64_t cgroup : hashed_cgroups_) assign(cgroup);
    return done;
  }

  // Events count as lost until a sweep finds no loss since the previous sweep. Then each counting
  // cgroup has a record.
  void update_losses(bool sweep) {
    const std::uint64_t lost = lost_ == nullptr ? 0 : __atomic_load_n(lost_, __ATOMIC_RELAXED);
    if (lost != lost_before_) losing_ = true;
    else if (sweep) losing_ = false;
    if (sweep) lost_before_ = lost;
  }

  void assign(std::uint64_t cgroup) {
    if (hot_.place_of(cgroup)) return;
    cold_.push_back(cgroup);
    if (const auto place = hot_.assign(cgroup))
      given_.push_back({.cgroup = cgroup, .place = *place});
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

  // Deletes the records of removed cgroups. All of them are deleted, because the owner of a
  // remaining one would be looked up again.
  void remove_gone(CgroupOwners& owners) {
    for (const std::uint64_t cgroup : hashed_cgroups_)
      if (owners.drop_if_gone(cgroup)) remove(cgroup);
  }
  void remove(std::uint64_t cgroup) {
    std::erase_if(given_, [cgroup](const Hot& one) { return one.cgroup == cgroup; });
    std::erase(cold_, cgroup);
    hot_.release(cgroup);
    map_.remove(cgroup);
    ledger_.drop(cgroup);
  }

  PerCpuMap map_;
  const __u64* entered_ = nullptr;
  const __u64* lost_ = nullptr;
  HotCgroups hot_;
  std::vector<Hot> given_;
  std::vector<std::uint64_t> cold_;            // in the hash, to be read one by one
  std::vector<std::uint64_t> hashed_cgroups_;  // as of the last full reading of the hash
  std::uint64_t entered_before_ = 0;
  std::uint64_t lost_before_ = 0;  // as of the last sweep
  bool losing_ = false;
  std::uint64_t forgotten_ = 0;  // number of forgotten containers
  Ledger ledger_;
  Counts all_{}, hashed_{};  // sums of places, and of the hash
  std::size_t processors_ = possible_processors();
};

}  // namespace cgphase
