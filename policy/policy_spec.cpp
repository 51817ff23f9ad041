#include "policy/policy_spec.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "base/check.h"
#include "base/parse.h"
#include "base/text.h"
#include "policy/policy_entry.h"

namespace cgphase {
namespace {

std::unexpected<Error> refuse(std::string text) {
  return failure(ErrorKind::invalid, std::move(text));
}

// Splits `rest` at `separator` and returns the part before it, or all of it.
std::string_view cut(std::string_view& rest, char separator) {
  const auto at = rest.find(separator);
  const std::string_view part = rest.substr(0, at);
  rest = at == std::string_view::npos ? std::string_view{} : rest.substr(at + 1);
  return part;
}

std::string lacks(const PolicyEntry& entry, std::string_view parameter) {
  std::vector<std::string_view> names;
  for (const PolicyParameter& one : entry.parameters) names.push_back(one.name);
  std::string text = fmt::format("policy \"{}\" has no parameter \"{}\"", entry.name,
                                 escape_name(parameter));
  if (names.empty()) return text + "; it has none";
  const std::string_view near = nearest(parameter, names);
  return text + (near.empty() ? fmt::format("; it has {}", fmt::join(names, ", "))
                              : fmt::format("; did you mean \"{}\"?", near));
}

Status read_parameter(const PolicyEntry& entry, std::string_view text, PolicySpec& spec) {
  std::string_view value = text;
  const std::string_view name = cut(value, '=');
  const auto number = parse_double(value);
  if (name.size() == text.size() || name.empty())
    return refuse(fmt::format("policy \"{}\": \"{}\" is not KEY=NUMBER", entry.name,
                              escape_name(text)));
  if (!number && std::none_of(entry.parameters.begin(), entry.parameters.end(),
                              [&](const PolicyParameter& one) { return one.name == name; }))
    return refuse(lacks(entry, name));
  if (!number)
    return refuse(fmt::format("policy \"{}\": {} must be a number, not \"{}\"", entry.name, name,
                              escape_name(value)));
  if (Status good = check_parameter(entry, name, *number); !good) return good;
  if (!spec.parameters.emplace(name, *number).second)
    return refuse(fmt::format("policy \"{}\": {} is given twice", entry.name, name));
  return {};
}

}  // namespace

double PolicyValues::at(std::string_view name) const {
  if (const auto found = spec_->parameters.find(name); found != spec_->parameters.end())
    return found->second;
  const auto known = std::find_if(parameters_.begin(), parameters_.end(),
                                  [&](const PolicyParameter& one) { return one.name == name; });
  CHECK_INVARIANT(known != parameters_.end());
  return known->published;
}

Status check_parameter(const PolicyEntry& entry, std::string_view name, double value) {
  const auto found = std::find_if(entry.parameters.begin(), entry.parameters.end(),
                                  [&](const PolicyParameter& one) { return one.name == name; });
  if (found == entry.parameters.end()) return refuse(lacks(entry, name));
  const bool fits = value >= found->least && value <= found->most &&
                    (!found->whole || value == std::floor(value));
  if (fits) return {};
  return refuse(fmt::format("policy \"{}\": {} must be {} from {} to {}, not {}", entry.name, name,
                            found->whole ? "a whole number" : "a number", found->least,
                            found->most, value));
}

Result<PolicySpec> parse_policy_spec(std::string_view text) {
  if (text.size() > kMaxPolicySpecBytes)
    return refuse(fmt::format("a policy has at most {} bytes of text", kMaxPolicySpecBytes));
  std::string_view rest = text;
  const std::string_view name = cut(rest, ':');
  const auto entry = find_policy_entry(name);
  if (!entry) return std::unexpected(entry.error());
  PolicySpec spec{std::string(name), {}};
  if (name.size() == text.size()) return spec;
  do {
    const std::string_view parameter = cut(rest, ',');
    if (Status read = read_parameter(**entry, parameter, spec); !read)
      return std::unexpected(read.error());
  } while (!rest.empty());
  return text.back() == ',' ? refuse(fmt::format("policy \"{}\": nothing follows the last comma",
                                                 name))
                            : Result<PolicySpec>(spec);
}

std::string to_string(const PolicySpec& spec) {
  std::string text = spec.name;
  char separator = ':';
  for (const auto& [name, value] : spec.parameters) {
    text += fmt::format("{}{}={}", separator, name, value);
    separator = ',';
  }
  return text;
}

}  // namespace cgphase
