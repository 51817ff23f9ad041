#include "lab/replay/words.h"

#include <doctest/doctest.h>

using namespace cgphase;

namespace {

std::vector<std::string> policies(const char* text) {
  const auto specs = parse_policies(text);
  REQUIRE(specs);
  std::vector<std::string> out;
  for (const PolicySpec& spec : *specs) out.push_back(to_string(spec));
  return out;
}

}  // namespace

TEST_CASE("a share is a number or a percentage") {
  CHECK(parse_share("0.001", 0, 1) == 0.001);
  CHECK(parse_share("0.1%", 0, 1) == 0.1 / 100);
  CHECK(parse_share(" 95 % ", 0, 1) == 0.95);
}

TEST_CASE("a share out of bounds, or not a share, is refused with bounds and an example") {
  CHECK(parse_share("2", 0, 1).error().text ==
        "2: must be a share from 0 % to 100 %, such as 10 %");
  for (const char* text : {"", "%", "nan", "1e999", "-1%", "a"})
    CHECK_FALSE(parse_share(text, 0, 1));
}

TEST_CASE("durations have a unit and bounds") {
  CHECK(parse_seconds("10m", 1, 3600) == 600.0);
  CHECK(parse_seconds("100ms", 0.001, 1) == 0.1);
  for (const char* text : {"10", "0s", "2h", "", "-1s"}) CHECK_FALSE(parse_seconds(text, 1, 3600));
}

TEST_CASE("margins are percentages, distinct, with or without the sign") {
  CHECK(parse_margins("0,5,10") == std::vector<double>{0, 0.05, 0.1});
  CHECK(parse_margins("-30%, 5 %,5") == std::vector<double>{-0.3, 0.05});
  for (const char* text : {"", "5,", "-91", "1001", "x"}) CHECK_FALSE(parse_margins(text));
  CHECK(parse_margins("-90,1000"));
}

TEST_CASE("a comma ends a policy unless a parameter follows") {
  CHECK(policies("phase,hold") == std::vector<std::string>{"phase", "hold"});
  CHECK(policies("hold:margin=1.05,window=120,static") ==
        std::vector<std::string>{"hold:margin=1.05,window=120", "static"});
  CHECK(policies("hold:window=20,hold:window=30") ==
        std::vector<std::string>{"hold:window=20", "hold:window=30"});
}

TEST_CASE("unknown and empty policies are refused") {
  CHECK(parse_policies("hodl").error().text.find("did you mean \"hold\"") != std::string::npos);
  for (const char* text : {"", "phase,", ",phase", "phase,window=3", "hold:window"})
    CHECK_FALSE(parse_policies(text));
  std::string many = "static";
  for (std::size_t i = 1; i < kMostPolicies; ++i) many += ",static";
  CHECK(parse_policies(many));
  CHECK_FALSE(parse_policies(many + ",static"));
}
