// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The records that the counting programs keep per cgroup and processor in their maps. In C, because
// it is compiled for the kernel too. Keys are inodes of cgroups, __u64.
#pragma once

#include <linux/types.h>

// The maximum number of cgroups with their own place, which needs no hash lookup. A power of two.
#define HOT_CGROUPS 16384
// A cgroup may have either of two places: the upper bits of its inode times this factor, and the
// adjacent one. Inodes of cgroups that were created in sequence are close together; the product
// spreads them.
#define HOT_SPREAD 0x9E3779B97F4A7C15ULL

// Traffic of the sockets that were opened in it: bytes and packets of the network layer. Traffic
// through a loopback device is separate and counted when it is sent.
struct network_counts {
  __u64 receive_bytes, receive_packets;
  __u64 transmit_bytes, transmit_packets;
  __u64 loopback_bytes, loopback_packets;
};

// Bucket i has waits of up to 2^(3 + i) us, the last bucket all longer ones.
#define RUN_QUEUE_BUCKETS 16

// Waits of its threads from runnable to running, and what ended their runs.
struct run_queue_counts {
  __u64 wait_ns, waits;
  __u64 voluntary, involuntary;
  __u64 histogram[RUN_QUEUE_BUCKETS];
  // Not sums: the longest wait since the reading with that number.
  __u64 longest_ns, reading;
};
#define RUN_QUEUE_SUMS (4 + RUN_QUEUE_BUCKETS)

// Maximum number of tasks of the program without task storage. The task that was unseen longest is
// replaced.
#define RUN_QUEUE_PIDS 16384

// Completed requests to block devices.
struct block_counts {
  __u64 bytes, requests, latency_ns;
};

struct tcp_counts {
  __u64 retransmits;
};
