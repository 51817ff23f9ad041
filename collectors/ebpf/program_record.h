// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The record of programs.bpf.c for a program in a container, as in the ring buffers. In C, because
// it is compiled for the kernel too.
#pragma once

#include <linux/types.h>

#define PROGRAM_COMMAND_BYTES 16
#define PROGRAM_RING_BYTES (256 * 1024)
#define PROGRAM_START_RING_BYTES 4096

// The number of levels that are searched upwards from a program's own cgroup. It equals the depth
// to which containers are searched (collectors/cgroup_tree.h).
#define PROGRAM_CGROUP_DEPTH 24

// Actions of one container that are reported per second, so that it does not fill the ring for all
// others.
#define PROGRAM_ACTS_IN_A_SECOND 64

// PROGRAM_DROPPED: more actions happened than are reported.
enum program_act { PROGRAM_STARTS, PROGRAM_READS_CPU, PROGRAM_READS_MEMORY, PROGRAM_DROPPED };

struct program_record {
  __u64 container;  // inode of its cgroup
  __u64 key;        // hash of the command line; 0: it could not be read
  __u64 age_ns;     // age of the process
  __u32 act;        // enum program_act
  char command[PROGRAM_COMMAND_BYTES];
};

// A command line in a container.
struct program_key {
  __u64 container, key;
};

// A container in which programs are watched.
struct watched_container {
  __u64 woken_ns;   // time of the last immediate report of a start
  __u64 second_ns;  // start of the second in which `acts` counts
  __u64 acts;
};
