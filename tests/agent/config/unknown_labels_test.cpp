#include <doctest/doctest.h>

#include "agent/config/config.h"

using namespace cgphase;

TEST_CASE("no pattern enforces a container whose labels are unknown, a label does") {
  for (int kind = 0; kind < 3; ++kind) {
    Config config;
    config.mode = Mode::enforce;
    if (kind == 0) config.enforce.names = {"*"};
    if (kind == 1) config.enforce.images = {"*"};
    if (kind == 2) config.enforce.cgroups = {"*"};
    CAPTURE(kind);
    ContainerInfo container;
    CHECK(mode_for(config, container) == Mode::enforce);
    container.labels_unknown = "no file of it below /var/lib/docker";
    CHECK(mode_for(config, container) == Mode::advise);
    container.labels["cgphase.mode"] = "enforce";  // an annotation
    CHECK(mode_for(config, container) == Mode::enforce);
  }
}
