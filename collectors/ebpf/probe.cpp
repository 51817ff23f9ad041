#include "collectors/ebpf/probe.h"

#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdarg>
#include <cstdio>

#include "base/file.h"
#include "base/parse.h"
#include "base/text.h"
#include "collectors/ebpf/probe_source.h"

namespace cgphase {
namespace {

constexpr const char* kTypes = "/sys/kernel/btf/vmlinux";
constexpr const char* kLockdown = "/sys/kernel/security/lockdown";
constexpr std::size_t kLockdownBytes = 256;
// The inode of the initial pid namespace (PROC_PID_INIT_INO, since Linux 3.8).
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;

void (*take_line)(const std::string&) = nullptr;

int print(libbpf_print_level, const char* format, va_list arguments) {
  if (take_line == nullptr) return 0;
  std::array<char, 1024> line;
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  if (length > 0) take_line(printable(trim(line.data())));
  return length;
}

std::uint64_t effective_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, sets) != 0) return 0;
  return sets[0].effective | static_cast<std::uint64_t>(sets[1].effective) << 32;
}

ProbeGrants grants_here() {
  ProbeGrants grants{.capabilities = effective_capabilities()};
  rlimit limit{};
  grants.lockable_bytes = ::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
  if (auto lockdown = read_file(kLockdown, kLockdownBytes)) grants.lockdown = std::move(*lockdown);
  return grants;
}

// "CAP_BPF and CAP_PERFMON"; empty if none is missing.
std::string missing_capabilities(ProbeKind kind, std::uint64_t ancestor_limits) {
  const auto has = [&](int capability) { return (ancestor_limits >> capability & 1U) != 0; };
  const bool traces = kind != ProbeKind::packets;
  std::string missing;
  const auto add = [&](const char* name) {
    missing += (missing.empty() ? "" : " and ") + std::string(name);
  };
  if (!has(CAP_BPF) && !has(CAP_SYS_ADMIN)) add("CAP_BPF");
  if (traces && !has(CAP_PERFMON) && !has(CAP_SYS_ADMIN)) add("CAP_PERFMON");
  if (!traces && !has(CAP_NET_ADMIN)) add("CAP_NET_ADMIN");
  return missing;
}

bool in_first_pid_namespace() {
  struct stat status;
  return ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kFirstPidNamespace;
}

}  // namespace

void set_probe_log(void (*take)(const std::string& line)) { take_line = take; }

void listen_to_libbpf() { libbpf_set_print(print); }

std::string libbpf_release() {
  return "libbpf " + std::to_string(libbpf_major_version()) + '.' +
         std::to_string(libbpf_minor_version());
}

Status check_types() {
  listen_to_libbpf();
  if (::access(kTypes, R_OK) == 0) return {};
  return failure(ErrorKind::unsupported,
                 "this kernel has no type information (CONFIG_DEBUG_INFO_BTF)");
}

Status check_probes() {
  if (Status types = check_types(); !types) return types;
  if (!in_first_pid_namespace())
    return failure(ErrorKind::unsupported,
                   "this process is in a pid namespace of its own, and the kernel reports pids "
                   "of the machine");
  return {};
}

std::string lockdown_refusal(std::string_view lockdown) {
  // The integrity mode forbids only writes to the kernel. Our programs only read.
  if (!lockdown.contains("[confidentiality]")) return {};
  return "the kernel is locked down (confidentiality) and lets no BPF program read it; without "
         "lockdown=confidentiality on its command line it would";
}

std::string refusal_reason(ProbeKind kind, int error_number, const ProbeGrants& grants) {
  const bool denied = kind_of_errno(error_number) == ErrorKind::denied;
  const std::string missing = missing_capabilities(kind, grants.capabilities);
  if (denied && !missing.empty()) return "this process lacks " + missing;
  if (kind == ProbeKind::copying)
    if (std::string refusal = lockdown_refusal(grants.lockdown); !refusal.empty()) return refusal;
  if (kind == ProbeKind::classic && denied)
    return "tracepoints take CAP_SYS_ADMIN, or a kernel.perf_event_paranoid of 2 at most";
  if (kind == ProbeKind::classic && error_number == ENOENT)
    return "tracefs must be mounted at /sys/kernel/tracing, and the kernel not locked down";
  if (kind == ProbeKind::classic && error_number == EINVAL)
    return "the kernel must be built to run programs at tracepoints (CONFIG_BPF_EVENTS)";
  if (!denied) return {};
  std::string reason = "it takes CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN in the machine's own user "
                       "namespace, and a kernel that lets its functions be traced";
  // libbpf raises the limit if that is needed and allowed.
  if (grants.lockable_bytes != RLIM_INFINITY)
    reason += "; before Linux 5.11 also more memory that may be locked than " +
              human_bytes(static_cast<double>(grants.lockable_bytes)) + " (LimitMEMLOCK=infinity)";
  return reason;
}

std::unexpected<Error> probe_failure(std::string_view step, std::string_view name, ProbeKind kind,
                                     int error_number) {
  auto error = errno_failure(std::string(step) + " the BPF program " + std::string(name),
                             error_number);
  const std::string reason = refusal_reason(kind, error_number, grants_here());
  if (!reason.empty()) error.error().text += "; " + reason;
  return error;
}

}  // namespace cgphase
