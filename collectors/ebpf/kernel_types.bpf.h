// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The kernel's types as far as BPF programs of ours read them. Only names count: libbpf finds where
// each field lies in the running kernel (CO-RE). A type whose name ends in ___WORD is the same
// type in kernels that differ.
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

struct cgroup {
  struct kernfs_node *kn;
} KERNEL_TYPE;

// How often a task came to run, and how long it waited for it in all, in nanoseconds.
struct sched_info {
  unsigned long pcount;
  unsigned long long run_delay;
} KERNEL_TYPE;

// Of a task: where it is in each hierarchy.
struct css_set {
  struct cgroup *dfl_cgrp;
} KERNEL_TYPE;

struct task_struct {
  int pid;
  unsigned int flags;
  unsigned long nvcsw, nivcsw;  // voluntary and involuntary switches
  __u64 start_time;             // CLOCK_MONOTONIC
  struct sched_info sched_info;
  struct css_set *cgroups;
} KERNEL_TYPE;

struct cgroup_subsys_state {
  struct cgroup *cgroup;
} KERNEL_TYPE;
struct blkcg {
  struct cgroup_subsys_state css;
} KERNEL_TYPE;
// The requests of one cgroup to one device.
struct blkcg_gq {
  struct blkcg *blkcg;
} KERNEL_TYPE;
struct bio {
  struct blkcg_gq *bi_blkg;
} KERNEL_TYPE;
struct request {
  struct bio *bio;
  __u64 start_time_ns;  // CLOCK_MONOTONIC, when it was asked for
  unsigned int __data_len;
} KERNEL_TYPE;

struct sock_cgroup_data {
  struct cgroup *cgroup;
} KERNEL_TYPE;
struct sock {
  struct sock_cgroup_data sk_cgrp_data;
} KERNEL_TYPE;
