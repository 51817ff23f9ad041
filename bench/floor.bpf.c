// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The least that a reader of all cgroups must read of each cgroup. That is its identity, whether it
// lives, and one number each of CPU time, stalls, memory and processes. It only keeps sums.
#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

struct bpf_iter__cgroup {
  struct bpf_iter_meta *meta;
  struct cgroup *cgroup;
} KERNEL_TYPE;

__u64 count = 0, ids = 0, usage_ns = 0, stall_ns = 0, memory_pages = 0, pids = 0;

static __always_inline void *state_of(const struct cgroup *cgroup, __u64 controller) {
  const char *at = (const char *)cgroup + bpf_core_field_offset(struct cgroup, subsys);
  return *(void *const *)(at + controller * sizeof(void *));
}

SEC("iter/cgroup")
int touch_each(struct bpf_iter__cgroup *context) {
  const struct cgroup *cgroup = context->cgroup;
  if (!cgroup || !(cgroup->self.flags & CSS_ONLINE)) return 0;
  count++;
  ids += cgroup->kn->id;
  usage_ns += cgroup->bstat.cputime.sum_exec_runtime;
  if (bpf_core_field_exists(struct cgroup, psi) && cgroup->psi) stall_ns += cgroup->psi->total[0];
  if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id)) {
    const struct mem_cgroup *memory =
        state_of(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id));
    if (memory) memory_pages += BPF_CORE_READ(memory, memory.usage.counter);
  }
  if (bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id)) {
    const struct pids_cgroup *group =
        state_of(cgroup, bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id));
    if (group) pids += BPF_CORE_READ(group, counter.counter);
  }
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
