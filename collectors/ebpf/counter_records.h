// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// What the counting programs keep of a cgroup on each processor, as it lies in their maps. In C,
// for it is compiled for the kernel too. Keys are inodes of cgroups, __u64.
#pragma once

#include <linux/types.h>

// Cgroups that have a place of their own, found without a hash; a power of two. At most so many.
#define HOT_CGROUPS 16384
// A cgroup may have either of two places: the upper bits of its inode times this, and the one
// beside it. Inodes of cgroups that were made one after another have a distance, which a product
// spreads.
#define HOT_SPREAD 0x9E3779B97F4A7C15ULL

// Of the sockets that were opened in it: bytes and packets of the network layer. What goes through
// a loopback device is apart, counted as it is sent.
struct network_counts {
  __u64 receive_bytes, receive_packets;
  __u64 transmit_bytes, transmit_packets;
  __u64 loopback_bytes, loopback_packets;
};

// Waits of up to 2^(3 + i) us are in bucket i, all longer ones in the last.
#define RUN_QUEUE_BUCKETS 16

// Of its threads: from being runnable to running, and what ended their runs.
struct run_queue_counts {
  __u64 wait_ns, waits;
  __u64 voluntary, involuntary;
  __u64 histogram[RUN_QUEUE_BUCKETS];
  // No sums: the longest wait since the reading of that number.
  __u64 longest_ns, reading;
};
#define RUN_QUEUE_SUMS (4 + RUN_QUEUE_BUCKETS)

// Tasks that the program without task storage knows at once; the longest unseen makes room.
#define RUN_QUEUE_PIDS 16384

// Of requests to block devices that were completed.
struct block_counts {
  __u64 bytes, requests, latency_ns;
};

struct tcp_counts {
  __u64 retransmits;
};
