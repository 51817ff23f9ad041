// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The way to the counters of a cgroup, for programs in whose way a hash and its call cost more than
// all the rest: places that user space gives to cgroups (collectors/ebpf/hot_cgroups.h), and the
// hash for all others. Before it is included: RECORD, the struct that is counted in.
#pragma once

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "collectors/ebpf/counter_records.h"

// Both sized by the number of cgroups before they are loaded. Their memory is taken then: in a
// packet's way and in the scheduler none can be.
struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_HASH);
  __uint(max_entries, 1);
  __type(key, __u64);
  __type(value, struct RECORD);
} counted SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
  __uint(max_entries, HOT_CGROUPS);
  __type(key, __u32);
  __type(value, struct RECORD);
} hot SEC(".maps");

// Of each place; 0: nobody's. Written by user space alone. A map, not an array of the program's
// own: an index that varies would take CAP_PERFMON.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, HOT_CGROUPS);
  __type(key, __u32);
  __type(value, __u64);
} hot_owners SEC(".maps");

const volatile __u32 hot_mask = HOT_CGROUPS - 1;
__u64 lost = 0;  // events of cgroups that the hash had no room for

// Null: no room.
static __always_inline struct RECORD *counts_of(__u64 cgroup) {
  const __u32 place = cgroup & hot_mask;
  const __u64 *owner = bpf_map_lookup_elem(&hot_owners, &place);
  // A packet without a socket has no cgroup: 0.
  if (cgroup && owner && *owner == cgroup) return bpf_map_lookup_elem(&hot, &place);
  struct RECORD *counts = bpf_map_lookup_elem(&counted, &cgroup);
  if (counts) return counts;
  const struct RECORD none = {};
  bpf_map_update_elem(&counted, &cgroup, &none, BPF_NOEXIST);
  return bpf_map_lookup_elem(&counted, &cgroup);
}

// For the caller to say where there was no room. Were it counted above, the result would be tested
// twice, and before Linux 6.12 a program without CAP_PERFMON must not do that.
static __always_inline void count_lost(void) { __sync_fetch_and_add(&lost, 1); }
