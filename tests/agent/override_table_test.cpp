#include "agent/override_table.h"

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

ModeRequest lasting(Mode mode) { return {.lasting = TimedMode{mode, kSince}, .until_restart = {}}; }

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

}  // namespace

TEST_CASE("override table: without a file it is empty") {
  const TemporaryDirectory directory;
  const auto table = OverrideTable::load(directory / "holds.json");
  REQUIRE(table);
  CHECK_FALSE(table->host().in_force());
  CHECK_FALSE(table->of(container(Engine::docker, "train")).paused);
}

TEST_CASE("override table: engine and name identify a saved override, also with hostile names") {
  const TemporaryDirectory directory;
  const std::string hostile = "\x1b[31m\"\xff";
  OverrideTable table(directory / "holds.json");
  REQUIRE(table.set(container(Engine::docker, hostile), {.paused = true, .mode = {}}));
  REQUIRE(table.set(container(Engine::podman, "b"),
                    {.paused = false, .mode = lasting(Mode::enforce)}));
  table.set_host(lasting(Mode::observe));
  REQUIRE(table.save());
  const auto again = OverrideTable::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->of(container(Engine::docker, hostile)).paused);
  CHECK_FALSE(again->of(container(Engine::podman, hostile)).paused);
  const auto mode = again->of(container(Engine::podman, "b")).mode.in_force();
  REQUIRE(mode);
  CHECK(mode->mode == Mode::enforce);
  CHECK(mode->since == kSince);
  CHECK(again->host().in_force()->mode == Mode::observe);
}

TEST_CASE("override table: a mode until the restart replaces the lasting one, and is not saved") {
  const TemporaryDirectory directory;
  const ContainerInfo one = container(Engine::docker, "a"), other = container(Engine::docker, "b");
  OverrideTable table(directory / "holds.json");
  ModeRequest both = lasting(Mode::observe);
  both.until_restart = TimedMode{Mode::enforce, kSince};
  REQUIRE(table.set(one, {.paused = false, .mode = both}));
  const ModeRequest brief{.lasting = {}, .until_restart = both.until_restart};
  REQUIRE(table.set(other, {.paused = false, .mode = brief}));
  table.set_host(brief);
  CHECK(table.of(one).mode.in_force()->mode == Mode::enforce);
  REQUIRE(table.save());
  const auto again = OverrideTable::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->of(one).mode.in_force()->mode == Mode::observe);
  CHECK_FALSE(again->of(other).mode.in_force());
  CHECK_FALSE(again->host().in_force());
}

TEST_CASE("override table: a file of the first version loads, without the time of its modes") {
  const TemporaryDirectory directory;
  write(directory / "holds.json",
        R"({"schema":1,"host":"observe","containers":{"docker:a":{"paused":true,"mode":null},)"
        R"("docker:b":{"paused":false,"mode":"advise"}}})");
  const auto table = OverrideTable::load(directory / "holds.json");
  REQUIRE(table);
  CHECK(table->host().in_force()->mode == Mode::observe);
  CHECK(table->of(container(Engine::docker, "a")).paused);
  CHECK(table->of(container(Engine::docker, "b")).mode.in_force()->mode == Mode::advise);
  CHECK(table->of(container(Engine::docker, "b")).mode.in_force()->since == WallTime());
}

TEST_CASE("override table: a loss lasts until an administrator sets the host's mode") {
  const TemporaryDirectory directory;
  OverrideTable table(directory / "holds.json");
  table.lose();
  REQUIRE(table.save());
  auto again = OverrideTable::load(directory / "holds.json");
  REQUIRE(again);
  CHECK(again->lost());
  CHECK(again->host().in_force()->mode == Mode::observe);
  again->end_loss();
  CHECK_FALSE(again->lost());
  write(directory / "holds.json", R"({"schema": 1, "lost": 1})");
  CHECK_FALSE(OverrideTable::load(directory / "holds.json"));
}

TEST_CASE("override table: removing the modes of a name covers every engine and keeps pauses") {
  OverrideTable table;
  const ContainerInfo docker = container(Engine::docker, "a:1"),
                      podman = container(Engine::podman, "a:1"),
                      other = container(Engine::docker, "1");
  REQUIRE(table.set(docker, {.paused = true, .mode = lasting(Mode::enforce)}));
  REQUIRE(table.set(podman, {.paused = false, .mode = lasting(Mode::enforce)}));
  REQUIRE(table.set(other, {.paused = false, .mode = lasting(Mode::enforce)}));
  CHECK(table.forget_modes("a:1") == 2);
  CHECK(table.forget_modes("a:1") == 0);
  CHECK(table.of(docker).paused);
  CHECK_FALSE(table.of(docker).mode.in_force());
  CHECK_FALSE(table.of(podman).mode.in_force());
  CHECK(table.of(other).mode.in_force());
}

TEST_CASE("override table: a container above the bound is refused, and known ones are not") {
  OverrideTable table;
  const auto numbered = [](std::size_t number) {
    return container(Engine::docker, std::to_string(number));
  };
  for (std::size_t i = 0; i < OverrideTable::kMostContainers; ++i)
    REQUIRE(table.set(numbered(i), {.paused = true, .mode = {}}));
  const Status refused =
      table.set(numbered(OverrideTable::kMostContainers), {.paused = true, .mode = {}});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().kind == ErrorKind::invalid);
  CHECK(table.set(numbered(7), {.paused = true, .mode = lasting(Mode::observe)}));
  CHECK(table.set(numbered(7), {}));
  CHECK(table.set(numbered(OverrideTable::kMostContainers), {.paused = true, .mode = {}}));
}

TEST_CASE("override table: a damaged file is an error that names the file") {
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
    const auto table = OverrideTable::load(path);
    REQUIRE_FALSE(table);
    CHECK(table.error().kind == ErrorKind::invalid);
    CHECK(table.error().text.find(path) != std::string::npos);
  }
}

TEST_CASE("override table: a failed save is an error") {
  OverrideTable table("/nonexistent/holds.json");
  table.set_host(lasting(Mode::observe));
  CHECK_FALSE(table.save());
}
