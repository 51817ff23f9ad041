// The terms of a container, from its labels and the configuration.
#include <doctest/doctest.h>

#include "agent/config/config.h"

using namespace cgphase;

namespace {

ContainerInfo container_with(std::map<std::string, std::string> labels) {
  ContainerInfo container;
  container.name = "train-7";
  container.image = "registry/train:1";
  container.path = "/system.slice/docker-0a.scope";
  container.labels = std::move(labels);
  return container;
}

}  // namespace

TEST_CASE("terms come from labels, and the configuration counts more") {
  Config config;
  const ContainerInfo container = container_with({{"cgphase.class", "inference"},
                                                  {"cgphase.cpu.min", "0.5"},
                                                  {"cgphase.memory.max", "8G"},
                                                  {"cgphase.freeze", "20s"},
                                                  {"cgphase.sleep", "on"},
                                                  {"cgphase.memory.min", "1G"}});
  const Terms labels{.service_class = ServiceClass::critical, .cpu_min = Cores{0.5},
                     .memory_min = Bytes{kGiB}, .memory_max = Bytes{8 * kGiB},
                     .sleep = true, .freeze_longest = std::chrono::seconds(20)};
  CHECK(terms_for(config, container).terms == labels);
  for (const char* pattern : {"train-*", "registry/*", "/system.slice/docker-??.scope"}) {
    config.containers = {"* cpu.min=3", std::string(pattern) + " class=batch cpu.min=2 cpu.max=4",
                         "other class=standard"};
    CHECK(terms_for(config, container).terms ==
          Terms{ServiceClass::batch, Cores{2}, Bytes{kGiB}, Cores{4}, Bytes{8 * kGiB},
                true, std::chrono::seconds(20)});
  }
}

TEST_CASE("a label of no known value is ignored and named") {
  const FoundTerms found =
      terms_for({}, container_with({{"cgphase.class", "gold"}, {"cgphase.memory.min", "1G"}}));
  CHECK(found.terms == Terms{.memory_min = Bytes{kGiB}});
  REQUIRE(found.ignored.size() == 1);
  CHECK(found.ignored[0].starts_with("cgphase.class=gold: must be critical"));
}
