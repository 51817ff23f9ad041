// Counts the allocations of this test program.
#pragma once

namespace cgphase {

// Calls of operator new so far, of all threads.
long allocation_count();

}  // namespace cgphase
