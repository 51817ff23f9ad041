// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The record of limit_writes.bpf.c for a write to a limit file, as in the ring buffer. In C,
// because it is compiled for the kernel too.
#pragma once

#include <linux/types.h>

// Sizes including the terminating 0. No value that the kernel accepts as a limit is longer.
#define LIMIT_WRITE_COMMAND_BYTES 16
#define LIMIT_WRITE_FILE_BYTES 16
#define LIMIT_WRITE_VALUE_BYTES 44

// Size of the ring buffer. systemd writes three such files per unit at a reload; this is room for
// 700 units. The kernel puts a header before each record.
#define LIMIT_WRITE_RING_BYTES (256 * 1024)
#define LIMIT_WRITE_HEADER_BYTES 8

struct limit_write_record {
  __u64 time_ns;         // CLOCK_MONOTONIC, when the write began
  __u64 directory;       // inode of the cgroup of the file
  __u64 writer_cgroup;   // inode of the writer's cgroup v2
  __u32 pid;             // of the writing process, in the initial pid namespace
  char command[LIMIT_WRITE_COMMAND_BYTES];
  char file[LIMIT_WRITE_FILE_BYTES];
  char value[LIMIT_WRITE_VALUE_BYTES];
};
