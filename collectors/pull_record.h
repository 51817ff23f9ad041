/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* What pull.bpf.c writes of one cgroup, shared with the program. C and C++. */
#pragma once

#include <linux/types.h>

/* Lines of memory.stat that are asked for, at most. */
#define PULL_MEMORY_LINES 24
/* Raw numbers behind memory.stat, states and events, as they lie in the kernel: at most so many. */
#define PULL_RAW 128
/* In the place of one that this kernel does not have: no line of memory.stat says so much. */
#define PULL_NO_PLACE 0x4000000000000000ULL
/* Devices whose requests are added up; a cgroup with more tells no I/O. */
#define PULL_DEVICES 16

/* Parts of a record that are there. */
#define PULL_CPU 1
#define PULL_BANDWIDTH 2
#define PULL_MEMORY 4
#define PULL_IO 8
#define PULL_PIDS 16
#define PULL_PRESSURE 32
/* Places that were always the same are not: what `memory` has is not to be relied on. */
#define PULL_SURPRISE 64
/* `state` and `limits` are there. */
#define PULL_STATE 128
#define PULL_LIMITS 256

struct pull_record {
  __u64 tick;  /* the walk in which all of it was written */
  __u64 parts;
  __u64 usage_ns, user_ns, system_ns; /* the latter two as ticks saw them */
  __u64 told_user_ns, told_system_ns; /* as cpu.stat told them last */
  __u64 nr_periods, nr_throttled, throttled_ns;
  __u64 memory_pages, memory_peak_pages, swap_pages;
  __u64 events[5];       /* low, high, max, oom, oom_kill */
  __u64 own_max, own_oom;
  __u64 pids;
  __u64 state;           /* another value: cgroup.events may tell something else */
  __u64 limits;          /* another value: some limit was written */
  __u64 read_bytes, write_bytes, read_ios, write_ios;
  __u64 stall_updated;   /* another value: the kernel brought averages up to date */
  __u64 stall_ns[6];     /* io some, full, memory some, full, cpu some, full */
  __u64 stall_avg[6][3]; /* of 10, 60 and 300 s, 11 bits behind the point */
  __u64 memory[PULL_MEMORY_LINES];
};
#ifdef __cplusplus
static_assert(sizeof(pull_record) == 608, "docs/internals/ebpf.md says so");
#else
_Static_assert(sizeof(struct pull_record) == 608, "docs/internals/ebpf.md says so");
#endif
