// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The way to the counters of a cgroup, for programs in whose way a hash and its call cost more than
// all the rest: places that user space gives to cgroups (collectors/ebpf/hot_cgroups.h), and the
// hash for all others. Before it is included: RECORD, the struct that is counted in.
#pragma once

#include "collectors/ebpf/counted_cgroups.bpf.h"

// Sized and taken before it is loaded, as the hash is: the places of one processor, then those of
// the next. User space reads them where they lie, without a call.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
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

const volatile __u32 hot_places = 2;  // of one processor, a power of two
const volatile __u32 hot_shift = 63;  // 64 less the bits of a place

static __always_inline _Bool owns(__u32 place, __u64 cgroup) {
  const __u64 *owner = bpf_map_lookup_elem(&hot_owners, &place);
  return owner && *owner == cgroup;
}

// Null: no room. No pointer is tested twice (counted_cgroups.bpf.h).
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
