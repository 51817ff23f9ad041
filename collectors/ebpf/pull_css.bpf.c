// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// The walk over cgroups under RCU (pull.bpf.h).
#include "collectors/ebpf/pull.bpf.h"

__u64 root = 0;  // inode of the cgroup where the walk begins

struct bpf_iter_css {
  __u64 opaque[3];
} __attribute__((aligned(8)));
extern int bpf_iter_css_new(struct bpf_iter_css *it, struct cgroup_subsys_state *start,
                            unsigned int flags) __weak __ksym;
extern struct cgroup_subsys_state *bpf_iter_css_next(struct bpf_iter_css *it) __weak __ksym;
extern void bpf_iter_css_destroy(struct bpf_iter_css *it) __weak __ksym;
extern void bpf_rcu_read_lock(void) __weak __ksym;
extern void bpf_rcu_read_unlock(void) __weak __ksym;
extern struct cgroup *bpf_cgroup_from_id(__u64 id) __weak __ksym;
extern void bpf_cgroup_release(struct cgroup *cgroup) __weak __ksym;

#define DESCENDANTS_PRE 2  // enum bpf_cgroup_iter_order

SEC("syscall")
int pull_all(void *context) {
  struct cgroup *from = bpf_cgroup_from_id(root);
  if (!from) return 1;
  begin();
  bpf_rcu_read_lock();
  struct bpf_iter_css walk;
  bpf_iter_css_new(&walk, &from->self, DESCENDANTS_PRE);
  for (;;) {
    struct cgroup_subsys_state *state = bpf_iter_css_next(&walk);
    if (!state) break;
    take(state->cgroup);
  }
  bpf_iter_css_destroy(&walk);
  bpf_rcu_read_unlock();
  bpf_cgroup_release(from);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
