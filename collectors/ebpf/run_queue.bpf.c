// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// How long threads wait for a processor, and why they leave it, by cgroup. The kernel sums up each
// task's waits itself; when a task leaves the processor, what came to that sum since it last left
// is its wait before this run. So one hook is enough, and nothing is asked of the clock.
//
// Two programs for the same: one with typed pointers and storage in the task, for kernels that have
// both, and one that copies what it reads and finds tasks by their pid. One of them is loaded.
#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define RECORD run_queue_counts
#include "collectors/ebpf/hot_cgroups.bpf.h"

#define PF_EXITING 0x4
#define SHORTEST_SHIFT 3  // of the histogram: 8 us

// Of a task when it was looked at last.
struct seen {
  __u64 run_delay, runs;
  __u64 voluntary, involuntary;
  __u64 start_time;  // who it is, where the pid is all that it was found by
};

struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct seen);
} seen_tasks SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RUN_QUEUE_PIDS);
  __type(key, __u32);
  __type(value, struct seen);
} seen_pids SEC(".maps");

const volatile __u64 loaded_ns = 0;  // CLOCK_MONOTONIC, before the programs were loaded
__u64 reading = 0;                   // number of the next reading
__u32 sampling_mask = 0;             // 2^n - 1: of a task's switches one of 2^n is looked at

// Of a wait in units of 2^10 ns, which pass for microseconds.
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

// Interrupts are off here, so nobody else adds to this processor's record.
static __always_inline void add(struct run_queue_counts *counts, const struct seen *before,
                                const struct seen *now) {
  const __u64 wait_ns = now->run_delay - before->run_delay;
  const __u64 runs = now->runs - before->runs;
  counts->wait_ns += wait_ns;
  counts->waits += runs;
  counts->voluntary += now->voluntary - before->voluntary;
  counts->involuntary += now->involuntary - before->involuntary;
  if (!runs) return;
  // Where switches were not looked at these are several waits, and all that is known is their mean.
  const __u64 each_ns = runs == 1 ? wait_ns : wait_ns / runs;
  counts->histogram[bucket_of(each_ns) & (RUN_QUEUE_BUCKETS - 1)] += runs;
  if (counts->reading != reading) {
    counts->reading = reading;
    counts->longest_ns = 0;
  }
  if (each_ns > counts->longest_ns) counts->longest_ns = each_ns;
}

static __always_inline void take(__u64 cgroup, struct seen *before, const struct seen *now) {
  struct run_queue_counts *counts = counts_of(cgroup);
  if (counts) add(counts, before, now);
  before->run_delay = now->run_delay;
  before->runs = now->runs;
  before->voluntary = now->voluntary;
  before->involuntary = now->involuntary;
}

// The task that leaves is still the current one. Its last switch is always looked at.
SEC("tp_btf/sched_switch")
int BPF_PROG(count_typed, _Bool preempt, struct task_struct *prev) {
  const __u32 mask = sampling_mask;
  if (prev->pid == 0) return 0;
  if (mask && ((prev->nvcsw + prev->nivcsw) & mask) && !(prev->flags & PF_EXITING)) return 0;
  struct seen *before =
      bpf_task_storage_get(&seen_tasks, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!before) return 0;
  const struct seen now = {prev->sched_info.run_delay, prev->sched_info.pcount, prev->nvcsw,
                           prev->nivcsw, 0};
  // What an older task waited before it was seen first is not of our time.
  if (!before->runs && now.runs > 1 && prev->start_time < loaded_ns)
    *before = now;
  else
    take(prev->cgroups->dfl_cgrp->kn->id, before, &now);
  return 0;
}

SEC("raw_tp/sched_switch")
int BPF_PROG(count_copied, _Bool preempt, struct task_struct *prev) {
  const __u32 mask = sampling_mask;
  const __u32 pid = BPF_CORE_READ(prev, pid);
  if (pid == 0) return 0;
  const struct seen now = {BPF_CORE_READ(prev, sched_info.run_delay),
                           BPF_CORE_READ(prev, sched_info.pcount), BPF_CORE_READ(prev, nvcsw),
                           BPF_CORE_READ(prev, nivcsw), BPF_CORE_READ(prev, start_time)};
  if (mask && ((now.voluntary + now.involuntary) & mask) &&
      !(BPF_CORE_READ(prev, flags) & PF_EXITING))
    return 0;
  struct seen *before = bpf_map_lookup_elem(&seen_pids, &pid);
  if (before && before->start_time == now.start_time) {
    take(bpf_get_current_cgroup_id(), before, &now);
    return 0;
  }
  // Never seen, or seen so long ago that it was forgotten: only of its first run is all known.
  if (now.runs <= 1) {
    struct seen none = {};
    take(bpf_get_current_cgroup_id(), &none, &now);
  }
  bpf_map_update_elem(&seen_pids, &pid, &now, BPF_ANY);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
