// The same counted in several ways: each is tried alone, and the first that this kernel takes is
// used. Versions of kernels tell nothing: distributions move code between them.
#pragma once

#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/ebpf/probe.h"

namespace cgphase {

// `choose` switches off what the other ways need: programs and maps.
template <class Skeleton>
struct Tier {
  const char* name;  // "tp_btf"
  void (*choose)(Skeleton& skeleton);
};

// All, or the one of that name.
template <class Skeleton>
std::vector<Tier<Skeleton>> tiers_named(std::span<const Tier<Skeleton>> tiers,
                                        std::string_view name) {
  std::vector<Tier<Skeleton>> found;
  for (const Tier<Skeleton>& tier : tiers)
    if (name.empty() || name == tier.name) found.push_back(tier);
  return found;
}

template <class Skeleton>
struct Started {
  Probe<Skeleton> probe;
  const char* tier;
};

// `prepare` as in start_probe(). Errors: of all ways, in their order; of the first's kind.
template <class Skeleton, class Prepare>
Result<Started<Skeleton>> start_first(std::string_view name,
                                      const std::vector<Tier<Skeleton>>& tiers, Prepare prepare) {
  if (Status able = check_types(); !able) return std::unexpected(able.error());
  const auto start = [&](const Tier<Skeleton>& tier) -> Result<Probe<Skeleton>> {
    Probe<Skeleton> probe(Skeleton::open());
    if (!probe) return probe_failure("opening", name, errno);
    tier.choose(*probe);
    prepare(*probe);
    if (const int error = Skeleton::load(probe.get()))
      return probe_failure("loading", name, -error);
    if (const int error = Skeleton::attach(probe.get()))
      return probe_failure("attaching", name, -error);
    return probe;
  };
  Error refusal;
  for (const Tier<Skeleton>& tier : tiers) {
    auto probe = start(tier);
    if (probe) return Started<Skeleton>{std::move(*probe), tier.name};
    if (refusal.text.empty()) refusal.kind = probe.error().kind;
    refusal.text += (refusal.text.empty() ? "" : "; ") + std::string(tier.name) + ": " +
                    probe.error().text;
  }
  return std::unexpected(refusal);
}

}  // namespace cgphase
