#include "policy/policy_spec.h"

#include <doctest/doctest.h>

#include <fmt/format.h>

#include "base/file.h"
#include "policy/policy_entry.h"

using namespace cgphase;

namespace {

std::string refusal_of(std::string_view text) {
  const auto spec = parse_policy_spec(text);
  REQUIRE_FALSE(spec.has_value());
  CHECK(spec.error().kind == ErrorKind::invalid);
  return spec.error().text;
}

// Whether the policy accepts `value` for `parameter`. For policies that are made of values alone.
bool makes(const PolicyEntry& entry, const PolicyParameter& parameter, double value) {
  const PolicySpec spec{std::string(entry.name), {{std::string(parameter.name), value}}};
  return check_parameter(entry, parameter.name, value).has_value() &&
         parse_policy_spec(to_string(spec)) == spec;
}

}  // namespace

TEST_CASE("a name alone means default parameters") {
  CHECK(parse_policy_spec("hold") == PolicySpec{"hold", {}});
}

TEST_CASE("parameters follow a colon, in any order") {
  const PolicySpec spec{"hold", {{"margin", 1.05}, {"window", 120}}};
  CHECK(parse_policy_spec("hold:window=120,margin=1.05") == spec);
  CHECK(to_string(spec) == "hold:margin=1.05,window=120");
}

TEST_CASE("an unknown policy is refused with the nearest name") {
  CHECK(refusal_of("slidng:window=60") ==
        "there is no policy \"slidng\"; did you mean \"sliding\"?");
  CHECK(refusal_of("").find("there are static, ") != std::string::npos);
}

TEST_CASE("an unknown parameter is refused with the nearest name") {
  CHECK(refusal_of("hold:windw=60") ==
        "policy \"hold\" has no parameter \"windw\"; did you mean \"window\"?");
  CHECK(refusal_of("hold:zzzzzzzzz=60") ==
        "policy \"hold\" has no parameter \"zzzzzzzzz\"; it has window, quantile, margin, drop, "
        "hold");
  CHECK(refusal_of("static:window=60") ==
        "policy \"static\" has no parameter \"window\"; it has none");
}

TEST_CASE("a parameter out of its bounds is refused") {
  CHECK(refusal_of("hold:window=9") ==
        "policy \"hold\": window must be a whole number from 10 to 3600, not 9");
  CHECK(refusal_of("hold:window=3601").find("3600") != std::string::npos);
  CHECK(refusal_of("hold:window=10.5").find("a whole number") != std::string::npos);
  CHECK(refusal_of("hold:quantile=1.01") ==
        "policy \"hold\": quantile must be a number from 0 to 1, not 1.01");
}

TEST_CASE("a value that is not a number is refused") {
  CHECK(refusal_of("hold:margin=lots") ==
        "policy \"hold\": margin must be a number, not \"lots\"");
  CHECK(refusal_of("hold:margin=nan").find("must be a number") != std::string::npos);
  CHECK(refusal_of("hold:margin=") == "policy \"hold\": margin must be a number, not \"\"");
}

TEST_CASE("a parameter given twice is refused") {
  CHECK(refusal_of("hold:margin=1.1,margin=1.1") == "policy \"hold\": margin is given twice");
}

TEST_CASE("text that is not a list of parameters is refused") {
  CHECK(refusal_of("hold:") == "policy \"hold\": \"\" is not KEY=NUMBER");
  CHECK(refusal_of("hold:window") == "policy \"hold\": \"window\" is not KEY=NUMBER");
  CHECK(refusal_of("hold:=5") == "policy \"hold\": \"=5\" is not KEY=NUMBER");
  CHECK(refusal_of("hold:window=60,") == "policy \"hold\": nothing follows the last comma");
  CHECK(refusal_of("hold:\x1b=1") ==
        "policy \"hold\" has no parameter \"\\x1b\"; it has window, quantile, margin, drop, hold");
}

TEST_CASE("a spec is at most 1000 bytes") {
  const std::string most = "hold:margin=1." + std::string(kMaxPolicySpecBytes - 14, '0');
  CHECK(parse_policy_spec(most).has_value());
  CHECK(refusal_of(most + "0") == "a policy has at most 1000 bytes of text");
}

TEST_CASE("every parameter accepts its minimum, maximum and default, and nothing beyond") {
  for (const PolicyEntry& entry : policy_entries())
    for (const PolicyParameter& parameter : entry.parameters) {
      CAPTURE(entry.name);
      CAPTURE(parameter.name);
      CHECK(makes(entry, parameter, parameter.published));
      CHECK(makes(entry, parameter, parameter.least));
      CHECK(makes(entry, parameter, parameter.most));
      CHECK_FALSE(makes(entry, parameter, parameter.least * 0.999 - 0.001));
      CHECK_FALSE(makes(entry, parameter, parameter.most * 1.001 + 0.001));
    }
}

TEST_CASE("docs/internals/policies.md lists every policy, parameter and default") {
  const auto text = read_file(CGPHASE_SOURCE_DIR "/docs/internals/policies.md", 1 << 20);
  REQUIRE(text.has_value());
  for (const PolicyEntry& entry : policy_entries()) {
    CAPTURE(entry.name);
    const std::size_t begin = text->find(fmt::format("\n| `{}` | ", entry.name));
    REQUIRE(begin != std::string::npos);
    const std::string row = text->substr(begin, text->find('\n', begin + 1) - begin);
    for (const PolicyParameter& one : entry.parameters)
      CHECK(row.contains(one.published < 1e6
                             ? fmt::format("`{}` {}", one.name, one.published)
                             : fmt::format("`{}` {:.0f}", one.name, one.published)));
  }
}

TEST_CASE("a spec that is not parsed from text has the same bounds") {
  CHECK_FALSE(make_policy(PolicySpec{"hold", {{"window", 5}}}).has_value());
  CHECK_FALSE(make_policy(PolicySpec{"hold", {{"breadth", 5}}}).has_value());
}
