// How much of the host the containers may have together (docs/concepts.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace cgphase {

// What the budget does with containers without a memory limit: nothing, count their need, or also
// set a memory.max, so that none of them takes the memory of the others.
enum class UnlimitedRule : std::uint8_t { ignore, observe, guard };

struct BudgetConfig {
  double memory_ratio = 0.9;  // share of the host's memory for containers and all else that runs
  double cpu_ratio = 1;
  UnlimitedRule unlimited = UnlimitedRule::observe;
  friend bool operator==(const BudgetConfig&, const BudgetConfig&) = default;
};

constexpr const char* to_string(UnlimitedRule rule) {
  switch (rule) {
    case UnlimitedRule::ignore: return "ignore";
    case UnlimitedRule::observe: return "observe";
    case UnlimitedRule::guard: return "guard";
  }
  return "";
}

constexpr std::optional<UnlimitedRule> parse_unlimited_rule(std::string_view text) {
  for (const auto rule : {UnlimitedRule::ignore, UnlimitedRule::observe, UnlimitedRule::guard})
    if (text == to_string(rule)) return rule;
  return std::nullopt;
}

}  // namespace cgphase
