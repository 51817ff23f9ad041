/* SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only */
/* The record that pull.bpf.c writes per cgroup, shared with the program. C and C++. */
#pragma once

#include <linux/types.h>

/* The most lines of memory.stat that a walk copies. */
#define PULL_MEMORY_LINES 24
/* The most raw numbers of memory.stat (states and events, in the kernel's order). */
#define PULL_RAW 128
/* Value of a number that this kernel lacks; larger than any line of memory.stat. */
#define PULL_NO_PLACE 0x4000000000000000ULL
/* Devices whose requests are added. A cgroup with more has no I/O values. */
#define PULL_DEVICES 16

/* Parts of a record that are present. */
#define PULL_CPU 1
#define PULL_BANDWIDTH 2
#define PULL_MEMORY 4
#define PULL_IO 8
#define PULL_PIDS 16
#define PULL_PRESSURE 32
/* Numbers that were always equal differ now: `memory` must not be used. */
#define PULL_MISMATCH 64
/* `state` and `limits` are present. */
#define PULL_STATE 128
#define PULL_LIMITS 256

struct pull_record {
  __u64 tick; /* the walk that wrote the record */
  __u64 parts;
  __u64 usage_ns, user_ns, system_ns; /* user and system as ticks counted them */
  __u64 printed_user_ns, printed_system_ns; /* as cpu.stat last printed them */
  __u64 nr_periods, nr_throttled, throttled_ns;
  __u64 memory_pages, memory_peak_pages, swap_pages;
  __u64 events[5];       /* low, high, max, oom, oom_kill */
  __u64 own_max, own_oom;
  __u64 pids;
  __u64 state;  /* changes if cgroup.events may have changed */
  __u64 limits; /* changes if a limit was written */
  __u64 read_bytes, write_bytes, read_ios, write_ios;
  __u64 stall_updated;   /* changes if the kernel updated the averages */
  __u64 stall_ns[6];     /* io some, full, memory some, full, cpu some, full */
  __u64 stall_avg[6][3]; /* of 10, 60 and 300 s, 11 fractional bits */
  __u64 memory[PULL_MEMORY_LINES];
};
#ifdef __cplusplus
static_assert(sizeof(pull_record) == 608, "docs/internals/ebpf.md says so");
#else
_Static_assert(sizeof(struct pull_record) == 608, "docs/internals/ebpf.md says so");
#endif
