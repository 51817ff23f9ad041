// Keeps the heap of the daemon small: memory that only start-up needed goes back to the kernel
// (mallopt(3)).
#pragma once

namespace cgphase {

// Call it at the start, before a second thread exists. Otherwise glibc adapts to one large block
// that was freed (the kernel's BTF, 5 MB) and keeps twice as much free memory.
void keep_heap_small();

// Returns free memory to the kernel. Takes some milliseconds.
void give_back_heap();

}  // namespace cgphase
