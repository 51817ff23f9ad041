// One signal that programs of ours count by cgroup.
#pragma once

#include <linux/types.h>

#include <bit>
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
  virtual const char* tier() const = 0;  // by what it is counted (docs/ebpf.md): "tp_btf"

  // Takes what was counted since the last call. `sweep`: records of cgroups that are gone make
  // room.
  virtual Status read(CgroupOwners& owners, bool sweep) = 0;
  // What it knows of this container, into the fields that are its own.
  virtual void fill(Sample& sample) const = 0;
  // Of its waits for a processor, since the programs were loaded; nothing where it counts none.
  virtual std::optional<RunQueueHistogram> histogram(CgroupId) const { return std::nullopt; }
  virtual void forget(CgroupId container) = 0;

  // Events that found no room in its map.
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

// Records of a map, for all counters alike. Record: a struct of counter_records.h, __u64
// throughout. Each word is taken for a sum.
template <class Record>
class CounterTable {
 public:
  static constexpr std::size_t size = sizeof(Record) / sizeof(std::uint64_t);
  using Ledger = CounterLedger<size>;
  using Counts = typename Ledger::Counts;

  CounterTable() = default;
  // `entered`: the program's own word, 0 until there is a record; it outlives this.
  // `hot`: where the programs also look, or nothing.
  CounterTable(int fd, std::size_t max_entries, const __u64& entered, HotCgroups hot = {})
      : map_(fd, sizeof(Record), max_entries), entered_(&entered), hot_(std::move(hot)) {}

  // `each`: (const std::optional<CgroupId>& container, std::span<const Record> of processors), for
  // what is no sum.
  template <class Each>
  Status read(CgroupOwners& owners, bool sweep, Each each) {
    // The kernel looks at each of the places that an empty map has for its keys.
    if (entered_ == nullptr || __atomic_load_n(entered_, __ATOMIC_RELAXED) == 0) return {};
    std::vector<std::uint64_t> cgroups;
    all_ = {};
    const Status done = map_.read([&](std::uint64_t cgroup, std::span<const std::byte> bytes) {
      cgroups.push_back(cgroup);
      const auto hot = hot_.read(cgroup);
      if (!hot) return;  // it has what it had until the next reading: counters never fall
      processors_.clear();
      add_records(bytes);
      add_records(*hot);
      const auto container = owners.owner(cgroup);
      const Counts now = sum();
      for (std::size_t i = 0; i < size; ++i) all_[i] += now[i];
      ledger_.take(cgroup, now, container);
      each(container, std::span<const Record>(processors_));
    });
    const bool crowded = cgroups.size() > map_.max_entries() / 2;
    for (const std::uint64_t cgroup : cgroups) {
      if (sweep && (crowded || hot_.has(cgroup)) && owners.bury(cgroup)) remove(cgroup);
      else hot_.give(cgroup);
    }
    return done;
  }
  Status read(CgroupOwners& owners, bool sweep) {
    return read(owners, sweep, [](const std::optional<CgroupId>&, std::span<const Record>) {});
  }

  Counts of(CgroupId container) const { return ledger_.of(container); }
  void forget(CgroupId container) { ledger_.forget(container); }
  // Of all cgroups that have a record, in a container or not.
  const Counts& all() const { return all_; }
  std::uint64_t memory_bytes() const {
    return map_memory_bytes(map_.fd()) + (hot_.fd() < 0 ? 0 : map_memory_bytes(hot_.fd()));
  }

 private:
  // Copied, for nothing says that these bytes lie as records must.
  void add_records(std::span<const std::byte> bytes) {
    const std::size_t before = processors_.size();
    processors_.resize(before + bytes.size() / sizeof(Record));
    if (!bytes.empty()) std::memcpy(processors_.data() + before, bytes.data(), bytes.size());
  }

  Counts sum() const {
    Counts counts{};
    for (const Record& record : processors_) {
      const auto words = std::bit_cast<Counts>(record);
      for (std::size_t i = 0; i < size; ++i) counts[i] += words[i];
    }
    return counts;
  }
  void remove(std::uint64_t cgroup) {
    hot_.take_back(cgroup);
    map_.remove(cgroup);
    ledger_.drop(cgroup);
  }

  PerCpuMap map_;
  const __u64* entered_ = nullptr;
  HotCgroups hot_;
  Ledger ledger_;
  Counts all_{};
  std::vector<Record> processors_;  // of the cgroup being read
};

}  // namespace cgphase
