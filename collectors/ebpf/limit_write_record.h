// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// What limit_writes.bpf.c tells of a write to a limit file, as it lies in the ring buffer. In C,
// for it is compiled for the kernel too.
#pragma once

#include <linux/types.h>

// Bytes kept, with the 0 that ends them. No value that the kernel takes for a limit is longer.
#define LIMIT_WRITE_COMMAND_BYTES 16
#define LIMIT_WRITE_FILE_BYTES 16
#define LIMIT_WRITE_VALUE_BYTES 44

// Of the ring buffer: systemd writes three such files of every unit at a reload, room for 700 of
// them. Before each record the kernel puts a header.
#define LIMIT_WRITE_RING_BYTES (256 * 1024)
#define LIMIT_WRITE_HEADER_BYTES 8

struct limit_write_record {
  __u64 time_ns;         // CLOCK_MONOTONIC, when the write began
  __u64 directory;       // inode of the cgroup that the file belongs to
  __u64 writer_cgroup;   // inode of the cgroup v2 that the writer is in
  __u32 pid;             // of the writing process, in the first pid namespace
  char command[LIMIT_WRITE_COMMAND_BYTES];
  char file[LIMIT_WRITE_FILE_BYTES];
  char value[LIMIT_WRITE_VALUE_BYTES];
};
