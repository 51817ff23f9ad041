// How many descriptors this process may use for containers. Each container needs about twenty.
#pragma once

#include <cstddef>

#include "base/fd.h"

namespace cgphase {

// The usual soft limit of 1024 is meant for programs that call select(), which this one does not.
void raise_descriptor_limit();

// Containers in the subtree of one owner, by a quarter of the descriptors of this process.
std::size_t containers_per_owner();

// True if `fd` is one of those that are reserved for the fast path, the history and clients.
bool is_reserved(const Fd& fd);

}  // namespace cgphase
