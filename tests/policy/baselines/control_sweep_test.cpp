#include "policy/baselines/control_sweep.h"

#include <doctest/doctest.h>

#include <set>

#include "policy/policy.h"

using namespace cgphase;

TEST_CASE("every control of the sweep can be created") {
  for (const PolicySpec& spec : control_sweep()) {
    CAPTURE(to_string(spec));
    CHECK((spec.name == "sliding" || spec.name == "hold"));
    CHECK(make_policy(spec).has_value());
  }
}

TEST_CASE("the sweep has a few hundred different controls, with the defaults first") {
  const auto specs = control_sweep();
  std::set<std::string> texts;
  for (const PolicySpec& spec : specs) texts.insert(to_string(spec));
  CHECK(texts.size() == specs.size());
  CHECK(specs.size() >= 200);
  CHECK(specs.size() <= 400);
  CHECK(to_string(specs[0]) == "sliding");
  CHECK(to_string(specs[1]) == "hold");
}
