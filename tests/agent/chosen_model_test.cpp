#include "agent/chosen_model.h"

#include <doctest/doctest.h>

#include "base/file.h"
#include "model/installed_models.h"
#include "tests/agent/agent_world.h"
#include "tests/agent/temporary_directory.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

struct Chooser {
  TemporaryDirectory directory;
  Config config;
  Chooser() {
    config.state_dir = directory.path();
    config.model = write("package.json", model_of(1));
  }
  static std::string model_of(double step_seconds) {
    Model model = small_model();
    model.step_seconds = step_seconds;
    return serialize_model(model);
  }
  std::string write(const std::string& name, const std::string& text) const {
    REQUIRE(replace_file(directory / name, text));
    return directory / name;
  }
  void install(const std::string& text) const {
    auto installer = ModelInstaller::open(directory.path());
    REQUIRE(installer);
    const auto added = installer->add(text);
    REQUIRE(added);
    REQUIRE(installer->use(added->number));
  }
  ChosenModel choose() const {
    Result<ChosenModel> chosen = choose_model(config);
    REQUIRE(chosen);
    return *std::move(chosen);
  }
};

double step_of(const ChosenModel& chosen) { return chosen.engine->model().step_seconds; }

std::shared_ptr<const PhaseEngine> other_engine() {
  Model model = small_model();
  model.provenance["other"] = "one";
  return PhaseEngine::create(model).value();
}

}  // namespace

TEST_CASE_FIXTURE(Chooser, "the package's model is used until one is installed") {
  CHECK(choose().origin == "package");
  CHECK(step_of(choose()) == 1);
  install(model_of(2));
  CHECK(choose().origin == "installed");
  CHECK(choose().path == directory / "models/1.json");
  CHECK(step_of(choose()) == 2);
}

TEST_CASE_FIXTURE(Chooser, "the model that the configuration names goes before an installed one") {
  install(model_of(2));
  config.origins["model"] = "/etc/cgphase/cgphase.toml:3";
  CHECK(choose().origin == "configuration");
  CHECK(step_of(choose()) == 1);
  config.model = directory / "none.json";
  CHECK_FALSE(choose_model(config));
}

TEST_CASE_FIXTURE(Chooser, "a damaged installed model is reported, and the one before is used") {
  install(model_of(2));
  install("damaged");
  const ChosenModel chosen = choose();
  CHECK(step_of(chosen) == 2);
  REQUIRE(chosen.passed_over.size() == 1);
  CHECK(has(chosen.passed_over[0], "models/2.json"));
}

TEST_CASE_FIXTURE(Chooser, "with all installed models damaged or gone the package's is used") {
  install("damaged");
  CHECK(choose().origin == "package");
  CHECK(choose().passed_over.size() == 1);
  std::filesystem::remove(directory / "models/1.json");
  CHECK(choose().origin == "package");
  REQUIRE(choose().passed_over.size() == 1);
  CHECK(has(choose().passed_over[0], "1 is not there"));
  std::filesystem::remove(directory / "models/current");
  std::filesystem::create_directory(directory / "models/current");
  CHECK(choose().origin == "package");
  CHECK(choose().passed_over.size() == 1);
}

TEST_CASE("the same model again changes nothing, and what was passed over is in `degraded`") {
  AgentWorld world;
  world.run(10);
  const auto phase = world.container().phase;
  REQUIRE(phase.known());
  CHECK_FALSE(world.agent->take_model({.engine = small_engine(), .path = "/m",
                                       .origin = "installed", .passed_over = {"one is damaged"}}));
  CHECK(world.container().phase.known());
  CHECK(world.agent->model().path == "/m");
  CHECK(world.agent->degraded() == std::vector<std::string>{"one is damaged"});
}

TEST_CASE("with another model limits stay, and nothing is lowered before enough is known again") {
  AgentWorld world;
  REQUIRE(world.run_until_lowered());
  world.run(3);
  const std::size_t before = world.changes().size();
  const Limits limits = world.container().sample.limits;
  CHECK(world.agent->take_model({.engine = other_engine(), .path = "/m", .origin = "installed"}));
  CHECK_FALSE(world.container().phase.known());
  CHECK(world.container().seconds_in_phase.empty());
  for (int i = 0; i < world.config.safety.enough_samples - 1; ++i) {
    world.tick();
    for (std::size_t n = before; n < world.changes().size(); ++n) CHECK(world.changes()[n].raise);
  }
  CHECK(world.container().sample.limits == limits);
  CHECK(world.container().original.cpu_cores()->value == 1);
  world.run(10);
  CHECK(world.container().phase.known());
}

TEST_CASE("what phases of a model taught is not taken for another's, and is known again with it") {
  AgentWorld world;
  world.config.policy = "phase";
  world.start();
  world.run(30);
  const auto phases = [&] {
    const LearnedState learned = world.agent->learning().learned(world.container());
    return std::get<LearnedPhases>(learned).records.size();
  };
  const std::size_t known = phases();
  REQUIRE(known > 0);
  REQUIRE(world.agent->take_model({.engine = other_engine(), .path = "/m", .origin = "installed"}));
  CHECK(phases() == 0);
  REQUIRE(world.agent->take_model({.engine = small_engine(), .path = "/s", .origin = "package"}));
  CHECK(phases() == known);
}
