// Evaluates the argument of --assert, a claim about a replay, such as
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
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "lab/replay/measures.h"
#include "policy/decision.h"

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
// Absent: not measured or not defined.
using MeasureValues = std::function<std::optional<double>(const MeasureName&)>;

struct AssertionReport {
  std::string text;
  bool holds = false;  // false if a side has no value
  std::optional<double> left, right;
};

// Evaluates a claim. `policies` are the known names. Errors: invalid, one line that quotes the
// text; they do not depend on `values`.
Result<AssertionReport> check_assertion(std::string_view text,
                                        std::span<const std::string> policies,
                                        const MeasureValues& values);

}  // namespace cgphase
