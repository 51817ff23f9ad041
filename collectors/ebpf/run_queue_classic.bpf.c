// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Counts how long threads wait for a processor, and why they leave it, by cgroup, for kernels
// without type information. It uses only tracepoints, whose fields have stable offsets
// (tracing/events/sched/*/format). A wait begins when a task is woken, or leaves the processor
// although it could continue. It ends when the task runs. It is added when the task leaves again,
// because its cgroup is known only then.
#include "collectors/ebpf/run_queue_counts.bpf.h"

#include <bpf/bpf_helpers.h>

#define COMM_BYTES 16
#define RUNNING 0
#define PREEMPTED 0x100  // TASK_REPORT_MAX: it could continue

struct wakeup {
  __u64 common;
  char comm[COMM_BYTES];
  __s32 pid, prio;
};

struct switched {
  __u64 common;
  char prev_comm[COMM_BYTES];
  __s32 prev_pid, prev_prio;
  long prev_state;
  char next_comm[COMM_BYTES];
  __s32 next_pid, next_prio;
};

// The wait of a task.
struct wait {
  __u64 since_ns;  // start of the wait; or of a wakeup while it ran, before it could sleep
  __u64 ns;        // length of the wait before this run
};

struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, RUN_QUEUE_PIDS);
  __type(key, __s32);
  __type(value, struct wait);
} waits SEC(".maps");

static __always_inline void begin_wait(__s32 pid, __u64 now_ns) {
  struct wait *wait = bpf_map_lookup_elem(&waits, &pid);
  const struct wait fresh = {now_ns, 0};
  if (!wait)
    bpf_map_update_elem(&waits, &pid, &fresh, BPF_ANY);
  else if (!wait->since_ns)
    wait->since_ns = now_ns;
}

SEC("tracepoint/sched/sched_wakeup")
int see_wakeup(struct wakeup *event) {
  begin_wait(event->pid, bpf_ktime_get_ns());
  return 0;
}

SEC("tracepoint/sched/sched_wakeup_new")
int see_birth(struct wakeup *event) {
  begin_wait(event->pid, bpf_ktime_get_ns());
  return 0;
}

// Ends the run of `prev`, which is still the current task.
static __always_inline void end_run(__s32 pid, int could_go_on, __u64 now_ns) {
  struct wait *wait = bpf_map_lookup_elem(&waits, &pid);
  const __u64 waited_ns = wait ? wait->ns : 0;
  if (could_go_on) {
    const struct wait next = {now_ns, 0};
    bpf_map_update_elem(&waits, &pid, &next, BPF_ANY);
  } else if (wait) {
    // This also clears a wakeup while it ran: the task went to sleep after all.
    wait->since_ns = 0;
    wait->ns = 0;
  }
  const __u32 mask = sampling_mask;
  if (mask && (bpf_get_prandom_u32() & mask)) return;
  struct run_queue_counts *counts = counts_of(bpf_get_current_cgroup_id());
  if (!counts) return count_lost();
  const __u64 weight = (__u64)mask + 1;
  if (could_go_on) counts->involuntary += weight;
  else counts->voluntary += weight;
  if (waited_ns) add_waits(counts, weight * waited_ns, weight);
}

SEC("tracepoint/sched/sched_switch")
int count_switch(struct switched *event) {
  const __u64 now_ns = bpf_ktime_get_ns();
  const __s32 next = event->next_pid, prev = event->prev_pid;
  struct wait *wait = next ? bpf_map_lookup_elem(&waits, &next) : 0;
  if (wait && wait->since_ns) {
    wait->ns = now_ns - wait->since_ns;
    wait->since_ns = 0;
  }
  if (prev) end_run(prev, event->prev_state == RUNNING || event->prev_state == PREEMPTED, now_ns);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
