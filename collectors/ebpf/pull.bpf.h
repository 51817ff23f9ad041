// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Copies the kernel's statistics of all requested cgroups in one walk: the numbers that files show
// as text. The caller flushed the statistics before, by reading a file of a parent.
//
// Two programs do this. The kernel's own iterator calls the first one for each cgroup and locks the
// mutex of all cgroups while it walks (pull.bpf.c). The second one walks by itself under RCU and
// blocks nobody (pull_css.bpf.c). It needs functions that older kernels lack. Looking for them
// needs more rights than the first program, so that the programs are in separate files.
#pragma once

#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "collectors/pull_record.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 64);
  __type(key, __u64);    // inode of a cgroup
  __type(value, __u32);  // its place in `records`
} places SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);
  __uint(max_entries, 64);
  __type(key, __u32);
  __type(value, struct pull_record);
} records SEC(".maps");

__u64 tick = 0;       // number of this walk
__u64 raw_of = 0;     // inode of the cgroup whose raw numbers are wanted
__u64 raw_tick = 0;   // the walk that wrote them
__u64 one_flush = 0;  // this kernel flushes the statistics of all controllers together (until 6.15)
__u64 raw[PULL_RAW];
// The index of each requested line in the raw numbers, and for each index another one that is
// expected to be equal; itself, if nothing is known.
__u32 memory_index[PULL_MEMORY_LINES];
__u32 same_index[PULL_RAW];

static __u64 gathered[PULL_RAW];  // of the current cgroup

// A copy of kernel memory is a call, and calls dominate the cost. Fields of one object that are
// close together are copied at once, including the bytes between them.
struct neighbours {
  __u64 words[32];
};
static struct neighbours now;  // not on the stack, which is small; there is one walk at a time
#define BEGIN_OF(type, field) bpf_core_field_offset(type, field)
#define END_OF(type, field) (BEGIN_OF(type, field) + bpf_core_field_size(type, field))
// False if the fields are further apart, in another order, or unreadable.
#define COPY_NEIGHBOURS(type, object, first, last)                                \
  (END_OF(type, last) - BEGIN_OF(type, first) <= sizeof now &&                    \
   !bpf_probe_read_kernel(&now, END_OF(type, last) - BEGIN_OF(type, first),       \
                          (const char *)(object) + BEGIN_OF(type, first)))
#define COPIED(as, type, first, field) \
  (*(const as *)((const char *)&now + BEGIN_OF(type, field) - BEGIN_OF(type, first)))

static __always_inline void *state_of(const struct cgroup *cgroup, __u64 controller) {
  const char *at = (const char *)cgroup + bpf_core_field_offset(struct cgroup, subsys);
  struct cgroup_subsys_state *state =
      *(struct cgroup_subsys_state *const *)(at + controller * sizeof state);
  if (!state) return 0;
  return (state->flags & (CSS_ONLINE | CSS_VISIBLE)) == (CSS_ONLINE | CSS_VISIBLE) ? state : 0;
}

// Mixes numbers into one hash, which changes if any of them changes.
#define MIX 0x9E3779B97F4A7C15ULL
static __always_inline void mix(struct pull_record *to, __u64 number) {
  to->limits = (to->limits ^ number) * MIX;
}

// True if the limits of all controllers are readable, whether this cgroup has them or not.
#define LIMITS_KNOWN                                                                           \
  (bpf_core_field_exists(struct task_group, cfs_bandwidth.quota) &&                            \
   bpf_core_field_exists(struct task_group, cfs_bandwidth.period) &&                           \
   bpf_core_field_exists(struct task_group, shares) &&                                         \
   bpf_core_field_exists(struct mem_cgroup, memory.max) &&                                     \
   bpf_core_field_exists(struct mem_cgroup, memory.high) &&                                    \
   bpf_core_field_exists(struct mem_cgroup, memory.low) &&                                     \
   bpf_core_field_exists(struct mem_cgroup, memory.min) &&                                     \
   bpf_core_field_exists(struct pids_cgroup, limit))

static __always_inline __u64 take_bandwidth(const struct cgroup *cgroup, struct pull_record *to) {
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, cpu_cgrp_id) ||
      !bpf_core_field_exists(struct task_group, cfs_bandwidth))
    return 0;
  const struct task_group *group =
      state_of(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, cpu_cgrp_id));
  if (!group) return 0;
  if (!bpf_core_field_exists(struct task_group, cfs_bandwidth.period) ||
      !COPY_NEIGHBOURS(struct task_group, group, cfs_bandwidth.period,
                       cfs_bandwidth.throttled_time))
    return 0;
#define BANDWIDTH(as, field) \
  COPIED(as, struct task_group, cfs_bandwidth.period, cfs_bandwidth.field)
  to->nr_periods = BANDWIDTH(int, nr_periods);
  to->nr_throttled = BANDWIDTH(int, nr_throttled);
  to->throttled_ns = BANDWIDTH(__u64, throttled_time);
  if (LIMITS_KNOWN) {
    mix(to, BANDWIDTH(__u64, period));
    mix(to, BANDWIDTH(__u64, quota));
    if (bpf_core_field_exists(struct task_group, cfs_bandwidth.burst))
      mix(to, BANDWIDTH(__u64, burst));
    mix(to, BPF_CORE_READ(group, shares));
  }
#undef BANDWIDTH
  return PULL_BANDWIDTH;
}

static __always_inline __u64 take_memory_lines(const struct mem_cgroup *memory, __u64 id,
                                               struct pull_record *to) {
  const struct memcg_vmstats *stats = BPF_CORE_READ(memory, vmstats);
  // All of these are constants at load time.
  const __u32 state = BEGIN_OF(struct memcg_vmstats, state);
  const __u32 event = BEGIN_OF(struct memcg_vmstats, events);
  const __u32 state_end = END_OF(struct memcg_vmstats, state);
  const __u32 event_end = END_OF(struct memcg_vmstats, events);
  const __u32 begin = state < event ? state : event;
  __u32 bytes = (state_end > event_end ? state_end : event_end) - begin;
  if (bytes > sizeof gathered) bytes = sizeof gathered;
  bpf_probe_read_kernel(gathered, bytes, (const char *)stats + begin);
  for (int i = 0; i < PULL_MEMORY_LINES; i++)
    to->memory[i] = gathered[memory_index[i] & (PULL_RAW - 1)];
  __u64 mismatch = 0;
  // There is no branch on the values, because the verifier of older kernels would follow each path
  // for each cgroup.
#pragma clang loop unroll(full)
  for (int i = 0; i < PULL_RAW; i++) {
    if (i * sizeof gathered[0] >= bytes) break;
    mismatch |= gathered[i] ^ gathered[same_index[i] & (PULL_RAW - 1)];
  }
  if (id == raw_of) {
    for (int i = 0; i < PULL_RAW; i++)
      raw[i] = i * sizeof gathered[0] < bytes ? gathered[i] : PULL_NO_PLACE;
    raw_tick = tick;
  }
  return mismatch ? PULL_MISMATCH : 0;
}

static __always_inline __u64 take_memory(const struct cgroup *cgroup, __u64 id,
                                         struct pull_record *to) {
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id) ||
      !bpf_core_field_exists(struct mem_cgroup, vmstats))
    return 0;
  const struct mem_cgroup *memory =
      state_of(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id));
  if (!memory) return 0;
  if (LIMITS_KNOWN) {
    if (!COPY_NEIGHBOURS(struct mem_cgroup, memory, memory.usage, memory.max)) return 0;
#define OWN_LIMIT(counter, field) \
  mix(to, COPIED(__u64, struct mem_cgroup, counter.usage, counter.field))
    OWN_LIMIT(memory, min);
    OWN_LIMIT(memory, low);
    OWN_LIMIT(memory, high);
    OWN_LIMIT(memory, max);
  } else if (!COPY_NEIGHBOURS(struct mem_cgroup, memory, memory.usage, memory.watermark)) {
    return 0;
  }
  to->memory_pages = COPIED(__u64, struct mem_cgroup, memory.usage, memory.usage);
  to->memory_peak_pages = COPIED(__u64, struct mem_cgroup, memory.usage, memory.watermark);
  to->swap_pages = BPF_CORE_READ(memory, swap.usage.counter);
  if (LIMITS_KNOWN) mix(to, BPF_CORE_READ(memory, swap.max));
#undef OWN_LIMIT
  if (!COPY_NEIGHBOURS(struct mem_cgroup, memory, memory_events, memory_events_local)) return 0;
  for (int i = 0; i < 5; i++) to->events[i] = now.words[i];
  const __u64 *own = &COPIED(__u64, struct mem_cgroup, memory_events, memory_events_local);
  to->own_max = own[2];
  to->own_oom = own[3];
  return PULL_MEMORY | take_memory_lines(memory, id, to);
}

static __always_inline __u64 take_io(const struct cgroup *cgroup, struct pull_record *to) {
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, io_cgrp_id) ||
      !bpf_core_field_exists(struct blkcg_gq, iostat))
    return 0;
  const struct blkcg *group =
      state_of(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, io_cgrp_id));
  if (!group) return 0;
  __u64 read_bytes = 0, write_bytes = 0, read_ios = 0, write_ios = 0;
  const struct hlist_node *node = BPF_CORE_READ(group, blkg_list.first);
  for (int i = 0; i < PULL_DEVICES && node; i++) {
    const struct blkcg_gq *device =
        (const void *)((const char *)node - bpf_core_field_offset(struct blkcg_gq, blkcg_node));
    if (!COPY_NEIGHBOURS(struct blkcg_gq, device, blkcg_node, iostat.cur)) break;
    if (COPIED(_Bool, struct blkcg_gq, blkcg_node, online)) {
      const struct {
        __u64 bytes[3], ios[3];
      } *requests = (const void *)&COPIED(__u64, struct blkcg_gq, blkcg_node, iostat.cur);
      read_bytes += requests->bytes[0];
      write_bytes += requests->bytes[1];
      read_ios += requests->ios[0];
      write_ios += requests->ios[1];
    }
    node = (const void *)now.words[0];  // the first word of an hlist_node is the next one
  }
  to->read_bytes = read_bytes;
  to->write_bytes = write_bytes;
  to->read_ios = read_ios;
  to->write_ios = write_ios;
  return node ? 0 : PULL_IO;
}

static __always_inline __u64 take_pids(const struct cgroup *cgroup, struct pull_record *to) {
  if (!bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id)) return 0;
  const struct pids_cgroup *group =
      state_of(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id));
  if (!group) return 0;
  to->pids = BPF_CORE_READ(group, counter.counter);
  if (LIMITS_KNOWN) mix(to, BPF_CORE_READ(group, limit.counter));
  return PULL_PIDS;
}

static __always_inline __u64 take_pressure(const struct cgroup *cgroup, struct pull_record *to) {
  if (!bpf_core_field_exists(struct cgroup, psi) ||
      !bpf_core_field_exists(struct psi_group, enabled))
    return 0;
  const struct psi_group *group = cgroup->psi;
  if (!group || !group->enabled) return 0;
  to->stall_updated = group->avg_next_update;
  const struct psi_group___rows *rows = (const void *)group;
  if (bpf_core_field_exists(struct psi_group, total)) {
    bpf_core_read(to->stall_ns, sizeof to->stall_ns, &group->total);
    bpf_core_read(to->stall_avg, sizeof to->stall_avg, &group->avg);
  } else if (bpf_core_field_exists(struct psi_group___rows, total)) {
    bpf_core_read(to->stall_ns, sizeof to->stall_ns, &rows->total);
    bpf_core_read(to->stall_avg, sizeof to->stall_avg, &rows->avg);
  } else {
    return 0;
  }
  return PULL_PRESSURE;
}

static __always_inline __u64 take_state(const struct cgroup *cgroup, struct pull_record *to) {
  if (!bpf_core_field_exists(struct cgroup, nr_populated_domain_children) ||
      !bpf_core_field_exists(struct cgroup, nr_populated_threaded_children))
    return 0;
  const struct cgroup_subsys_state___populated *self = (const void *)&cgroup->self;
  __u64 populated = (__u64)cgroup->nr_populated_domain_children +
                    cgroup->nr_populated_threaded_children;
  if (bpf_core_field_exists(struct cgroup, nr_populated_csets))
    populated += cgroup->nr_populated_csets;
  else if (bpf_core_field_exists(struct cgroup_subsys_state___populated, nr_populated_csets))
    populated += self->nr_populated_csets;
  else
    return 0;
  to->state = cgroup->flags << 1 | -populated >> 63;  // 1 if populated, without a branch
  return PULL_STATE;
}

// Called once in each walk.
static __always_inline void begin(void) {
  one_flush = bpf_core_field_exists(struct cgroup, rstat_css_list);
}

static __always_inline void take(const struct cgroup *cgroup) {
  const __u64 id = cgroup->kn->id;
  const __u32 *place = bpf_map_lookup_elem(&places, &id);
  if (!place) return;
  struct pull_record *to = bpf_map_lookup_elem(&records, place);
  if (!to) return;
  if (!(cgroup->self.flags & CSS_ONLINE)) return;
  to->usage_ns = cgroup->bstat.cputime.sum_exec_runtime;
  to->user_ns = cgroup->bstat.cputime.utime;
  to->system_ns = cgroup->bstat.cputime.stime;
  to->printed_user_ns = cgroup->prev_cputime.utime;
  to->printed_system_ns = cgroup->prev_cputime.stime;
  to->limits = 0;
  // The parts are stored one after the other. The verifier would follow each path for each cgroup
  // if a register held a value that depends on the path.
  to->parts = PULL_CPU | (LIMITS_KNOWN ? PULL_LIMITS : 0);
  to->parts |= take_state(cgroup, to);
  to->parts |= take_bandwidth(cgroup, to);
  to->parts |= take_memory(cgroup, id, to);
  to->parts |= take_io(cgroup, to);
  to->parts |= take_pids(cgroup, to);
  to->parts |= take_pressure(cgroup, to);
  to->tick = tick;
}
