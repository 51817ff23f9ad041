#include "cli/commands/config_check.h"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tests/agent/temporary_directory.h"
#include "tests/text.h"

using namespace cgphase;

namespace {

// A program in place of cgphased that stores its arguments.
struct CheckingProgram {
  explicit CheckingProgram(const std::string& body) {
    std::ofstream(path) << "#!/bin/sh\necho \"$@\" > " << path << ".words\n" << body << "\n";
    REQUIRE(::chmod(path.c_str(), 0755) == 0);
  }
  std::string words() const { return read_file(path + ".words", 4096).value(); }

  TemporaryDirectory tmp;
  std::string path = tmp / "cgphased";
};

}  // namespace

TEST_CASE("config check runs cgphased on the file and reports a valid one") {
  const CheckingProgram program("exit 0");
  const auto body = check_configuration(program.path, "a.toml");
  REQUIRE(body);
  CHECK(program.words() == "--check-config --config a.toml\n");
  CHECK((*body)["valid"] == true);
  CHECK((*body)["file"] == "a.toml");
}

TEST_CASE("without a file, cgphased checks the configuration of the service") {
  const CheckingProgram program("exit 0");
  const auto body = check_configuration(program.path, "");
  REQUIRE(body);
  CHECK(program.words() == "--check-config\n");
  CHECK((*body)["file"] == "/etc/cgphase/cgphase.toml");
}

TEST_CASE("a refusal has the message and the exit code of cgphased") {
  for (const Exit exit : {Exit::failure, Exit::denied, Exit::invalid}) {
    const CheckingProgram program("echo 'cgphased: a.toml:3:1: unknown key moed' >&2; exit " +
                                  std::to_string(static_cast<int>(exit)));
    const auto body = check_configuration(program.path, "a.toml");
    REQUIRE_FALSE(body);
    CHECK(body.error().exit == exit);
    CHECK(body.error().text == "a.toml:3:1: unknown key moed");
  }
}

TEST_CASE("a cgphased that cannot check is a failure that names it") {
  for (const char* body : {"kill -KILL $$", "exit 6", "echo 'usage: cgphased' >&2; exit 2"}) {
    const CheckingProgram program(body);
    const auto checked = check_configuration(program.path, "a.toml");
    REQUIRE_FALSE(checked);
    CHECK(checked.error().exit == Exit::failure);
    CHECK(has(checked.error().text, program.path));
  }
  const auto absent = check_configuration("/nonexistent/cgphased", "");
  REQUIRE_FALSE(absent);
  CHECK(has(absent.error().text, "/nonexistent/cgphased"));
  CHECK_FALSE(check_configuration("", ""));
}

TEST_CASE("the output of cgphased is bounded") {
  const CheckingProgram program("head -c 200000 /dev/zero | tr '\\0' x >&2; exit 6");
  const auto body = check_configuration(program.path, "");
  REQUIRE_FALSE(body);
  CHECK(body.error().text.size() == 64 * 1024);
}
