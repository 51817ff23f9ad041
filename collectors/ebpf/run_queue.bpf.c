// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Counts how long threads wait for a processor, and why they leave it, by cgroup. The kernel itself
// sums each task's waits. When a task leaves the processor, the growth of that sum since it last
// left is its wait before this run. So one hook is enough, and no clock is read.
//
// There are two programs for this, and one of them is loaded. One uses typed pointers and task
// storage, for kernels that have both. The other copies the fields and finds tasks by their pid.
#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "collectors/ebpf/run_queue_counts.bpf.h"

#define PF_EXITING 0x4

// State of a task at its last switch that was counted. In the order of the kernel's fields, for
// copied().
struct seen {
  __u64 runs, run_delay;
  __u64 voluntary, involuntary;
  __u64 start_time;  // identity of the task, if it was found by its pid
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

static __always_inline void add(struct run_queue_counts *counts, const struct seen *before,
                                const struct seen *now) {
  counts->voluntary += now->voluntary - before->voluntary;
  counts->involuntary += now->involuntary - before->involuntary;
  add_waits(counts, now->run_delay - before->run_delay, now->runs - before->runs);
}

static __always_inline void take(__u64 cgroup, struct seen *before, const struct seen *now) {
  struct run_queue_counts *counts = counts_of(cgroup);
  if (counts) add(counts, before, now);
  else count_lost();
  before->run_delay = now->run_delay;
  before->runs = now->runs;
  before->voluntary = now->voluntary;
  before->involuntary = now->involuntary;
}

// The task that leaves is still the current one. Its last switch is always counted.
SEC("tp_btf/sched_switch")
int BPF_PROG(count_typed, _Bool preempt, struct task_struct *prev) {
  const __u32 mask = sampling_mask;
  if (prev->pid == 0) return 0;
  if (mask && ((prev->nvcsw + prev->nivcsw) & mask) && !(prev->flags & PF_EXITING)) return 0;
  struct seen *before =
      bpf_task_storage_get(&seen_tasks, prev, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (!before) {
    count_lost();
    return 0;
  }
  const struct seen now = {prev->sched_info.pcount, prev->sched_info.run_delay, prev->nvcsw,
                           prev->nivcsw, 0};
  // Waits of an older task before its first counted switch are from before the programs were
  // loaded.
  if (!before->runs && now.runs > 1 && prev->start_time < loaded_ns)
    *before = now;
  else
    take(prev->cgroups->dfl_cgrp->kn->id, before, &now);
  return 0;
}

// True if `second` directly follows `first` in the running kernel, each with eight bytes.
#define FOLLOWS(first, second)                                                      \
  (bpf_core_field_offset(second) - bpf_core_field_offset(first) == sizeof(__u64) && \
   bpf_core_field_size(first) == sizeof(__u64) && bpf_core_field_size(second) == sizeof(__u64))

// A copy is a call, and calls dominate the cost of this program. So adjacent fields are copied at
// once.
static __always_inline void copied(struct task_struct *task, struct seen *now) {
  if (FOLLOWS(task->sched_info.pcount, task->sched_info.run_delay)) {
    bpf_core_read(&now->runs, 2 * sizeof(__u64), &task->sched_info.pcount);
  } else {
    now->runs = BPF_CORE_READ(task, sched_info.pcount);
    now->run_delay = BPF_CORE_READ(task, sched_info.run_delay);
  }
  if (FOLLOWS(task->nvcsw, task->nivcsw) && FOLLOWS(task->nivcsw, task->start_time)) {
    bpf_core_read(&now->voluntary, 3 * sizeof(__u64), &task->nvcsw);
  } else {
    now->voluntary = BPF_CORE_READ(task, nvcsw);
    now->involuntary = BPF_CORE_READ(task, nivcsw);
    now->start_time = BPF_CORE_READ(task, start_time);
  }
}

SEC("raw_tp/sched_switch")
int BPF_PROG(count_copied, _Bool preempt, struct task_struct *prev) {
  const __u32 mask = sampling_mask;
  const __u32 pid = bpf_get_current_pid_tgid();
  if (pid == 0) return 0;
  struct seen now = {};
  copied(prev, &now);
  if (mask && ((now.voluntary + now.involuntary) & mask) &&
      !(BPF_CORE_READ(prev, flags) & PF_EXITING))
    return 0;
  struct seen *before = bpf_map_lookup_elem(&seen_pids, &pid);
  if (before && before->start_time == now.start_time) {
    take(bpf_get_current_cgroup_id(), before, &now);
    return 0;
  }
  // The task was never seen, or so long ago that it was forgotten. Only the first run of a task is
  // fully known.
  if (now.runs <= 1) {
    struct seen none = {};
    take(bpf_get_current_cgroup_id(), &none, &now);
  }
  bpf_map_update_elem(&seen_pids, &pid, &now, BPF_ANY);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
