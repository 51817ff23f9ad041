// Parses options of `cgphase replay`. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "policy/policy_spec.h"

namespace cgphase {

// Parses "0.1 %" or "0.001", within [least, most]. Errors: invalid, without the option's name.
Result<double> parse_share(std::string_view text, double least, double most);

// Parses "10m", within [least, most] seconds. Errors: invalid.
Result<double> parse_seconds(std::string_view text, double least, double most);

// Parses "0,5,10" or "5%" (percent) into distinct shares.
inline constexpr double kLeastMargin = -0.9, kMostMargin = 10;
inline constexpr std::size_t kMostMargins = 64;
Result<std::vector<double>> parse_margins(std::string_view text);

// Parses a list of policies: "phase,hold:window=120,margin=1.05,static" are three. Errors: invalid.
inline constexpr std::size_t kMostPolicies = 64;
Result<std::vector<PolicySpec>> parse_policies(std::string_view text);

}  // namespace cgphase
