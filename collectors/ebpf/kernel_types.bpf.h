// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The kernel's types, with the fields that our BPF programs read. Only names count: libbpf finds
// the offset of each field in the running kernel (CO-RE). A type with a name ending in ___WORD is
// the same type in other kernel versions.
#pragma once

#include <linux/bpf.h>

#define KERNEL_TYPE __attribute__((preserve_access_index))

// A file or a directory of a cgroup file system; `id` is its inode number.
struct kernfs_node {
  struct kernfs_node *parent;
  const char *name;
  __u64 id;
} KERNEL_TYPE;
// Since 6.15.
struct kernfs_node___guarded {
  struct kernfs_node *__parent;
} KERNEL_TYPE;

struct kernfs_open_file {
  struct kernfs_node *kn;
} KERNEL_TYPE;
struct seq_file {
  void *private;
} KERNEL_TYPE;

// The state of one controller in one cgroup.
struct cgroup_subsys_state {
  struct cgroup *cgroup;
  struct cgroup_subsys_state *parent;
  unsigned int flags;
} KERNEL_TYPE;
// In 7.2 each controller's and the cgroup's own state have this field; before, only struct cgroup
// has it.
struct cgroup_subsys_state___populated {
  int nr_populated_csets;
} KERNEL_TYPE;
#define CSS_ONLINE (1 << 1)
#define CSS_VISIBLE (1 << 3)  // has its files
enum cgroup_subsys_id { cpu_cgrp_id, io_cgrp_id, memory_cgrp_id, pids_cgrp_id };

// CPU time of a cgroup and those below, as of the last flush of its statistics. Nanoseconds.
struct task_cputime {
  __u64 stime, utime;
  unsigned long long sum_exec_runtime;
} KERNEL_TYPE;
// User and system time of cpu.stat when it was last read. Neither ever falls.
struct prev_cputime {
  __u64 utime, stime;
} KERNEL_TYPE;
struct cgroup_base_stat {
  struct task_cputime cputime;
} KERNEL_TYPE;

// Stalls. States as in enum psi_states up to CPU_FULL. Totals are in nanoseconds; the first ones
// are those with averages. Averages of 10, 60 and 300 s have 11 fractional bits.
#define PSI_STATES 6
struct psi_group {
  _Bool enabled;
  __u64 avg_next_update;
  __u64 total[2 * PSI_STATES];
  unsigned long avg[PSI_STATES * 3];
} KERNEL_TYPE;
// The same type if the type information has rows. Older tools made one row of all.
struct psi_group___rows {
  __u64 total[2][PSI_STATES];
  unsigned long avg[PSI_STATES][3];
} KERNEL_TYPE;

struct list_head {
  struct list_head *next;
} KERNEL_TYPE;
struct cgroup {
  struct cgroup_subsys_state self;
  unsigned long flags;  // includes frozen
  int nr_populated_csets, nr_populated_domain_children, nr_populated_threaded_children;
  struct list_head rstat_css_list;  // exists if one flush covers all controllers
  struct kernfs_node *kn;
  struct cgroup_subsys_state *subsys[1];
  struct cgroup_base_stat bstat;
  struct prev_cputime prev_cputime;
  struct psi_group *psi;
} KERNEL_TYPE;

typedef struct {
  long counter;
} KERNEL_TYPE atomic_long_t;

// Bandwidth of the CPU controller.
struct cfs_bandwidth {
  long long period;
  __u64 quota, burst;
  int nr_periods, nr_throttled;
  __u64 throttled_time;
} KERNEL_TYPE;
struct task_group {
  unsigned long shares;  // weight
  struct cfs_bandwidth cfs_bandwidth;
} KERNEL_TYPE;

// Counted in pages.
struct page_counter {
  atomic_long_t usage;
  unsigned long watermark;
  unsigned long min, low, high, max;
} KERNEL_TYPE;
// The source of memory.stat. The index of a line differs between kernels.
struct memcg_vmstats {
  long state[1];
  unsigned long events[1];
} KERNEL_TYPE;
struct mem_cgroup {
  struct page_counter memory, swap;
  struct memcg_vmstats *vmstats;
  atomic_long_t memory_events[5], memory_events_local[5];  // low, high, max, oom, oom_kill
} KERNEL_TYPE;

struct pids_cgroup {
  atomic_long_t counter, limit;
} KERNEL_TYPE;

// How often a task started to run, and how long it waited in total, in nanoseconds.
struct sched_info {
  unsigned long pcount;
  unsigned long long run_delay;
} KERNEL_TYPE;

// The cgroups of a task in each hierarchy.
struct css_set {
  struct cgroup *dfl_cgrp;
} KERNEL_TYPE;

// The memory of a process: the address of its command line.
struct mm_struct {
  unsigned long arg_start, arg_end;
} KERNEL_TYPE;

struct task_struct {
  int pid;
  unsigned int flags;
  unsigned long nvcsw, nivcsw;  // voluntary and involuntary switches
  __u64 start_time;             // CLOCK_MONOTONIC
  struct sched_info sched_info;
  struct css_set *cgroups;
  struct mm_struct *mm;
  struct task_struct *group_leader;
  __u64 start_boottime;  // CLOCK_BOOTTIME
} KERNEL_TYPE;

struct hlist_node {
  struct hlist_node *next;
} KERNEL_TYPE;
struct hlist_head {
  struct hlist_node *first;
} KERNEL_TYPE;
struct blkcg {
  struct cgroup_subsys_state css;
  struct hlist_head blkg_list;
} KERNEL_TYPE;
// Reads, writes, discards.
struct blkg_iostat {
  __u64 bytes[3], ios[3];
} KERNEL_TYPE;
struct blkg_iostat_set {
  struct blkg_iostat cur;
} KERNEL_TYPE;
// The requests of one cgroup to one device.
struct blkcg_gq {
  struct blkcg *blkcg;
  struct hlist_node blkcg_node;
  _Bool online;
  struct blkg_iostat_set iostat;
} KERNEL_TYPE;
struct bio {
  struct blkcg_gq *bi_blkg;
} KERNEL_TYPE;
struct request {
  struct bio *bio;
  __u64 start_time_ns;  // CLOCK_MONOTONIC, time of the request
  unsigned int __data_len;
} KERNEL_TYPE;

struct sock_cgroup_data {
  struct cgroup *cgroup;
} KERNEL_TYPE;
struct sock {
  struct sock_cgroup_data sk_cgrp_data;
} KERNEL_TYPE;
