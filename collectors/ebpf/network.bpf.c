// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Counts network traffic by cgroup. Attached once to the root of cgroup v2, it sees every packet of
// every socket below, in any network namespace, once per direction. It does not use the layout of
// kernel types (CO-RE), so that it loads without type information.
#define RECORD network_counts
#include "collectors/ebpf/hot_cgroups.bpf.h"

#include <bpf/bpf_helpers.h>

// A loopback device is the first of its network namespace.
#define LOOPBACK_IFINDEX 1
#define PASS 1

__u32 sampling_mask = 0;  // 2^n - 1: about one packet of 2^n is counted, with weight 2^n

// The addition is not atomic, because that would cost as much as all the rest. On one processor,
// tasks send packets, and interrupts send some between two instructions of a task. About one in
// some millions of packets that a cgroup sends both ways at once may be missed.
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
    // Without this, the compiler merges both branches with a variable offset. Before Linux 6.12
    // that needs CAP_PERFMON.
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
