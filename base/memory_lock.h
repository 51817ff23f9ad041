// Locks a process into memory, because it must act when memory is short. Evicted code would have to
// be read from a disk that every process waits for.
#pragma once

#include "base/result.h"

namespace cgphase {

// Locks every page of this process once it was touched, also pages of later mappings and threads
// (mlockall(2) with MCL_ONFAULT). A child of fork or exec is not locked. RLIMIT_MEMLOCK is raised
// to unlimited, because a later mapping would fail at a limit. Errors: denied (CAP_IPC_LOCK,
// CAP_SYS_RESOURCE or LimitMEMLOCK=infinity is needed; nothing is changed), io.
Status lock_memory();

}  // namespace cgphase
