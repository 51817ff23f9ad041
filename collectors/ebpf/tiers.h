// Implements a signal in several ways (tiers). Each is tried, and the first that this kernel
// accepts is used. Kernel versions are no guide, because distributions backport code.
#pragma once

#include <cerrno>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collectors/ebpf/probe.h"

namespace cgphase {

// `choose` disables the programs and maps of the other tiers.
template <class Skeleton>
struct Tier {
  const char* name;  // "tp_btf"
  ProbeKind kind;
  void (*choose)(Skeleton& skeleton);
};

// Returns all tiers, or the one with that name.
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

// Collects why tiers were refused: "tp_btf: WHY; raw_tp: WHY". Equal reasons are merged.
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

// `prepare` is as in start_probe(). The error has the texts of all tiers in order, and the kind of
// the first.
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
