// What all BPF programs of ours have in common: opened, loaded and attached, or a reason why not.
#pragma once

#include <cerrno>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace cgphase {

// libbpf's words go where set_probe_log() says, not to standard error. Before its first call.
void listen_to_libbpf();

// Whether programs that read the kernel's own types can be loaded. Errors: unsupported (a kernel
// without type information).
Status check_types();

// Whether it makes sense to try what tells pids. Errors: unsupported (a kernel without type
// information, a pid namespace of our own, where the pids that the kernel tells mean nothing).
Status check_probes();

// What the kernel's own account of its lockdown ("none integrity [confidentiality]") forbids BPF
// programs; empty where it forbids them nothing that ours do.
std::string lockdown_refusal(std::string_view lockdown);

// "loading the BPF program limit_writes: Operation not permitted (EPERM)", and what is needed, as
// far as it can be known: the kernel's error alone is often EINVAL.
std::unexpected<Error> probe_failure(std::string_view step, std::string_view name,
                                     int error_number);

// Skeleton: the struct that bpftool generates (cmake/bpf.cmake).
template <class Skeleton>
struct DestroySkeleton {
  void operator()(Skeleton* skeleton) const { Skeleton::destroy(skeleton); }
};
template <class Skeleton>
using Probe = std::unique_ptr<Skeleton, DestroySkeleton<Skeleton>>;

// `prepare` sets what must be set before loading: constants, sizes of maps. The programs run until
// the probe is destroyed, or this process ends, however it ends.
template <class Skeleton, class Prepare>
Result<Probe<Skeleton>> start_probe(std::string_view name, Prepare prepare) {
  if (Status able = check_probes(); !able) return std::unexpected(able.error());
  Probe<Skeleton> probe(Skeleton::open());
  if (!probe) return probe_failure("opening", name, errno);
  prepare(*probe);
  if (const int error = Skeleton::load(probe.get())) return probe_failure("loading", name, -error);
  if (const int error = Skeleton::attach(probe.get()))
    return probe_failure("attaching", name, -error);
  return probe;
}

}  // namespace cgphase
