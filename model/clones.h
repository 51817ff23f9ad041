// Compiles one copy of a function per instruction set; the copy is chosen when the program starts.
// Write it before a function whose loops the compiler should vectorise. Each copy gives the same
// results: integers, or doubles that are each computed alone (-ffp-contract=off keeps multiply and
// add separate). Sanitizers run before the choice can be made, so that they get one copy.
#pragma once

#if defined(__x86_64__) && !defined(CGPHASE_SANITIZED)
#define CGPHASE_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CGPHASE_CLONES
#endif
