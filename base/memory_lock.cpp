#include "base/memory_lock.h"

#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace cgphase {
namespace {

// With it the kernel looks at no bound.
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
  if (!has_ipc_lock() && !is_unbounded())
    return failure(ErrorKind::denied,
                   "what this process needs may be evicted when memory is short, and it would act "
                   "late: run it with LimitMEMLOCK=infinity or CAP_IPC_LOCK");
  if (::mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT) == 0) return {};
  return errno_failure("mlockall", errno);
}

}  // namespace cgphase
