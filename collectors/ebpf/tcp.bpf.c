// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Counts TCP retransmits by the cgroup in which their socket was opened. There are two programs for
// this, as in run_queue.bpf.c. A kernel before 5.15 stores the cgroup of a socket differently and
// accepts neither.
#define RECORD tcp_counts
#include "collectors/ebpf/counted_cgroups.bpf.h"
#include "collectors/ebpf/hot_cgroups.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

#include "collectors/ebpf/kernel_types.bpf.h"

__u32 sampling_mask = 0;  // 2^n - 1: about one of 2^n is counted, with weight 2^n

static __always_inline void add(__u64 cgroup) {
  const __u32 mask = sampling_mask;
  const __u64 weight = (__u64)mask + 1;
  if (mask && (bpf_get_prandom_u32() & mask)) return;
  struct tcp_counts *record = counts_of(cgroup);
  if (record)
    __sync_fetch_and_add(&record->retransmits, weight);
  else
    count_lost();
}

SEC("tp_btf/tcp_retransmit_skb")
int BPF_PROG(count_typed, struct sock *sk) {
  add(sk->sk_cgrp_data.cgroup->kn->id);
  return 0;
}

SEC("raw_tp/tcp_retransmit_skb")
int BPF_PROG(count_copied, struct sock *sk) {
  add(BPF_CORE_READ(sk, sk_cgrp_data.cgroup, kn, id));
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
