#include "collectors/descriptor_room.h"

#include <sys/resource.h>

#include <algorithm>

#include "collectors/node_sampler.h"

namespace cgphase {
namespace {

// If the limit is low, an eighth of it.
constexpr unsigned kSpareForOthers = 256;

std::size_t descriptor_limit() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 0;
}

}  // namespace

void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

std::size_t containers_per_owner() {
  return std::clamp<std::size_t>(descriptor_limit() / 4 / kDescriptorsPerContainer, 1,
                                 kMaxContainersPerOwner);
}

bool is_reserved(const Fd& fd) {
  const std::size_t spare = std::min<std::size_t>(kSpareForOthers, descriptor_limit() / 8);
  return is_among_last(fd, static_cast<unsigned>(spare));
}

}  // namespace cgphase
