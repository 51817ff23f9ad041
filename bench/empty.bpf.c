// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Programs that do nothing, at the places of the counting ones. They show the cost of the call and
// its measurement.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

SEC("cgroup_skb/egress")
int empty_transmit(struct __sk_buff *skb) { return 1; }

SEC("cgroup_skb/ingress")
int empty_receive(struct __sk_buff *skb) { return 1; }

SEC("tp_btf/sched_switch")
int empty_typed(void *event) { return 0; }

SEC("raw_tp/sched_switch")
int empty_copied(void *event) { return 0; }

SEC("raw_tp/block_rq_complete")
int empty_completion(void *event) { return 0; }

SEC("raw_tp/tcp_retransmit_skb")
int empty_retransmit(void *event) { return 0; }

char LICENSE[] SEC("license") = "Dual MIT/GPL";
