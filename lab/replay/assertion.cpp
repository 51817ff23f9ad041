#include "lab/replay/assertion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/parse.h"
#include "base/text.h"
#include "policy/policy_spec.h"

namespace cgphase {
namespace {

constexpr std::string_view kBlanks = " \t";
constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kByResourceHour = "by_resource_hour";

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Ends an unknown word, which is only quoted.
std::string_view unknown_word(std::string_view text) {
  return text.substr(0, std::min(text.find_first_of(" \t()<>=!*/+"), text.size()));
}

// Normalises a policy name: "hold:window=120,margin=1.050@5.0" becomes
// "hold:margin=1.05,window=120@5". Returns the text itself if it is not a policy.
std::string canonical_policy(std::string_view text) {
  constexpr std::string_view kRails = "+rails";
  const std::size_t at = std::min(text.find('@'), text.size());
  std::string_view name = text.substr(0, at);
  const bool rails = name.ends_with(kRails);
  if (rails) name.remove_suffix(kRails.size());
  const Result<PolicySpec> policy = parse_policy_spec(name);
  const std::optional<double> margin =
      at < text.size() ? parse_double(text.substr(at + 1)) : std::nullopt;
  if (!policy || (at < text.size() && !margin)) return std::string(text);
  return to_string(*policy) + (rails ? kRails.data() : "") +
         (margin ? fmt::format("@{:g}", *margin) : "");
}

}  // namespace

// Recursive descent over the rest of the text. The first complaint ends it.
class AssertionParser {
 public:
  AssertionParser(std::string_view text, std::span<const std::string> policies)
      : whole_(text), rest_(text), policies_(policies) {}

  Result<Assertion> parse() {
    Assertion assertion;
    assertion.text_ = whole_;
    if (whole_.size() > kMostAssertionBytes)
      return failure(ErrorKind::invalid, fmt::format("longer than {} bytes", kMostAssertionBytes));
    if (sum(assertion.left_, 0) && comparison(assertion.comparison_))
      if (sum(assertion.right_, 0) && !at_end()) complain("expected an operator");
    if (error_.empty()) return assertion;
    return failure(ErrorKind::invalid, error_);
  }

 private:
  using Step = Assertion::Step;
  using Steps = std::vector<Step>;

  bool complain(const std::string& what) {
    const std::string_view at = unknown_word(rest_);
    if (error_.empty())
      error_ = fmt::format("\"{}\": {}", escape_name(whole_),
                           at.empty() && rest_.empty()
                               ? what + " at the end"
                               : fmt::format("{} before \"{}\"", what, escape_name(rest_)));
    return false;
  }

  // Complains about an unknown name.
  bool unknown(std::string_view what, std::string_view word,
               const std::vector<std::string_view>& known) {
    const std::string_view near = nearest(word, known);
    error_ = fmt::format("\"{}\": there is no {} \"{}\"; {}", escape_name(whole_), what,
                         escape_name(word),
                         near.empty() ? fmt::format("there are {}", fmt::join(known, ", "))
                                      : fmt::format("did you mean \"{}\"?", near));
    return false;
  }

  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(kBlanks), rest_.size()));
  }

  bool at_end() {
    skip_blanks();
    return rest_.empty();
  }

  bool take(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  bool comparison(Assertion::Comparison& out) {
    using Comparison = Assertion::Comparison;
    constexpr std::pair<std::string_view, Comparison> kSigns[] = {
        {"<=", Comparison::at_most}, {">=", Comparison::at_least}, {"==", Comparison::equal},
        {"!=", Comparison::unequal}, {"<", Comparison::less},      {">", Comparison::more}};
    for (const auto& [sign, meaning] : kSigns) {
      if (!take(sign)) continue;
      out = meaning;
      return true;
    }
    return complain("expected one of < <= > >= == !=");
  }

  bool sum(Steps& out, int depth) {
    if (!product(out, depth)) return false;
    for (;;) {
      const bool add = take("+");
      if (!add && !take("-")) return true;
      if (!product(out, depth)) return false;
      out.push_back({add ? Step::Kind::add : Step::Kind::subtract, 0, {}});
    }
  }

  bool product(Steps& out, int depth) {
    if (!factor(out, depth)) return false;
    for (;;) {
      const bool times = take("*");
      if (!times && !take("/")) return true;
      if (!factor(out, depth)) return false;
      out.push_back({times ? Step::Kind::multiply : Step::Kind::divide, 0, {}});
    }
  }

  bool factor(Steps& out, int depth) {
    if (depth >= kMostAssertionDepth)
      return complain(fmt::format("more than {} parentheses and signs in each other",
                                  kMostAssertionDepth));
    if (take("-")) {
      if (!factor(out, depth + 1)) return false;
      out.push_back({Step::Kind::negate, 0, {}});
      return true;
    }
    if (take("(")) return sum(out, depth + 1) && (take(")") || complain("expected a )"));
    skip_blanks();
    if (rest_.empty()) return complain("expected a number or POLICY.RESOURCE.MEASURE");
    if (kDigits.contains(rest_.front()) || rest_.front() == '.') return number(out);
    return value(out);
  }

  // Digits, a point and an exponent, then perhaps a percent sign.
  bool number(Steps& out) {
    std::size_t end = std::min(rest_.find_first_not_of("0123456789."), rest_.size());
    if (end < rest_.size() && (rest_[end] == 'e' || rest_[end] == 'E')) {
      ++end;
      if (end < rest_.size() && (rest_[end] == '-' || rest_[end] == '+')) ++end;
      end = std::min(rest_.find_first_not_of(kDigits, end), rest_.size());
    }
    const std::optional<double> parsed = parse_double(rest_.substr(0, end));
    if (!parsed) return complain("expected a number");
    rest_.remove_prefix(end);
    const bool percent = take("%");
    out.push_back({Step::Kind::number, percent ? *parsed / 100 : *parsed, {}});
    return true;
  }

  bool value(Steps& out) {
    Step step{Step::Kind::value, 0, {}};
    if (!policy(step.value.policy) || !resource(step.value.resource)) return false;
    if (take_part(kByResourceHour)) step.value.by_resource_hour = true;
    if (!measure(step.value.measure)) return false;
    out.push_back(step);
    return true;
  }

  // The policy in front of the next resource; its parameters may be in any order.
  bool policy_as_told(std::size_t& out) {
    const std::size_t end = std::min(rest_.find(".cpu."), rest_.find(".memory."));
    if (end == std::string_view::npos) return false;
    const auto found = std::ranges::find(policies_, canonical_policy(rest_.substr(0, end)));
    if (found == policies_.end()) return false;
    out = static_cast<std::size_t>(found - policies_.begin());
    rest_.remove_prefix(end + 1);
    return true;
  }

  // True if a policy with rails follows and no policy in this replay has rails.
  bool lacks_rails() const {
    const auto has_rails = [](std::string_view name) { return name.contains("+rails"); };
    const std::size_t end = std::min(rest_.find(".cpu."), rest_.find(".memory."));
    const std::string_view policy = rest_.substr(0, end);
    return end != std::string_view::npos && policy.find_first_of(kBlanks) == policy.npos &&
           has_rails(policy) && std::ranges::none_of(policies_, has_rails);
  }

  bool policy(std::size_t& out) {
    if (policy_as_told(out)) return true;
    if (lacks_rails()) {
      error_ = fmt::format("\"{}\": no policy in this replay has rails: give --rails",
                           escape_name(whole_));
      return false;
    }
    std::size_t longest = 0;
    for (std::size_t i = 0; i < policies_.size(); ++i) {
      const std::string& name = policies_[i];
      if (name.size() < longest || !rest_.starts_with(name + ".")) continue;
      longest = name.size() + 1;
      out = i;
    }
    if (longest == 0) {
      const std::string_view word = unknown_word(rest_);
      if (word.empty() || !is_letter(word.front()))
        return complain("expected a number or POLICY.RESOURCE.MEASURE");
      return unknown("policy in this replay named", word.substr(0, word.find('.')),
                     {policies_.begin(), policies_.end()});
    }
    rest_.remove_prefix(longest);
    return true;
  }

  // NAME and the point after it.
  bool take_part(std::string_view name) {
    if (!rest_.starts_with(name) || !rest_.substr(name.size()).starts_with('.')) return false;
    rest_.remove_prefix(name.size() + 1);
    return true;
  }

  bool resource(Resource& out) {
    for (const Resource known : kResources) {
      if (!take_part(to_string(known))) continue;
      out = known;
      return true;
    }
    const std::string_view word = unknown_word(rest_);
    return unknown("resource", word.substr(0, word.find('.')), {"cpu", "memory"});
  }

  bool measure(const Measure*& out) {
    std::size_t end = 0;
    while (end < rest_.size() && (is_letter(rest_[end]) || rest_[end] == '_')) ++end;
    out = find_measure(rest_.substr(0, end));
    std::vector<std::string_view> names;
    for (const Measure& known : all_measures()) names.push_back(known.name);
    if (out == nullptr) return unknown("measure", rest_.substr(0, end), names);
    rest_.remove_prefix(end);
    return true;
  }

  std::string_view whole_, rest_;
  std::span<const std::string> policies_;
  std::string error_;
};

Result<Assertion> Assertion::parse(std::string_view text, std::span<const std::string> policies) {
  return AssertionParser(text, policies).parse();
}

std::optional<double> Assertion::calculate(const std::vector<Step>& steps, const Values& values) {
  std::vector<double> stack;
  const auto pop = [&] {
    CHECK_INVARIANT(!stack.empty());
    const double top = stack.back();
    stack.pop_back();
    return top;
  };
  for (const Step& step : steps) {
    if (step.kind == Step::Kind::number) {
      stack.push_back(step.number);
      continue;
    }
    if (step.kind == Step::Kind::value) {
      const std::optional<double> value = values(step.value);
      if (!value) return std::nullopt;
      stack.push_back(*value);
      continue;
    }
    const double right = pop();
    switch (step.kind) {
      case Step::Kind::add: stack.push_back(pop() + right); break;
      case Step::Kind::subtract: stack.push_back(pop() - right); break;
      case Step::Kind::multiply: stack.push_back(pop() * right); break;
      case Step::Kind::divide: stack.push_back(pop() / right); break;
      default: stack.push_back(-right);
    }
  }
  const double result = pop();
  CHECK_INVARIANT(stack.empty());
  return std::isfinite(result) ? std::optional(result) : std::nullopt;
}

bool Assertion::compare(double left, Comparison comparison, double right) {
  switch (comparison) {
    case Comparison::less: return left < right;
    case Comparison::at_most: return left <= right;
    case Comparison::more: return left > right;
    case Comparison::at_least: return left >= right;
    case Comparison::equal: return left == right;
    case Comparison::unequal: return left != right;
  }
  return false;
}

Assertion::Outcome Assertion::check(const Values& values) const {
  Outcome outcome{false, calculate(left_, values), calculate(right_, values)};
  if (outcome.left && outcome.right)
    outcome.holds = compare(*outcome.left, comparison_, *outcome.right);
  return outcome;
}

}  // namespace cgphase
