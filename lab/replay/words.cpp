#include "lab/replay/words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parse.h"
#include "base/text.h"

namespace cgphase {
namespace {

std::vector<std::string> pieces_of(std::string_view text) {
  std::vector<std::string> pieces(1);
  for (const char c : text) {
    if (c == ',')
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  return pieces;
}

std::unexpected<Error> refuse(std::string_view text, const std::string& why) {
  return failure(ErrorKind::invalid, escape_name(text) + ": " + why);
}

}  // namespace

Result<double> parse_share(std::string_view text, double least, double most) {
  const std::optional<double> share = parse_share(text);
  if (share && *share >= least && *share <= most) return *share;
  return refuse(text, fmt::format("must be a share from {:g} % to {:g} %, such as {:g} %",
                                  100 * least, 100 * most, 100 * std::max(least, most / 10)));
}

Result<double> parse_seconds(std::string_view text, double least, double most) {
  const auto ns = parse_duration_ns(text);
  const double seconds = ns ? static_cast<double>(*ns) / 1e9 : -1;
  if (ns && seconds >= least && seconds <= most) return seconds;
  return refuse(text, fmt::format("must be a duration from {} to {}, such as 10m",
                                  human_duration(least), human_duration(most)));
}

Result<std::vector<double>> parse_margins(std::string_view text) {
  std::vector<double> margins;
  for (const std::string& piece : pieces_of(text)) {
    const std::string percent = piece.ends_with('%') ? piece : piece + '%';
    const std::optional<double> margin = parse_share(percent);
    if (!margin || *margin < kLeastMargin || *margin > kMostMargin)
      return refuse(text, fmt::format("must be percents from {:g} to {:g}, such as 0,5,10",
                                      100 * kLeastMargin, 100 * kMostMargin));
    if (std::ranges::find(margins, *margin) == margins.end()) margins.push_back(*margin);
  }
  if (margins.size() > kMostMargins)
    return refuse(text, fmt::format("more than {} margins", kMostMargins));
  return margins;
}

Result<std::vector<PolicySpec>> parse_policies(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& piece : pieces_of(text)) {
    // KEY=NUMBER belongs to the policy before it.
    const bool parameter = !words.empty() && words.back().find(':') != std::string::npos &&
                           piece.find(':') == std::string::npos &&
                           piece.find('=') != std::string::npos;
    if (parameter)
      words.back() += "," + piece;
    else
      words.push_back(piece);
  }
  if (words.size() > kMostPolicies)
    return refuse(text.substr(0, 40), fmt::format("more than {} policies", kMostPolicies));
  std::vector<PolicySpec> policies;
  for (const std::string& word : words) {
    Result<PolicySpec> policy = parse_policy_spec(trim(word));
    if (!policy) return std::unexpected(policy.error());
    policies.push_back(*std::move(policy));
  }
  return policies;
}

}  // namespace cgphase
