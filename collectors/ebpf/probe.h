// What all BPF programs of ours have in common: opened, loaded and attached, or a reason why not.
#pragma once

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

// libbpf's words go where set_probe_log() says, not to standard error. Before its first call.
void listen_to_libbpf();

// What is linked at run time: "libbpf 1.1".
std::string libbpf_release();

// Whether programs that read the kernel's own types can be loaded. Errors: unsupported (a kernel
// without type information).
Status check_types();

// Whether it makes sense to try what tells pids. Errors: unsupported (a kernel without type
// information, a pid namespace of our own, where the pids that the kernel tells mean nothing).
Status check_probes();

// What the kernel's own account of its lockdown ("none integrity [confidentiality]") forbids BPF
// programs; empty where it forbids them nothing that ours do.
std::string lockdown_refusal(std::string_view lockdown);

// How a program looks at the kernel, which decides what loading it takes beside CAP_BPF.
enum class ProbeKind {
  packets,  // CAP_NET_ADMIN
  typed,    // CAP_PERFMON
  copying,  // CAP_PERFMON, and a kernel whose memory may be copied
  classic,  // CAP_PERFMON, tracefs, and leave to open performance events
};

// What this thread is granted and what its kernel forbids.
struct ProbeGrants {
  std::uint64_t capabilities = 0;    // effective: bit n for the one of number n
  std::uint64_t lockable_bytes = 0;  // RLIMIT_MEMLOCK, RLIM_INFINITY for no limit
  std::string lockdown{};            // the kernel's own account; empty where it gives none
};

// What a refusal comes from, as far as it can be known: the kernel's error alone is often EINVAL
// for a lockdown, and EPERM for memory. Empty where nothing is known.
std::string refusal_reason(ProbeKind kind, int error_number, const ProbeGrants& grants);

// "loading the BPF program limit_writes: Operation not permitted (EPERM); this process lacks
// CAP_BPF".
std::unexpected<Error> probe_failure(std::string_view step, std::string_view name, ProbeKind kind,
                                     int error_number);

// Skeleton: the struct that bpftool generates (cmake/bpf.cmake).
template <class Skeleton>
struct DestroySkeleton {
  void operator()(Skeleton* skeleton) const { Skeleton::destroy(skeleton); }
};
struct FreeRing {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
using Ring = std::unique_ptr<ring_buffer, FreeRing>;

template <class Skeleton>
using Probe = std::unique_ptr<Skeleton, DestroySkeleton<Skeleton>>;

// `prepare` sets what must be set before loading: constants, sizes of maps. The programs run until
// the probe is destroyed, or this process ends, however it ends.
template <class Skeleton, class Prepare>
Result<Probe<Skeleton>> start_probe(std::string_view name, ProbeKind kind, Prepare prepare) {
  if (Status able = check_probes(); !able) return std::unexpected(able.error());
  Probe<Skeleton> probe(Skeleton::open());
  if (!probe) return probe_failure("opening", name, kind, errno);
  prepare(*probe);
  if (const int error = Skeleton::load(probe.get()))
    return probe_failure("loading", name, kind, -error);
  if (const int error = Skeleton::attach(probe.get()))
    return probe_failure("attaching", name, kind, -error);
  return probe;
}

}  // namespace cgphase
