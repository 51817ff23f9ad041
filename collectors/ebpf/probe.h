// Common code of all BPF programs: open, load and attach, or give the reason why not.
#pragma once

#include <bpf/libbpf.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

// Redirects libbpf's messages to set_probe_log() instead of standard error. Call it before the
// first use of libbpf.
void listen_to_libbpf();

// The version that is linked at run time: "libbpf 1.1".
std::string libbpf_release();

// Checks whether programs that read the kernel's own types can be loaded. Errors: unsupported (a
// kernel without type information).
Status check_types();

// Checks whether programs that report pids can work. Errors: unsupported (a kernel without type
// information, or an own pid namespace, where the kernel's pids mean nothing).
Status check_probes();

// The part of the kernel's lockdown state ("none integrity [confidentiality]") that forbids our BPF
// programs; empty if nothing is forbidden.
std::string lockdown_refusal(std::string_view lockdown);

// How a program reads the kernel. This decides which permissions loading needs in addition to
// CAP_BPF.
enum class ProbeKind {
  packets,  // CAP_NET_ADMIN
  typed,    // CAP_PERFMON
  copying,  // CAP_PERFMON, and a kernel that allows copies of its memory
  classic,  // CAP_PERFMON, tracefs, and permission to open performance events
};

// The permissions of this thread, and the restrictions of its kernel.
struct ProbeGrants {
  std::uint64_t capabilities = 0;    // effective: bit n for capability number n
  std::uint64_t lockable_bytes = 0;  // RLIMIT_MEMLOCK, RLIM_INFINITY for no limit
  std::string lockdown{};            // the kernel's lockdown state; empty if unknown
};

// The reason of a refusal, if it is known. The kernel's errno alone is often EINVAL for a lockdown,
// and EPERM for memory. Empty if unknown.
std::string refusal_reason(ProbeKind kind, int error_number, const ProbeGrants& grants);

// An error such as "loading the BPF program limit_writes: Operation not permitted (EPERM); this
// process lacks CAP_BPF".
std::unexpected<Error> probe_failure(std::string_view step, std::string_view name, ProbeKind kind,
                                     int error_number);

// `Skeleton` is the struct that bpftool generates (cmake/bpf.cmake).
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

// `prepare` sets constants and sizes of maps before loading. The programs run until the probe is
// destroyed or this process ends in any way.
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
