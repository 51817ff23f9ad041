#include "lab/replay/assertion.h"

#include <doctest/doctest.h>

#include <map>

#include "tests/text.h"

using namespace cgphase;

namespace {

const std::vector<std::string> kPolicies = {"phase", "vpa", "vpa-tuned", "hold:margin=1.05",
                                            "phase@5", "hold:margin=1.1,window=120",
                                            "hold:margin=1.1,window=120@2.5", "hold:margin=1",
                                            "phase+rails@0"};

// Values by "POLICY RESOURCE MEASURE", with " by hour" appended.
using Known = std::map<std::string, double>;

AssertionReport check(const std::string& text, const Known& known = {}) {
  const auto report =
      check_assertion(text, kPolicies, [&](const MeasureName& name) -> std::optional<double> {
        std::string key = kPolicies[name.policy] + " " + to_string(name.resource) + " ";
        key += std::string(name.measure->name) + (name.by_resource_hour ? " by hour" : "");
        const auto found = known.find(key);
        return found == known.end() ? std::nullopt : std::optional(found->second);
      });
  REQUIRE_MESSAGE(report, text, ": ", (report ? "" : report.error().text));
  CHECK(report->text == text);
  return *report;
}

std::optional<double> nothing(const MeasureName&) { return std::nullopt; }

std::string refusal(const std::string& text) {
  const auto assertion = check_assertion(text, kPolicies, nothing);
  REQUIRE_MESSAGE(!assertion, text);
  CHECK(assertion.error().kind == ErrorKind::invalid);
  CHECK(assertion.error().text.find('\n') == std::string::npos);
  return assertion.error().text;
}

}  // namespace

TEST_CASE("each comparison means what it says") {
  CHECK(check("1 < 2").holds);
  CHECK_FALSE(check("2 < 2").holds);
  CHECK(check("2 <= 2").holds);
  CHECK(check("3 > 2").holds);
  CHECK(check("2 >= 2").holds);
  CHECK(check("2 == 2").holds);
  CHECK(check("2 != 3").holds);
  CHECK_FALSE(check("2 != 2").holds);
}

TEST_CASE(
    "products bind tighter than sums, parentheses tighter than both, equal ones from the left") {
  CHECK(check("1 + 2 * 3 == 7").holds);
  CHECK(check("(1 + 2) * 3 == 9").holds);
  CHECK(check("10 - 4 - 3 == 3").holds);
  CHECK(check("12 / 3 / 2 == 2").holds);
  CHECK(check("-2 * -(3) == 6").holds);
  CHECK(check("2--2==4").holds);
}

TEST_CASE("numbers may have points, exponents and percent signs") {
  CHECK(check("1e-2 == 1 %").holds);
  CHECK(check(".5 == 50%").holds);
  CHECK(check("2.5E+1 == 25").holds);
}

TEST_CASE("values are found by policy, resource and measure, and both sides are reported") {
  const Known known = {{"phase cpu samples_over", 0.02}, {"vpa memory would_oom", 3}};
  const auto failed = check("phase.cpu.samples_over <= 1%", known);
  CHECK_FALSE(failed.holds);
  CHECK(failed.left == 0.02);
  CHECK(failed.right == 0.01);
  CHECK(check("vpa.memory.would_oom==3", known).holds);
  CHECK(check("phase.cpu.by_resource_hour.slack > 0", {{"phase cpu slack by hour", 1}}).holds);
}

TEST_CASE("a minus in a name is not a subtraction, one after a measure is") {
  const Known known = {{"vpa-tuned cpu slack", 5}, {"vpa cpu slack", 2}};
  CHECK(check("vpa-tuned.cpu.slack == 5", known).holds);
  CHECK(check("vpa-tuned.cpu.slack-vpa.cpu.slack==3", known).holds);
}

TEST_CASE("names with parameters and with a margin are matched whole") {
  CHECK(check("hold:margin=1.05.cpu.slack == 4", {{"hold:margin=1.05 cpu slack", 4}}).holds);
  CHECK(check("phase@5.cpu.slack == 4", {{"phase@5 cpu slack", 4}}).holds);
}

TEST_CASE("parameters in any order and numbers in any form name the same policy") {
  const Known known = {{"hold:margin=1.1,window=120 cpu slack", 4},
                       {"hold:margin=1.1,window=120@2.5 cpu slack", 5},
                       {"hold:margin=1.05 memory would_oom", 6},
                       {"phase+rails@0 cpu slack", 7}};
  CHECK(check("hold:window=120,margin=1.1.cpu.slack == 4", known).holds);
  CHECK(check("hold:window=120.0,margin=1.10@2.50.cpu.slack == 5", known).holds);
  CHECK(check("hold:margin=1.050.memory.would_oom == 6", known).holds);
  CHECK(check("phase+rails@0.0.cpu.slack == 7", known).holds);
  CHECK(has(refusal("hold:window=60.cpu.slack < 1"), "no policy in this replay named"));
}

TEST_CASE("would_oom is also a measure of CPU") {
  CHECK(check("phase.cpu.would_oom == 0", {{"phase cpu would_oom", 0}}).holds);
}

TEST_CASE("a policy with rails in a replay without rails is refused with the option") {
  const std::vector<std::string> bare = {"phase", "phase@0"};
  for (const char* text : {"phase+rails.cpu.slack < 1", "1 < phase+rails@0.memory.slack"}) {
    const auto assertion = check_assertion(text, bare, nothing);
    REQUIRE_FALSE(assertion);
    CHECK(has(assertion.error().text, "no policy in this replay has rails: name phase"));
  }
  CHECK_FALSE(has(refusal("vpa+rails.cpu.slack < 1"), "--bare"));
}

TEST_CASE("a claim about an absent value never holds") {
  const auto outcome = check("phase.memory.would_oom != 7");
  CHECK_FALSE(outcome.holds);
  CHECK_FALSE(outcome.left.has_value());
  CHECK(outcome.right == 7.0);
  CHECK_FALSE(check("1 / 0 > 0").holds);
  CHECK_FALSE(check("0 / 0 != 1").holds);
}

TEST_CASE("unknown names are reported with the nearest") {
  CHECK(has(refusal("phas.cpu.slack < 1"), "\"phas\"; did you mean \"phase\"?"));
  CHECK(has(refusal("nobody.cpu.slack < 1"), "there are phase, vpa, vpa-tuned"));
  CHECK(has(refusal("phase.cpus.slack < 1"), "no resource \"cpus\"; did you mean \"cpu\"?"));
  CHECK(has(refusal("phase.cpu.slak < 1"), "no measure \"slak\"; did you mean \"slack\"?"));
}

TEST_CASE("a malformed claim is refused with the position") {
  CHECK(has(refusal(""), "a number or POLICY.RESOURCE.MEASURE at the end"));
  CHECK(has(refusal("1"), "one of < <= > >= == != at the end"));
  CHECK(has(refusal("1 = 2"), "one of < <= > >= == != before \"= 2\""));
  CHECK(has(refusal("1 < 2 < 3"), "an operator before \"< 3\""));
  CHECK(has(refusal("(1 < 2"), "expected a ) before \"< 2\""));
  CHECK(has(refusal("1 < 1.2.3"), "a number before \"1.2.3\""));
  CHECK(has(refusal("1 < %"), "before \"%\""));
  CHECK(has(refusal("1 <\x1b"), "\\x1b"));
}

TEST_CASE("depth and length are bounded") {
  const auto nested = [](int depth) {
    return std::string(static_cast<std::size_t>(depth), '(') + "1" +
           std::string(static_cast<std::size_t>(depth), ')') + " == 1";
  };
  CHECK(check(nested(kMostAssertionDepth - 1)).holds);
  CHECK(has(refusal(nested(kMostAssertionDepth)), "more than 32 parentheses"));
  const std::string longest = "1<" + std::string(kMostAssertionBytes - 3, ' ') + "2";
  CHECK(check(longest).holds);
  CHECK(has(refusal(longest + " "), "longer than 4096 bytes"));
}
