#include "lab/replay/assertion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

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
  constexpr std::string_view kSafety = "+rails";
  const std::size_t at = std::min(text.find('@'), text.size());
  std::string_view name = text.substr(0, at);
  const bool safety = name.ends_with(kSafety);
  if (safety) name.remove_suffix(kSafety.size());
  const Result<PolicySpec> policy = parse_policy_spec(name);
  const std::optional<double> margin =
      at < text.size() ? parse_double(text.substr(at + 1)) : std::nullopt;
  if (!policy || (at < text.size() && !margin)) return std::string(text);
  return to_string(*policy) + (safety ? kSafety.data() : "") +
         (margin ? fmt::format("@{:g}", *margin) : "");
}

// Recursive descent over the rest of the text. The first complaint ends it.
class AssertionParser {
 public:
  AssertionParser(std::string_view text, std::span<const std::string> policies,
                  const MeasureValues& values)
      : whole_(text), rest_(text), policies_(policies), values_(values) {}

  Result<AssertionReport> run() {
    AssertionReport report{std::string(whole_), false, {}, {}};
    if (whole_.size() > kMostAssertionBytes)
      return failure(ErrorKind::invalid, fmt::format("longer than {} bytes", kMostAssertionBytes));
    bool (*holds)(double, double) = nullptr;
    if (sum(report.left, 0) && comparison(holds))
      if (sum(report.right, 0) && !at_end()) complain("expected an operator");
    if (!error_.empty()) return failure(ErrorKind::invalid, error_);
    for (Value* side : {&report.left, &report.right})
      if (*side && !std::isfinite(**side)) side->reset();
    report.holds = report.left && report.right && holds(*report.left, *report.right);
    return report;
  }

 private:
  using Value = std::optional<double>;

  bool complain(const std::string& what) {
    const std::string_view at = unknown_word(rest_);
    if (error_.empty())
      error_ = fmt::format("\"{}\": {}", escape_name(whole_),
                           at.empty() && rest_.empty()
                               ? what + " at the end"
                               : fmt::format("{} before \"{}\"", what, escape_name(rest_)));
    return false;
  }

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

  bool comparison(bool (*&holds)(double, double)) {
    using Pair = std::pair<std::string_view, bool (*)(double, double)>;
    static constexpr Pair kSigns[] = {{"<=", [](double a, double b) { return a <= b; }},
                                      {">=", [](double a, double b) { return a >= b; }},
                                      {"==", [](double a, double b) { return a == b; }},
                                      {"!=", [](double a, double b) { return a != b; }},
                                      {"<", [](double a, double b) { return a < b; }},
                                      {">", [](double a, double b) { return a > b; }}};
    for (const auto& [sign, meaning] : kSigns) {
      if (!take(sign)) continue;
      holds = meaning;
      return true;
    }
    return complain("expected one of < <= > >= == !=");
  }

  bool sum(Value& out, int depth) {
    if (!product(out, depth)) return false;
    for (;;) {
      const bool add = take("+");
      if (!add && !take("-")) return true;
      Value right;
      if (!product(right, depth)) return false;
      out = out && right ? Value(add ? *out + *right : *out - *right) : std::nullopt;
    }
  }

  bool product(Value& out, int depth) {
    if (!factor(out, depth)) return false;
    for (;;) {
      const bool times = take("*");
      if (!times && !take("/")) return true;
      Value right;
      if (!factor(right, depth)) return false;
      out = out && right ? Value(times ? *out * *right : *out / *right) : std::nullopt;
    }
  }

  bool factor(Value& out, int depth) {
    if (depth >= kMostAssertionDepth)
      return complain(fmt::format("more than {} parentheses and signs in each other",
                                  kMostAssertionDepth));
    if (take("-")) {
      if (!factor(out, depth + 1)) return false;
      if (out) out = -*out;
      return true;
    }
    if (take("(")) return sum(out, depth + 1) && (take(")") || complain("expected a )"));
    skip_blanks();
    if (rest_.empty()) return complain("expected a number or POLICY.RESOURCE.MEASURE");
    if (kDigits.contains(rest_.front()) || rest_.front() == '.') return number(out);
    return value(out);
  }

  // Digits, a point and an exponent, then perhaps a percent sign.
  bool number(Value& out) {
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
    out = percent ? *parsed / 100 : *parsed;
    return true;
  }

  bool value(Value& out) {
    MeasureName name;
    if (!policy(name.policy) || !resource(name.resource)) return false;
    name.by_resource_hour = take_part(kByResourceHour);
    if (!measure(name.measure)) return false;
    out = values_(name);
    return true;
  }

  // The policy in front of the next resource; its parameters may be in any order.
  bool canonical_match(std::size_t& out) {
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
    if (canonical_match(out)) return true;
    if (lacks_rails()) {
      error_ = fmt::format("\"{}\": no policy in this replay has rails: name phase or "
                           "proactive, and leave out --bare",
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
    for (const Resource known : {Resource::cpu, Resource::memory}) {
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
  const MeasureValues& values_;
  std::string error_;
};

}  // namespace

Result<AssertionReport> check_assertion(std::string_view text,
                                        std::span<const std::string> policies,
                                        const MeasureValues& values) {
  return AssertionParser(text, policies, values).run();
}

}  // namespace cgphase
