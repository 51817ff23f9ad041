// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Keeps the counters of each cgroup in a hash, for the programs that count. Define RECORD, the
// struct of the counters, before including this file.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "collectors/ebpf/counter_records.h"

// Its size is set to the number of cgroups before loading. Its memory is allocated then, because
// neither the packet path nor the scheduler can allocate.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 1);
  __type(key, __u64);
  __type(value, struct RECORD);
} counted SEC(".maps");

__u64 lost = 0;     // events of cgroups for which the hash had no room
__u64 entered = 0;  // cgroups that entered the hash; while it is unchanged, its keys are known

// Returns null if there is no room.
static __always_inline struct RECORD *counts_in_hash(__u64 cgroup) {
  struct RECORD *counts = bpf_map_lookup_elem(&counted, &cgroup);
  if (counts) return counts;
  const struct RECORD none = {};
  bpf_map_update_elem(&counted, &cgroup, &none, BPF_NOEXIST);
  __sync_fetch_and_add(&entered, 1);
  return bpf_map_lookup_elem(&counted, &cgroup);
}

// The caller counts events without room. If the function above did, the result would be tested
// twice. Before Linux 6.12 a program without CAP_PERFMON must not do that.
static __always_inline void count_lost(void) { __sync_fetch_and_add(&lost, 1); }
