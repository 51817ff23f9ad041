// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// What programs.bpf.c tells of a program in a container, as it lies in the ring buffers. In C, for
// it is compiled for the kernel too.
#pragma once

#include <linux/types.h>

#define PROGRAM_COMMAND_BYTES 16
#define PROGRAM_RING_BYTES (256 * 1024)
#define PROGRAM_START_RING_BYTES 4096

// So many cgroups above a program are looked at, its own among them: as deep as containers are
// looked for (collectors/cgroup_tree.h).
#define PROGRAM_CGROUP_DEPTH 24

// Acts of one container that are told in a second: one does not fill the ring for all others.
#define PROGRAM_ACTS_IN_A_SECOND 64

// PROGRAM_UNTOLD: more happened than is told.
enum program_act { PROGRAM_STARTS, PROGRAM_READS_CPU, PROGRAM_READS_MEMORY, PROGRAM_UNTOLD };

struct program_record {
  __u64 container;  // inode of its cgroup
  __u64 key;        // of the command line; 0: it could not be read
  __u64 age_ns;     // of the process
  __u32 act;        // enum program_act
  char command[PROGRAM_COMMAND_BYTES];
};

// A command line of a container.
struct program_key {
  __u64 container, key;
};

// A container in which programs are watched.
struct watched_container {
  __u64 woken_ns;   // when a start was last told at once
  __u64 second_ns;  // since when `acts` is counted
  __u64 acts;
};
