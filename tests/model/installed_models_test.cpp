#include "model/installed_models.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>

#include "base/file.h"
#include "tests/model/temporary_folder.h"
#include "tests/text.h"

using namespace cgphase;

namespace {

struct State {
  TemporaryFolder folder;
  std::string dir = folder.path("");

  ModelInstaller installer() const {
    Result<ModelInstaller> opened = ModelInstaller::open(dir);
    REQUIRE(opened);
    return *std::move(opened);
  }
  std::uint64_t install(const std::string& text) const {
    ModelInstaller one = installer();
    const auto before = found().current;
    const Result<InstalledModel> added = one.add(text);
    REQUIRE(added);
    REQUIRE(one.use(added->number));
    REQUIRE(one.tidy(before));
    return added->number;
  }
  InstalledModels found() const {
    const Result<InstalledModels> models = installed_models(dir);
    REQUIRE(models);
    return *models;
  }
  std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> all;
    for (const InstalledModel& model : found().models) all.push_back(model.number);
    return all;
  }
  std::string link() const { return folder.path("models/current"); }
};

using ModelNumbers = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE_FIXTURE(State, "without an installation there is no model and none in use") {
  CHECK(numbers().empty());
  CHECK_FALSE(found().current);
  CHECK(found().in_order().empty());
}

TEST_CASE_FIXTURE(State, "an installed model is in use, and the previous one is its fallback") {
  CHECK(install("one") == 1);
  CHECK(install("two") == 2);
  CHECK(found().current == 2);
  CHECK(found().since > WallTime{});
  const auto order = found().in_order();
  REQUIRE(order.size() == 2);
  CHECK(read_file(order[0].path, 10).value() == "two");
  CHECK(read_file(order[1].path, 10).value() == "one");
}

TEST_CASE_FIXTURE(State, "an added model is not in use before use() is called") {
  CHECK(install("one") == 1);
  REQUIRE(installer().add("two"));
  CHECK(found().current == 1);
  CHECK(found().in_order().size() == 1);
}

TEST_CASE_FIXTURE(State, "five models are kept, and a sixth removes the oldest") {
  for (std::size_t i = 0; i < kKeptModels; ++i) install("m");
  CHECK(numbers() == ModelNumbers{1, 2, 3, 4, 5});
  install("m");
  CHECK(numbers() == ModelNumbers{2, 3, 4, 5, 6});
}

TEST_CASE_FIXTURE(State,
                  "what somebody went back from goes with the next, its number stays unused") {
  install("one");
  install("two");
  REQUIRE(installer().use(1));
  CHECK(numbers() == ModelNumbers{1, 2});
  CHECK(install("three") == 3);
  CHECK(numbers() == ModelNumbers{1, 3});
  REQUIRE(installer().use(std::nullopt));
  CHECK_FALSE(found().current);
  CHECK(install("four") == 4);
  CHECK(numbers() == ModelNumbers{4});
}

TEST_CASE_FIXTURE(State, "a link to another place is invalid, and is replaced later") {
  install("one");
  for (const char* target : {"../one.json", "/etc/passwd", "01.json", "1.json.new", "x.json"}) {
    std::filesystem::remove(link());
    REQUIRE(::symlink(target, link().c_str()) == 0);
    const auto broken = installed_models(dir);
    REQUIRE_FALSE(broken);
    CHECK(broken.error().kind == ErrorKind::invalid);
    CHECK(has(broken.error().text, "models/current"));
  }
  ModelInstaller one = installer();
  const Result<InstalledModel> added = one.add("two");
  REQUIRE(added);
  CHECK(added->number == 2);
  REQUIRE(one.use(2));
  CHECK(found().current == 2);
}

TEST_CASE_FIXTURE(State, "only regular files named by a number count, not links") {
  install("one");
  folder.write("models/notes.json", "x");
  folder.write("models/0.json", "x");
  REQUIRE(::symlink("1.json", folder.path("models/7.json").c_str()) == 0);
  CHECK(numbers() == ModelNumbers{1});
}

TEST_CASE_FIXTURE(State, "a second process that changes the models at the same time is refused") {
  const ModelInstaller first = installer();
  const Result<ModelInstaller> second = ModelInstaller::open(dir);
  REQUIRE_FALSE(second);
  CHECK(has(second.error().text, "another process"));
}
