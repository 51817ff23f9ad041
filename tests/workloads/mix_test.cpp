#include "tests/workloads/mix.h"

#include <doctest/doctest.h>

#include "base/units.h"

using namespace cgphase;
using namespace cgphase::workloads;

TEST_CASE("mix: a kind alone takes its user's limits and the defaults") {
  const auto item = parse_mix_item("train", {.seed = 9, .seconds = 30});
  REQUIRE(item.has_value());
  CHECK(item->name == "train");
  CHECK(item->run.seed == 9);
  CHECK(item->run.seconds == 30);
  CHECK(item->limits.cpu_cores == 0.8);
  CHECK(item->limits.memory_bytes == 160 * kMiB);
}

TEST_CASE("mix: every setting can be given") {
  const auto item =
      parse_mix_item("serve:name=web-1,seed=4,size=0.5,seconds=20,wait=9,cpu=0.25,memory=64M", {});
  REQUIRE(item.has_value());
  CHECK(item->name == "web-1");
  CHECK(item->kind == "serve");
  CHECK(item->run.seed == 4);
  CHECK(item->run.size == 0.5);
  CHECK(item->run.seconds == 20);
  CHECK(item->run.wait == 9);
  CHECK(item->limits.cpu_cores == 0.25);
  CHECK(item->limits.memory_bytes == 64 * kMiB);
}

TEST_CASE("mix: larger data gets a larger memory limit unless one is given") {
  CHECK(parse_mix_item("batch:size=2", {})->limits.memory_bytes == 224 * kMiB);
  CHECK(parse_mix_item("batch:size=0.5", {})->limits.memory_bytes == 112 * kMiB);
  CHECK(parse_mix_item("batch:memory=99M,size=2", {})->limits.memory_bytes == 99 * kMiB);
}

TEST_CASE("mix: an unknown setting is rejected by name") {
  for (const char* text :
       {"", "dance", "train:seed", "train:seed=x", "train:colour=red", "train:seconds=1",
        "train:seconds=100000", "train:cpu=0", "train:memory=1K", "train:name=", "train:name=a/b",
        "train:name=..", "train:size=17", "batch:wait=-1"}) {
    const auto item = parse_mix_item(text, {});
    REQUIRE_FALSE(item.has_value());
    CHECK(item.error().text.find(text) != std::string::npos);
  }
}

TEST_CASE("mix: a name may occur once") {
  CHECK(parse_mix({"train", "serve", "batch"}, {}).has_value());
  CHECK_FALSE(parse_mix({"train", "serve:name=train"}, {}).has_value());
}

TEST_CASE("mix: it has room for kMaxMixItems and not one more") {
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < kMaxMixItems; ++i)
    texts.push_back("train:name=t" + std::to_string(i));
  CHECK(parse_mix(texts, {}).has_value());
  texts.push_back("serve");
  CHECK_FALSE(parse_mix(texts, {}).has_value());
}
