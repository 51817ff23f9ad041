#include "agent/holds.h"

#include <doctest/doctest.h>

#include <fstream>

#include "tests/agent/temporary_directory.h"

using namespace cgphase;

namespace {

ContainerInfo container(Engine engine, const std::string& name) {
  ContainerInfo info;
  info.engine = engine;
  info.name = name;
  return info;
}

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("holds: without a file there are none") {
  const TemporaryDirectory directory;
  const auto holds = Holds::load(directory / "holds.json");
  REQUIRE(holds);
  CHECK_FALSE(holds->host());
  CHECK_FALSE(holds->of(container(Engine::docker, "train")).paused);
}

TEST_CASE("holds: what was saved is found again by engine and name, hostile names too") {
  const TemporaryDirectory directory;
  const std::string hostile = "\x1b[31m\"\xff";
  Holds holds(directory / "holds.json");
  holds.set(container(Engine::docker, hostile), {.paused = true, .at_most = std::nullopt});
  holds.set(container(Engine::podman, "b"), {.paused = false, .at_most = Mode::advise});
  holds.set_host(Mode::observe);
  REQUIRE(holds.save());
  const auto again = Holds::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->of(container(Engine::docker, hostile)).paused);
  CHECK_FALSE(again->of(container(Engine::podman, hostile)).paused);
  CHECK(again->of(container(Engine::podman, "b")).at_most == Mode::advise);
  CHECK(again->host() == Mode::observe);
}

TEST_CASE("holds: what was lost holds the host until an administrator says more") {
  const TemporaryDirectory directory;
  Holds holds(directory / "holds.json");
  holds.lose();
  REQUIRE(holds.save());
  auto again = Holds::load(directory / "holds.json");
  REQUIRE(again);
  again->clear_modes();
  CHECK(again->host() == Mode::observe);
  again->end_loss();
  again->clear_modes();
  CHECK_FALSE(again->host());
  write(directory / "holds.json", R"({"schema": 1, "lost": 1})");
  CHECK_FALSE(Holds::load(directory / "holds.json"));
}

TEST_CASE("holds: clearing the modes leaves the pauses") {
  Holds holds;
  const ContainerInfo one = container(Engine::docker, "a"), other = container(Engine::docker, "b");
  holds.set(one, {.paused = true, .at_most = Mode::observe});
  holds.set(other, {.paused = false, .at_most = Mode::observe});
  holds.set_host(Mode::observe);
  holds.clear_modes();
  CHECK(holds.of(one).paused);
  CHECK_FALSE(holds.of(one).at_most);
  CHECK_FALSE(holds.of(other).at_most);
  CHECK_FALSE(holds.host());
}

TEST_CASE("holds: a damaged file is invalid, and named") {
  const TemporaryDirectory directory;
  const std::string path = directory / "holds.json";
  for (const char* text :
       {"", "{", "[]", "{\"schema\":2}", "{\"schema\":1,\"host\":\"enforced\"}",
        "{\"schema\":1,\"containers\":[]}", "{\"schema\":1,\"containers\":{\"docker:a\":1}}",
        "{\"schema\":1,\"containers\":{\"docker:a\":{\"paused\":\"yes\"}}}",
        "{\"schema\":1,\"containers\":{\"docker:a\":{\"mode\":3}}}"}) {
    INFO(text);
    write(path, text);
    const auto holds = Holds::load(path);
    REQUIRE_FALSE(holds);
    CHECK(holds.error().kind == ErrorKind::invalid);
    CHECK(holds.error().text.find(path) != std::string::npos);
  }
}

TEST_CASE("holds: where they cannot be saved, it is said") {
  Holds holds("/nonexistent/holds.json");
  holds.set_host(Mode::observe);
  CHECK_FALSE(holds.save());
}
