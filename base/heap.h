// The heap of a program that stays: what starting it took is given back (mallopt(3)).
#pragma once

namespace cgphase {

// At the start, before there is a second thread. Without it glibc takes what was once freed in one
// piece (the types of the kernel, 5 MB) for the usual size of a request, and keeps twice as much.
void keep_heap_small();

// What is free goes back to the kernel; some milliseconds.
void give_back_heap();

}  // namespace cgphase
