// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Finds the counters of a cgroup for programs in which a hash lookup would cost more than all the
// rest. User space assigns places to cgroups (collectors/ebpf/hot_cgroups.h); the others use the
// hash. Define RECORD, the struct of the counters, before including this file.
#pragma once

#include "collectors/ebpf/counted_cgroups.bpf.h"

// Its size is set and its memory allocated before loading, as for the hash. It has the places of
// one processor, then those of the next. User space reads it through a mapping, without a call.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, HOT_CGROUPS);
  __type(key, __u32);
  __type(value, struct RECORD);
} hot SEC(".maps");

// The owner of each place; 0: none. Only user space writes it. It is a map, not an array of the
// program, because a variable index would need CAP_PERFMON.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, HOT_CGROUPS);
  __type(key, __u32);
  __type(value, __u64);
} hot_owners SEC(".maps");

const volatile __u32 hot_places = 2;  // places per processor, a power of two
const volatile __u32 hot_shift = 63;  // 64 minus the bits of a place

static __always_inline _Bool owns(__u32 place, __u64 cgroup) {
  const __u64 *owner = bpf_map_lookup_elem(&hot_owners, &place);
  return owner && *owner == cgroup;
}

// Returns null if there is no room. No pointer is tested twice (counted_cgroups.bpf.h).
static __always_inline struct RECORD *counts_of(__u64 cgroup) {
  __u32 place = (cgroup * HOT_SPREAD) >> hot_shift;
  // A packet without a socket has no cgroup: 0.
  if (!cgroup) return counts_in_hash(cgroup);
  if (!owns(place, cgroup)) {
    place ^= 1;
    if (!owns(place, cgroup)) return counts_in_hash(cgroup);
  }
  const __u32 record = place + bpf_get_smp_processor_id() * hot_places;
  return bpf_map_lookup_elem(&hot, &record);
}
