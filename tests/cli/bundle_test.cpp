// What is in the archive that somebody else is given, with a daemon and without one.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/report.h"
#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

struct Bundles {
  CommandRun command;
  std::string archive = command.directory() / "b.tar.gz", unpacked = command.directory() / "out";
  std::string temporary = command.directory() / "tmp";

  Bundles() { std::filesystem::create_directory(temporary); }

  Ran bundle(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"bundle", "-o", archive};
    words.insert(words.end(), more.begin(), more.end());
    return command.run(words, {{"TMPDIR", temporary}});
  }
  // The text of a file of the archive, whose files are all in one folder.
  std::string file(const std::string& name) {
    std::filesystem::create_directory(unpacked);
    REQUIRE(std::system(("tar -C '" + unpacked + "' --strip-components=1 -xzf '" + archive + "'")
                            .c_str()) == 0);
    return content(unpacked + "/" + name);
  }
};

json web_and_status(const Request& request) {
  if (request.verb == Verb::status) return to_json(status());
  return request.verb == Verb::list ? list_reply(std::vector{web()}) : json::object();
}

}  // namespace

TEST_CASE("a bundle has what the daemon says, and what the host says of it") {
  Bundles bundles;
  bundles.command.serve(web_and_status);
  const Ran ran = bundles.bundle();
  CHECK(ran.exit == 0);
  CHECK(ran.out.find(bundles.archive + ": ") != std::string::npos);
  CHECK(json::parse(bundles.file("status.json"))["mode"] == to_json(status())["mode"]);
  CHECK(json::parse(bundles.file("containers.json"))["containers"][0]["name"] == "web-1");
  CHECK(bundles.file("version.txt").starts_with("cgphase "));
  CHECK(bundles.file("kernel.txt").starts_with("Linux "));
  CHECK(bundles.file("system.txt").find("ID=") != std::string::npos);
  CHECK(bundles.file("doctor.txt").find("cgroup") != std::string::npos);
  for (const json& item : json::parse(bundles.file("items.json"))["items"])
    CHECK(std::filesystem::exists(bundles.unpacked + "/" + item["name"].get<std::string>()));
}

TEST_CASE("a bundle is for its owner alone, and leaves nothing else") {
  Bundles bundles;
  CHECK(bundles.bundle({"-q"}).out.empty());
  struct stat about{};
  REQUIRE(::stat(bundles.archive.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777U) == 0600);
  CHECK(std::filesystem::is_empty(bundles.temporary));
}

TEST_CASE("a bundle of a host whose daemon does not answer says so, and is one all the same") {
  Bundles bundles;
  const Ran ran = bundles.bundle({"--json"});
  CHECK(ran.exit == 0);
  CHECK(bundles.file("status.json").find("cannot reach the daemon") != std::string::npos);
  const json reply = json::parse(ran.out);
  CHECK(reply["schema"] == 1);
  CHECK(reply["file"] == bundles.archive);
  int failed = 0;
  for (const json& item : reply["items"])
    if (item["name"] == "status.json" && item["exit"] == 4) ++failed;
  CHECK(failed == 1);
}

TEST_CASE("a bundle that cannot be written is told, and nothing is left") {
  Bundles bundles;
  bundles.archive = bundles.command.directory() / "none/b.tar.gz";
  const Ran ran = bundles.bundle();
  CHECK(ran.exit == 6);
  CHECK(ran.err.find("none/b.tar.gz") != std::string::npos);
  CHECK(std::filesystem::is_empty(bundles.temporary));
}
