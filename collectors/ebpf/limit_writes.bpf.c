// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Reports which processes write limit files. Each write by another process is put into a ring
// buffer before it happens. The ring is read once per tick and wakes no reader.
#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "collectors/ebpf/limit_write_record.h"

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, LIMIT_WRITE_RING_BYTES);
} writes SEC(".maps");

const volatile __u32 own_pid = 0;  // whose writes are not reported
__u64 lost = 0;                    // writes that found the ring full

// Compared as two words, so that it is filled with 0 to its end.
union file_name {
  char text[LIMIT_WRITE_FILE_BYTES];
  __u64 words[LIMIT_WRITE_FILE_BYTES / sizeof(__u64)];
};
static const union file_name limit_files[] = {
    {"memory.max"}, {"memory.high"}, {"cpu.max"}, {"cpu.max.burst"}};

static __always_inline int is_limit(const union file_name *name) {
  for (unsigned int i = 0; i < sizeof(limit_files) / sizeof(limit_files[0]); i++)
    if (name->words[0] == limit_files[i].words[0] && name->words[1] == limit_files[i].words[1])
      return 1;
  return 0;
}

static __always_inline __u64 directory_of(struct kernfs_node *file) {
  struct kernfs_node *directory;
  if (bpf_core_field_exists(file->parent))
    directory = file->parent;
  else
    directory = ((struct kernfs_node___guarded *)file)->__parent;
  return directory ? directory->id : 0;
}

// Every write to a file of a cgroup goes through this kernel function.
SEC("fentry/cgroup_file_write")
int BPF_PROG(on_cgroup_file_write, struct kernfs_open_file *of, char *buffer) {
  union file_name name = {};
  const __u32 pid = bpf_get_current_pid_tgid() >> 32;
  if (pid == own_pid) return 0;
  // A longer name is cut. It then matches none of ours.
  bpf_probe_read_kernel_str(name.text, sizeof(name.text), of->kn->name);
  if (!is_limit(&name)) return 0;
  struct limit_write_record *record = bpf_ringbuf_reserve(&writes, sizeof(*record), 0);
  if (!record) {
    __sync_fetch_and_add(&lost, 1);
    return 0;
  }
  __builtin_memset(record, 0, sizeof(*record));
  record->time_ns = bpf_ktime_get_ns();
  record->directory = directory_of(of->kn);
  record->writer_cgroup = bpf_get_current_cgroup_id();
  record->pid = pid;
  bpf_get_current_comm(record->command, sizeof(record->command));
  __builtin_memcpy(record->file, name.text, sizeof(record->file));
  bpf_probe_read_kernel_str(record->value, sizeof(record->value), buffer);
  bpf_ringbuf_submit(record, BPF_RB_NO_WAKEUP);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
