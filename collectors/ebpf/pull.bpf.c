// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The walk of the kernel's own cgroup iterator (pull.bpf.h).
#include "collectors/ebpf/pull.bpf.h"

struct bpf_iter__cgroup {
  struct bpf_iter_meta *meta;
  struct cgroup *cgroup;
} KERNEL_TYPE;

SEC("iter/cgroup")
int pull_each(struct bpf_iter__cgroup *context) {
  const struct cgroup *cgroup = context->cgroup;
  if (cgroup) take(cgroup);
  else
    begin();  // called at the end, for the next walk
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
