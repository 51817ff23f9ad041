// Content of the archive, with and without a daemon.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "protocol/report.h"
#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

// Runs on a host with systemd and journal of the test.
struct Bundles {
  CommandRun command;
  std::string places = command.directory() / "places", archive = places + "/b.tar.gz";
  std::string unpacked = command.directory() / "out", temporary = command.directory() / "tmp";
  std::string tools = command.directory() / "tools", path = tools + ":/usr/bin:/bin";

  Bundles() {
    for (const std::string& folder : {places, temporary, tools})
      std::filesystem::create_directory(folder);
    add_tool("systemctl", "echo units");
    add_tool("journalctl", "echo lines of the journal; echo a hint >&2");
  }

  void add_tool(const std::string& name, const std::string& script) const {
    REQUIRE(replace_file(tools + "/" + name, "#!/bin/sh\n" + script + "\n", 0755));
  }
  Ran bundle(std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"bundle", "-o", archive};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }
  Ran run(const std::vector<std::string>& words) {
    return command.run(words, {{"TMPDIR", temporary}, {"PATH", path}, {"TZ", "Asia/Tokyo"}});
  }
  // No temporary files and no partial archive are left.
  void check_nothing_else(std::size_t archives) const {
    CHECK(std::filesystem::is_empty(temporary));
    const auto files = std::filesystem::directory_iterator(places);
    CHECK(static_cast<std::size_t>(std::distance(begin(files), end(files))) == archives);
  }
  // Returns the text of a file of the archive. All its files are in one folder.
  std::string file(const std::string& name) {
    std::filesystem::create_directory(unpacked);
    REQUIRE(std::system(("tar -C '" + unpacked + "' --strip-components=1 -xzf '" + archive + "'")
                            .c_str()) == 0);
    return content(unpacked + "/" + name);
  }
};

json web_and_status(const Request& request) {
  if (verb_of(request) == Verb::status) return to_json(status());
  return verb_of(request) == Verb::list ? to_json(ListReply{{web()}}) : json::object();
}

}  // namespace

TEST_CASE("a bundle contains the reports of the daemon and of the host") {
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
  CHECK(bundles.file("journal.txt") == "lines of the journal\n");
  const json reported = json::parse(bundles.file("items.json"));
  for (const json& item : reported["items"]) {
    const std::string name = item["name"];
    INFO(name, ": ", item.dump());
    CHECK(std::filesystem::exists(bundles.unpacked + "/" + name));
    if (name == "journal.txt") CHECK(item["said"] == "a hint");
    // The result of these depends on the host that runs the test.
    if (!name.starts_with("configuration") && name != "doctor.txt" && name != "models.txt")
      CHECK(item["exit"] == 0);
  }
}

TEST_CASE("a bundle is readable by its owner only, and no other file is left") {
  Bundles bundles;
  CHECK(bundles.bundle({"-q"}).out.empty());
  struct stat about{};
  REQUIRE(::stat(bundles.archive.c_str(), &about) == 0);
  CHECK((about.st_mode & 0777U) == 0600);
  bundles.check_nothing_else(1);
}

TEST_CASE("a bundle without a name is named after its time in UTC") {
  Bundles bundles;
  bundles.command.through({"env", "-C", bundles.places});
  const auto hour = [] {
    const std::time_t now = std::time(nullptr);
    std::tm utc{};
    ::gmtime_r(&now, &utc);
    char text[32];
    return std::string(text, std::strftime(text, sizeof text, "%Y%m%dT%H", &utc));
  };
  const std::string before = hour();
  CHECK(bundles.run({"bundle", "-q"}).exit == 0);
  bundles.check_nothing_else(1);
  const std::string name =
      std::filesystem::directory_iterator(bundles.places)->path().filename().string();
  const bool of_this_hour = name.starts_with("cgphase-bundle-" + before) ||
                            name.starts_with("cgphase-bundle-" + hour());
  CHECK_MESSAGE(of_this_hour, name);
}

TEST_CASE("a bundle is complete without a daemon and reports that none answers") {
  Bundles bundles;
  const Ran ran = bundles.bundle({"--json"});
  CHECK(ran.exit == 0);
  const json reply = json::parse(ran.out);
  CHECK(reply["schema"] == 2);
  CHECK(reply["file"] == bundles.archive);
  int failed = 0;
  for (const json& item : reply["items"])
    if (item["exit"] == 4 &&
        item["said"].get<std::string>().find("cannot reach the daemon") != std::string::npos)
      ++failed;
  CHECK(failed >= 4);
  CHECK(json::parse(bundles.file("items.json")) == reply);
}

TEST_CASE("a bundle that cannot be written is reported, and nothing is left") {
  Bundles bundles;
  SUBCASE("no such folder") {
    bundles.archive = bundles.places + "/none/b.tar.gz";
    const Ran ran = bundles.bundle();
    CHECK(ran.exit == 6);
    CHECK(ran.err.find("none/b.tar.gz") != std::string::npos);
  }
  SUBCASE("tar fails") {
    bundles.add_tool("tar", "echo no room >&2; exit 2");
    const Ran ran = bundles.bundle();
    CHECK(ran.exit == 1);
    CHECK(ran.err == "cgphase: tar: no room\n");
  }
  SUBCASE("no tar") {
    bundles.path = bundles.tools;
    CHECK(bundles.bundle().exit == 1);
  }
  SUBCASE("an unknown format") {
    CHECK(bundles.run({"-o", "openmetrics", "bundle", "-o", bundles.archive}).exit == 2);
  }
  SUBCASE("interrupted") {
    bundles.add_tool("systemctl", "kill -TERM $PPID");
    const Ran ran = bundles.bundle();
    CHECK(ran.exit == 1);
    CHECK(ran.err.find("interrupted") != std::string::npos);
  }
  bundles.check_nothing_else(0);
}
