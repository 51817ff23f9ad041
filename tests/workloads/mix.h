// The workloads that run side by side, each with the limits of its user: about twice its largest
// need. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tests/workloads/run.h"

namespace cgphase::workloads {

inline constexpr std::size_t kMaxMixItems = 16;

struct StaticLimits {
  double cpu_cores = 0;
  std::uint64_t memory_bytes = 0;
};

struct MixItem {
  std::string name;  // of its cgroup and files; the kind unless given
  std::string kind;  // train, serve or batch
  RunOptions run;
  StaticLimits limits;
};

// "KIND[:KEY=VALUE[,KEY=VALUE...]]" with keys name, seed, size, seconds, cpu (cores), memory
// ("160M"). Missing values come from `defaults` and the kind: train 0.8 and 160M, serve 0.7 and
// 96M, batch 0.7 and 112M. If the size is larger than 1, the memory is multiplied by it. Errors:
// invalid, naming the item.
Result<MixItem> parse_mix_item(std::string_view text, const RunOptions& defaults);

// Parses all items. A name may occur once, and there are at most kMaxMixItems.
Result<std::vector<MixItem>> parse_mix(const std::vector<std::string>& texts,
                                       const RunOptions& defaults);

}  // namespace cgphase::workloads
