// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Network traffic by cgroup. Attached once to the root of cgroup v2 it sees every packet of every
// socket below, in whatever network namespace, once each way. Nothing here asks where the kernel's
// types lie (CO-RE): this object loads where no type information is.
#define RECORD network_counts
#include "collectors/ebpf/hot_cgroups.bpf.h"

#include <bpf/bpf_helpers.h>

// A loopback device is the first of its network namespace.
#define LOOPBACK_IFINDEX 1
#define PASS 1

__u32 sampling_mask = 0;  // 2^n - 1: about one packet of 2^n is counted, as that many

// Not atomic, which would cost as much as all the rest. On one processor packets are sent by tasks
// and, between two instructions of theirs, by interrupts: one of some millions that a cgroup sends
// both ways at once may go uncounted.
static __always_inline void add(__u64 *bytes, __u64 *packets, const struct __sk_buff *skb,
                                __u32 mask) {
  *bytes += (__u64)skb->len * (mask + 1);
  *packets += (__u64)mask + 1;
}

SEC("cgroup_skb/egress")
int count_transmit(struct __sk_buff *skb) {
  const __u32 mask = sampling_mask;
  if (mask && (bpf_get_prandom_u32() & mask)) return PASS;
  struct network_counts *counts = counts_of(bpf_skb_cgroup_id(skb));
  if (!counts) {
    count_lost();
    return PASS;
  }
  if (skb->ifindex == LOOPBACK_IFINDEX) {
    add(&counts->loopback_bytes, &counts->loopback_packets, skb, mask);
    // Or the compiler makes one of both, at an offset that varies: before Linux 6.12 that takes
    // CAP_PERFMON.
    asm volatile("");
  } else {
    add(&counts->transmit_bytes, &counts->transmit_packets, skb, mask);
  }
  return PASS;
}

SEC("cgroup_skb/ingress")
int count_receive(struct __sk_buff *skb) {
  if (skb->ifindex == LOOPBACK_IFINDEX) return PASS;
  const __u32 mask = sampling_mask;
  if (mask && (bpf_get_prandom_u32() & mask)) return PASS;
  struct network_counts *counts = counts_of(bpf_skb_cgroup_id(skb));
  if (counts) add(&counts->receive_bytes, &counts->receive_packets, skb, mask);
  else count_lost();
  return PASS;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
