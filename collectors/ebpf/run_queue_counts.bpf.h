// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Adds waits for a processor, for all programs that measure them.
#pragma once

#define RECORD run_queue_counts
#include "collectors/ebpf/hot_cgroups.bpf.h"

#define SHORTEST_SHIFT 3  // shortest bucket of the histogram: 8 us

__u64 reading = 0;        // number of the next reading
__u32 sampling_mask = 0;  // 2^n - 1: one event of 2^n is counted

// The bucket of a wait, in units of 2^10 ns as an approximation of microseconds.
static __always_inline __u32 bucket_of(__u64 wait_ns) {
  __u64 left = wait_ns >> (10 + SHORTEST_SHIFT);
  __u32 bucket = 0;
  if (left >> 16) return RUN_QUEUE_BUCKETS - 1;
  if (left >> 8) { bucket += 8; left >>= 8; }
  if (left >> 4) { bucket += 4; left >>= 4; }
  if (left >> 2) { bucket += 2; left >>= 2; }
  if (left >> 1) { bucket += 1; left >>= 1; }
  bucket += left;
  return bucket < RUN_QUEUE_BUCKETS ? bucket : RUN_QUEUE_BUCKETS - 1;
}

// Adds `runs` waits with the sum `wait_ns`. Interrupts are off here, so that nobody else changes
// this processor's record.
static __always_inline void add_waits(struct run_queue_counts *counts, __u64 wait_ns, __u64 runs) {
  counts->wait_ns += wait_ns;
  counts->waits += runs;
  if (!runs) return;
  // If switches were skipped, these are several waits, and only their mean is known.
  const __u64 each_ns = runs == 1 ? wait_ns : wait_ns / runs;
  counts->histogram[bucket_of(each_ns) & (RUN_QUEUE_BUCKETS - 1)] += runs;
  if (counts->reading != reading) {
    counts->reading = reading;
    counts->longest_ns = 0;
  }
  if (each_ns > counts->longest_ns) counts->longest_ns = each_ns;
}
