// Keeps what this process uses in memory, for one that must act when memory is short: code that was
// evicted would have to come from a disk that everybody waits for.
#pragma once

#include "base/result.h"

namespace cgphase {

// Every page of this process stays in memory once it was touched, those of later mappings and
// threads too (mlockall(2) with MCL_ONFAULT); a fork or exec ends that for the child. Not within a
// bound, for there a later mapping would fail: RLIMIT_MEMLOCK is raised to have none. Errors:
// denied (it takes CAP_IPC_LOCK, CAP_SYS_RESOURCE or LimitMEMLOCK=infinity; all stays as it was),
// io.
Status lock_memory();

}  // namespace cgphase
