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

const WallTime kSince{std::chrono::seconds(1'700'000'000)};

ModeRequest lasting(Mode mode) { return {.lasting = AskedMode{mode, kSince}, .until_restart = {}}; }

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("holds: without a file there are none") {
  const TemporaryDirectory directory;
  const auto holds = Holds::load(directory / "holds.json");
  REQUIRE(holds);
  CHECK_FALSE(holds->host().in_force());
  CHECK_FALSE(holds->of(container(Engine::docker, "train")).paused);
}

TEST_CASE("holds: what was saved is found again by engine and name, hostile names too") {
  const TemporaryDirectory directory;
  const std::string hostile = "\x1b[31m\"\xff";
  Holds holds(directory / "holds.json");
  REQUIRE(holds.set(container(Engine::docker, hostile), {.paused = true, .mode = {}}));
  REQUIRE(holds.set(container(Engine::podman, "b"),
                    {.paused = false, .mode = lasting(Mode::enforce)}));
  holds.set_host(lasting(Mode::observe));
  REQUIRE(holds.save());
  const auto again = Holds::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->of(container(Engine::docker, hostile)).paused);
  CHECK_FALSE(again->of(container(Engine::podman, hostile)).paused);
  const auto mode = again->of(container(Engine::podman, "b")).mode.in_force();
  REQUIRE(mode);
  CHECK(mode->mode == Mode::enforce);
  CHECK(mode->since == kSince);
  CHECK(again->host().in_force()->mode == Mode::observe);
}

TEST_CASE("holds: a mode until the restart replaces the lasting one, and is not saved") {
  const TemporaryDirectory directory;
  const ContainerInfo one = container(Engine::docker, "a"), other = container(Engine::docker, "b");
  Holds holds(directory / "holds.json");
  ModeRequest both = lasting(Mode::observe);
  both.until_restart = AskedMode{Mode::enforce, kSince};
  REQUIRE(holds.set(one, {.paused = false, .mode = both}));
  const ModeRequest brief{.lasting = {}, .until_restart = both.until_restart};
  REQUIRE(holds.set(other, {.paused = false, .mode = brief}));
  holds.set_host(brief);
  CHECK(holds.of(one).mode.in_force()->mode == Mode::enforce);
  REQUIRE(holds.save());
  const auto again = Holds::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->of(one).mode.in_force()->mode == Mode::observe);
  CHECK_FALSE(again->of(other).mode.in_force());
  CHECK_FALSE(again->host().in_force());
}

TEST_CASE("holds: the file of the first version is read, without the time of its modes") {
  const TemporaryDirectory directory;
  write(directory / "holds.json",
        R"({"schema":1,"host":"observe","containers":{"docker:a":{"paused":true,"mode":null},)"
        R"("docker:b":{"paused":false,"mode":"advise"}}})");
  const auto holds = Holds::load(directory / "holds.json");
  REQUIRE(holds);
  CHECK(holds->host().in_force()->mode == Mode::observe);
  CHECK(holds->of(container(Engine::docker, "a")).paused);
  CHECK(holds->of(container(Engine::docker, "b")).mode.in_force()->mode == Mode::advise);
  CHECK(holds->of(container(Engine::docker, "b")).mode.in_force()->since == WallTime());
}

TEST_CASE("holds: what was lost is remembered until an administrator sets the host's mode") {
  const TemporaryDirectory directory;
  Holds holds(directory / "holds.json");
  holds.lose();
  REQUIRE(holds.save());
  auto again = Holds::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->lost());
  CHECK(again->host().in_force()->mode == Mode::observe);
  again->end_loss();
  CHECK_FALSE(again->lost());
  write(directory / "holds.json", R"({"schema": 1, "lost": 1})");
  CHECK_FALSE(Holds::load(directory / "holds.json"));
}

TEST_CASE("holds: modes of a name are forgotten for every engine, and pauses stay") {
  Holds holds;
  const ContainerInfo docker = container(Engine::docker, "a:1"),
                      podman = container(Engine::podman, "a:1"),
                      other = container(Engine::docker, "1");
  REQUIRE(holds.set(docker, {.paused = true, .mode = lasting(Mode::enforce)}));
  REQUIRE(holds.set(podman, {.paused = false, .mode = lasting(Mode::enforce)}));
  REQUIRE(holds.set(other, {.paused = false, .mode = lasting(Mode::enforce)}));
  CHECK(holds.forget_modes("a:1") == 2);
  CHECK(holds.forget_modes("a:1") == 0);
  CHECK(holds.of(docker).paused);
  CHECK_FALSE(holds.of(docker).mode.in_force());
  CHECK_FALSE(holds.of(podman).mode.in_force());
  CHECK(holds.of(other).mode.in_force());
}

TEST_CASE("holds: one container more than the bound is refused, and known ones are not") {
  Holds holds;
  const auto numbered = [](std::size_t number) {
    return container(Engine::docker, std::to_string(number));
  };
  for (std::size_t i = 0; i < Holds::kMostContainers; ++i)
    REQUIRE(holds.set(numbered(i), {.paused = true, .mode = {}}));
  const Status refused = holds.set(numbered(Holds::kMostContainers), {.paused = true, .mode = {}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(holds.set(numbered(7), {.paused = true, .mode = lasting(Mode::observe)}));
  CHECK(holds.set(numbered(7), {}));
  CHECK(holds.set(numbered(Holds::kMostContainers), {.paused = true, .mode = {}}));
}

TEST_CASE("holds: a damaged file is invalid, and named") {
  const TemporaryDirectory directory;
  const std::string path = directory / "holds.json";
  for (const char* text :
       {"", "{", "[]", "{\"schema\":2}", "{\"schema\":1,\"host\":\"enforced\"}",
        "{\"schema\":1,\"containers\":[]}", "{\"schema\":1,\"containers\":{\"docker:a\":1}}",
        "{\"schema\":1,\"containers\":{\"docker:a\":{\"paused\":\"yes\"}}}",
        "{\"schema\":1,\"containers\":{\"docker:a\":{\"mode\":3}}}",
        R"({"schema":1,"host":"enforce","host_since":"now"})",
        R"({"schema":1,"host":"enforce","host_since":-1})",
        R"({"schema":1,"host":"enforce","host_since":9000000001})"}) {
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
  holds.set_host(lasting(Mode::observe));
  CHECK_FALSE(holds.save());
}
