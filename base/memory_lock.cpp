#include "base/memory_lock.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "base/parse.h"

namespace cgphase {
namespace {

// The kernel checks the capability in the initial user namespace. The uid map is the only way to
// recognise that namespace.
bool in_first_namespace() {
  const auto map = read_file("/proc/self/uid_map", 256);
  std::string_view rest = map ? std::string_view(*map) : std::string_view(), word;
  for (const char* wanted : {"0", "0", "4294967295"})
    if (!next_word(rest, word) || word != wanted) return false;
  return true;
}

// With CAP_IPC_LOCK the kernel ignores RLIMIT_MEMLOCK.
bool has_ipc_lock() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3]{};
  return ::syscall(SYS_capget, &header, data) == 0 &&
         (data[0].effective & CAP_TO_MASK(CAP_IPC_LOCK)) != 0;
}

bool is_unbounded() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) == 0 && limit.rlim_cur == RLIM_INFINITY) return true;
  const rlimit unbounded{RLIM_INFINITY, RLIM_INFINITY};
  return ::setrlimit(RLIMIT_MEMLOCK, &unbounded) == 0;
}

}  // namespace

Status lock_memory() {
  if (!is_unbounded() && !(in_first_namespace() && has_ipc_lock()))
    return failure(ErrorKind::denied,
                   "memory cannot be locked: the kernel may evict this process when memory is "
                   "short, and it would act late: run it with LimitMEMLOCK=infinity or "
                   "CAP_IPC_LOCK");
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) return {};
  return errno_failure("mlockall", errno);
}

}  // namespace cgphase
