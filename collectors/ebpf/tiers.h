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
  ProbeKind kind;
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

// Why ways were refused: "tp_btf: WHY; raw_tp: WHY", and once what is the same of several.
class Refusals {
 public:
  void add(const char* tier, Error error) {
    if (groups_.empty()) kind_ = error.kind;
    if (!groups_.empty() && groups_.back().why == error.text)
      groups_.back().tiers += std::string(" and ") + tier;
    else
      groups_.push_back({tier, std::move(error.text)});
  }
  Error take() {
    Error all{.kind = kind_};
    for (const Group& group : groups_)
      all.text += (all.text.empty() ? "" : "; ") + group.tiers + ": " + group.why;
    return all;
  }

 private:
  struct Group {
    std::string tiers, why;
  };
  ErrorKind kind_ = ErrorKind::io;
  std::vector<Group> groups_;
};

// `prepare` as in start_probe(). Errors: of all ways, in their order; of the first's kind.
template <class Skeleton, class Prepare>
Result<Started<Skeleton>> start_first(std::string_view name,
                                      const std::vector<Tier<Skeleton>>& tiers, Prepare prepare) {
  const auto start = [&](const Tier<Skeleton>& tier) -> Result<Probe<Skeleton>> {
    Probe<Skeleton> probe(Skeleton::open());
    if (!probe) return probe_failure("opening", name, tier.kind, errno);
    tier.choose(*probe);
    prepare(*probe);
    if (const int error = Skeleton::load(probe.get()))
      return probe_failure("loading", name, tier.kind, -error);
    if (const int error = Skeleton::attach(probe.get()))
      return probe_failure("attaching", name, tier.kind, -error);
    return probe;
  };
  Refusals refusals;
  for (const Tier<Skeleton>& tier : tiers) {
    auto probe = start(tier);
    if (probe) return Started<Skeleton>{std::move(*probe), tier.name};
    refusals.add(tier.name, std::move(probe.error()));
  }
  return std::unexpected(refusals.take());
}

}  // namespace cgphase
