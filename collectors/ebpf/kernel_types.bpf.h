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
