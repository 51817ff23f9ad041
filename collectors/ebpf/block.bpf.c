// SPDX-License-Identifier: Apache-2.0 OR MIT OR GPL-2.0-only
// Counts requests to block devices by the cgroup that caused them, including writeback. The kernel
// itself records when a request was made, so that only its completion is hooked. There are two
// programs for this, as in run_queue.bpf.c.
#include "collectors/ebpf/kernel_types.bpf.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#define RECORD block_counts
#include "collectors/ebpf/hot_cgroups.bpf.h"

__u32 sampling_mask = 0;  // 2^n - 1: about one of 2^n is counted, with weight 2^n

// `left` is the number of bytes of the request that were not done yet. The addition is atomic,
// because one completion may interrupt another. A request without data, such as a flush, has no
// cgroup.
static __always_inline void add(__u64 cgroup, __u64 start_ns, __u32 left, __u32 bytes) {
  const __u32 mask = sampling_mask;
  const __u64 weight = (__u64)mask + 1;
  if (!cgroup || (mask && (bpf_get_prandom_u32() & mask))) return;
  struct block_counts *record = counts_of(cgroup);
  if (!record) {
    count_lost();
    return;
  }
  __sync_fetch_and_add(&record->bytes, weight * bytes);
  if (bytes < left) return;  // not complete
  __sync_fetch_and_add(&record->requests, weight);
  const __u64 now_ns = bpf_ktime_get_ns();
  if (start_ns && now_ns > start_ns)
    __sync_fetch_and_add(&record->latency_ns, weight * (now_ns - start_ns));
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(count_typed, struct request *request, int error, unsigned int bytes) {
  struct bio *bio = request->bio;
  if (bio)
    add(bio->bi_blkg->blkcg->css.cgroup->kn->id, request->start_time_ns, request->__data_len,
        bytes);
  return 0;
}

SEC("raw_tp/block_rq_complete")
int BPF_PROG(count_copied, struct request *request, int error, unsigned int bytes) {
  struct bio *bio = BPF_CORE_READ(request, bio);
  if (bio)
    add(BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup, kn, id),
        BPF_CORE_READ(request, start_time_ns), BPF_CORE_READ(request, __data_len), bytes);
  return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
