#include "collectors/ebpf/probe.h"

#include <bpf/libbpf.h>
#include <sys/stat.h>
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
// The inode of the machine's own pid namespace (PROC_PID_INIT_INO, since Linux 3.8).
constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;

void (*take_line)(const std::string&) = nullptr;

int print(libbpf_print_level, const char* format, va_list arguments) {
  if (take_line == nullptr) return 0;
  std::array<char, 1024> line;
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  if (length > 0) take_line(printable(trim(line.data())));
  return length;
}

bool in_first_pid_namespace() {
  struct stat status;
  return ::stat("/proc/self/ns/pid", &status) == 0 && status.st_ino == kFirstPidNamespace;
}

}  // namespace

void set_probe_log(void (*take)(const std::string& line)) { take_line = take; }

void listen_to_libbpf() { libbpf_set_print(print); }

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
                   "this process is in a pid namespace of its own, and the kernel tells pids of "
                   "the machine");
  return {};
}

std::string lockdown_refusal(std::string_view lockdown) {
  // Integrity, the mode below it, forbids what writes to the kernel: ours only read.
  if (!lockdown.contains("[confidentiality]")) return {};
  return "the kernel is locked down (confidentiality) and lets no BPF program read it; without "
         "lockdown=confidentiality on its command line it would";
}

std::unexpected<Error> probe_failure(std::string_view step, std::string_view name,
                                     int error_number) {
  auto error = errno_failure(std::string(step) + " the BPF program " + std::string(name),
                             error_number);
  const Result<std::string> lockdown = read_file(kLockdown, kLockdownBytes);
  const std::string refusal = lockdown ? lockdown_refusal(*lockdown) : std::string();
  if (!refusal.empty())
    return failure(ErrorKind::unsupported, error.error().text + "; " + refusal);
  if (error.error().kind != ErrorKind::denied) return error;
  return failure(ErrorKind::denied, error.error().text +
                                        "; it takes CAP_BPF, CAP_PERFMON (for network "
                                        "traffic CAP_NET_ADMIN too) and a kernel that lets "
                                        "its functions be traced");
}

}  // namespace cgphase
