// Parses the argument of --assert, a claim about a replay, such as
//
//   phase.cpu.samples_over <= 1 %
//   phase.memory.would_oom == 0
//   phase.cpu.alloc_vs_static < 0.9 * hold.cpu.alloc_vs_static
//
// CLAIM = SUM (< | <= | > | >= | == | !=) SUM. A SUM consists of numbers ("1.5", "5 %"), values
// POLICY.RESOURCE[.by_resource_hour].MEASURE, + - * / and parentheses, with the usual precedence.
// POLICY is everything in front of the resource, with its parameters in any order. Thus the minus
// in vpa-tuned and the point in hold:margin=1.05 are not ambiguous. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "lab/replay/measure_table.h"

namespace cgphase {

inline constexpr std::size_t kMostAssertionBytes = 4096;
inline constexpr int kMostAssertionDepth = 32;  // nested parentheses and signs

// A value that an assertion names. `policy` is an index into the known policies.
struct MeasureName {
  std::size_t policy = 0;
  Resource resource = Resource::cpu;
  bool by_resource_hour = false;
  const Measure* measure = nullptr;
};

class Assertion {
 public:
  // Absent: not measured or not defined.
  using Values = std::function<std::optional<double>(const MeasureName&)>;
  struct Outcome {
    bool holds = false;  // false if a side has no value
    std::optional<double> left, right;
  };

  // `policies` are the known names. Errors: invalid, one line that quotes the text.
  static Result<Assertion> parse(std::string_view text, std::span<const std::string> policies);

  Outcome check(const Values& values) const;
  const std::string& text() const { return text_; }

 private:
  friend class AssertionParser;
  enum class Comparison : std::uint8_t { less, at_most, more, at_least, equal, unequal };
  // Postfix: operands first.
  struct Step {
    enum class Kind : std::uint8_t { number, value, add, subtract, multiply, divide, negate };
    Kind kind = Kind::number;
    double number = 0;
    MeasureName value;
  };
  static std::optional<double> calculate(const std::vector<Step>& steps, const Values& values);
  static bool compare(double left, Comparison comparison, double right);

  std::string text_;
  std::vector<Step> left_, right_;
  Comparison comparison_ = Comparison::equal;
};

}  // namespace cgphase
