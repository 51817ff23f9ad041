// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Reports which programs start in containers, and which of them read the container's limits. A
// start is reported twice: immediately, to the thread that restores the original, and once per tick
// to the observer that learns.
#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "collectors/ebpf/program_record.h"

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, PROGRAM_RING_BYTES);
} acts SEC(".maps");

// Inodes of containers in which a program has just started; wakes its reader.
struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, PROGRAM_START_RING_BYTES);
} starts SEC(".maps");

// Watched containers, by inode.
struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 4096);
  __type(key, __u64);
  __type(value, struct watched_container);
} watched SEC(".maps");

// Command lines that are known to read no limits.
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct program_key);
  __type(value, __u8);
} harmless SEC(".maps");

// Time of the last report of each action of a command line.
struct recent_act {
  struct program_key program;
  __u64 act;
};
struct {
  __uint(type, BPF_MAP_TYPE_LRU_HASH);
  __uint(max_entries, 4096);
  __type(key, struct recent_act);
  __type(value, __u64);
} recent SEC(".maps");

__u64 lost = 0;  // acts that found the ring full

#define SECOND_NS (1000 * 1000 * 1000ULL)
// A restored limit stays in force much longer than this.
#define WOKEN_AGAIN_NS (100 * 1000 * 1000ULL)

#define ARGUMENT_BYTES 128
union arguments {
  char text[ARGUMENT_BYTES];
  __u64 words[ARGUMENT_BYTES / sizeof(__u64)];
};

// FNV-1a over the beginning of the command line, and its length.
static __always_inline __u64 key_of(struct task_struct *task) {
  union arguments arguments = {};
  const unsigned long begin = BPF_CORE_READ(task, mm, arg_start);
  const unsigned long whole = BPF_CORE_READ(task, mm, arg_end) - begin;
  unsigned long length = whole;
  if (length > ARGUMENT_BYTES - 1) length = ARGUMENT_BYTES - 1;
  length &= ARGUMENT_BYTES - 1;
  if (!begin || bpf_probe_read_user(&arguments, length, (const void *)begin)) return 0;
  __u64 key = 14695981039346656037ULL ^ whole;
#pragma unroll
  for (unsigned int i = 0; i < sizeof(arguments.words) / sizeof(__u64); i++)
    key = (key ^ arguments.words[i]) * 1099511628211ULL;
  return key;
}

static __always_inline void put(__u64 container, __u64 key, struct task_struct *task,
                                enum program_act act) {
  struct program_record *record = bpf_ringbuf_reserve(&acts, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&lost, 1);
    return;
  }
  record->container = container;
  record->key = key;
  record->age_ns = bpf_ktime_get_boot_ns() - BPF_CORE_READ(task, group_leader, start_boottime);
  record->act = act;
  bpf_get_current_comm(record->command, sizeof(record->command));
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
}

// Reports the same action of the same command line once per second.
static __always_inline void report(struct watched_container *watch,
                                   const struct program_key *program, struct task_struct *task,
                                   enum program_act act) {
  const __u64 now = bpf_ktime_get_ns();
  const struct recent_act same = {*program, act};
  const __u64 *last = bpf_map_lookup_elem(&recent, &same);
  if (last && now - *last < SECOND_NS) return;
  bpf_map_update_elem(&recent, &same, &now, BPF_ANY);
  if (now - watch->second_ns >= SECOND_NS) {
    watch->second_ns = now;
    watch->acts = 0;
  }
  watch->acts++;
  if (watch->acts > PROGRAM_ACTS_IN_A_SECOND + 1) return;
  if (watch->acts > PROGRAM_ACTS_IN_A_SECOND) act = PROGRAM_DROPPED;
  put(program->container, program->key, task, act);
}

static __always_inline void wake(struct watched_container *watch, __u64 container) {
  const __u64 now = bpf_ktime_get_ns();
  if (now - watch->woken_ns < WOKEN_AGAIN_NS) return;
  __u64 *record = bpf_ringbuf_reserve(&starts, sizeof(*record), 0);
  if (!record) return;  // the reader is missing or late; the start is reported with the tick
  watch->woken_ns = now;
  *record = container;
  bpf_ringbuf_submit(record, BPF_RB_FORCE_WAKEUP);
}

// The inodes of a task's cgroup and its ancestors, from below; 0 beyond the root. The kernel's
// helper for them is not available to tracing programs before 5.16.
struct place {
  __u64 inodes[PROGRAM_CGROUP_DEPTH];
};
static __always_inline void find_place(struct task_struct *task, struct place *place) {
  struct cgroup *cgroup = BPF_CORE_READ(task, cgroups, dfl_cgrp);
  for (unsigned int i = 0; i < PROGRAM_CGROUP_DEPTH; i++) {
    place->inodes[i] = cgroup ? BPF_CORE_READ(cgroup, kn, id) : 0;
    struct cgroup_subsys_state *above = cgroup ? BPF_CORE_READ(cgroup, self.parent) : 0;
    cgroup = above ? BPF_CORE_READ(above, cgroup) : 0;
  }
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec) {
  struct task_struct *task = (void *)bpf_get_current_task();
  struct place place;
  find_place(task, &place);
  struct program_key program = {};
  for (unsigned int i = 0; i < PROGRAM_CGROUP_DEPTH; i++) {
    program.container = place.inodes[i];
    if (!program.container) break;
    struct watched_container *watch = bpf_map_lookup_elem(&watched, &program.container);
    if (!watch) continue;
    if (!program.key) program.key = key_of(task);
    if (program.key && bpf_map_lookup_elem(&harmless, &program)) continue;
    wake(watch, program.container);
    report(watch, &program, task, PROGRAM_STARTS);
  }
  return 0;
}

static __always_inline int act_of(const struct kernfs_node *file, enum program_act *act) {
  char name[16] = {};
  bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(file, name));
  const __u64 *words = (const __u64 *)name;
  static const union {
    char text[16];
    __u64 words[2];
  } cpu = {"cpu.max"}, memory = {"memory.high"};
  if (words[0] == cpu.words[0] && words[1] == cpu.words[1]) {
    *act = PROGRAM_READS_CPU;
    return 1;
  }
  *act = PROGRAM_READS_MEMORY;
  return words[0] == memory.words[0] && words[1] == memory.words[1];
}

// Every file of a cgroup is read through this kernel function. Only readers inside the cgroup are
// reported: others read the limits of somebody else.
SEC("fentry/cgroup_seqfile_show")
int BPF_PROG(on_read, struct seq_file *file) {
  struct kernfs_open_file *open = file->private;
  struct kernfs_node *node = BPF_CORE_READ(open, kn);
  struct task_struct *task = (void *)bpf_get_current_task();
  enum program_act act;
  if (!act_of(node, &act)) return 0;
  struct kernfs_node *directory;
  if (bpf_core_field_exists(node->parent))
    directory = BPF_CORE_READ(node, parent);
  else
    directory = BPF_CORE_READ((struct kernfs_node___guarded *)node, __parent);
  const __u64 read = BPF_CORE_READ(directory, id);
  struct place place;
  find_place(task, &place);
  int own = 0;
  for (unsigned int i = 0; i < PROGRAM_CGROUP_DEPTH; i++) own |= place.inodes[i] == read;
  if (!own) return 0;
  struct program_key program = {};
  for (unsigned int i = 0; i < PROGRAM_CGROUP_DEPTH; i++) {
    program.container = place.inodes[i];
    if (!program.container) break;
    struct watched_container *watch = bpf_map_lookup_elem(&watched, &program.container);
    if (!watch) continue;
    if (!program.key) program.key = key_of(task);
    report(watch, &program, task, act);
  }
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
