// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The counters of each cgroup in a hash, for the programs that count. Before it is included:
// RECORD, the struct that is counted in.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "collectors/ebpf/counter_records.h"

// Sized by the number of cgroups before it is loaded. Its memory is taken then: in a packet's way
// and in the scheduler none can be.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 1);
  __type(key, __u64);
  __type(value, struct RECORD);
} counted SEC(".maps");

__u64 lost = 0;     // events of cgroups that the hash had no room for
__u64 entered = 0;  // cgroups that came into the hash: while it stands its keys are known

// Null: no room.
static __always_inline struct RECORD *counts_in_hash(__u64 cgroup) {
  struct RECORD *counts = bpf_map_lookup_elem(&counted, &cgroup);
  if (counts) return counts;
  const struct RECORD none = {};
  bpf_map_update_elem(&counted, &cgroup, &none, BPF_NOEXIST);
  __sync_fetch_and_add(&entered, 1);
  return bpf_map_lookup_elem(&counted, &cgroup);
}

// For the caller to say where there was no room. Were it counted above, the result would be tested
// twice, and before Linux 6.12 a program without CAP_PERFMON must not do that.
static __always_inline void count_lost(void) { __sync_fetch_and_add(&lost, 1); }
