// What the built daemon says to bad input: one clear sentence, the exit code of the contract, and
// nothing lost. Runs it with --once on a directory that looks like a cgroup v2 root.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/file.h"
#include "tests/agent/temporary_directory.h"

namespace {

constexpr unsigned kNobody = 65534;

// In a child. Nothing to do where the test has no rights either.
bool become_nobody() {
  return ::geteuid() != 0 ||
         (::setgroups(0, nullptr) == 0 && ::setresgid(kNobody, kNobody, kNobody) == 0 &&
          ::setresuid(kNobody, kNobody, kNobody) == 0);
}

struct Ended {
  int exit = -1;
  std::string out, err;
  bool one_line() const { return std::ranges::count(err, '\n') == 1; }
};

class Start {
 public:
  Start() {
    write("cgroup/cgroup.controllers", "memory pids\n");
    write("cgroup.toml", "");
  }

  std::string path(const std::string& name) const { return directory_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name), std::ios::binary) << text;
  }

  Ended run(std::vector<std::string> more) const { return spawn(command(more)); }

  // As a user who may read everything here and write nothing: nobody where the test is root's.
  Ended run_without_rights(std::vector<std::string> more) const {
    for (const char* name : {"", "cgroup"}) ::chmod(path(name).c_str(), 0555);
    const Ended ended = spawn(command(more), true);
    for (const char* name : {"", "cgroup"}) ::chmod(path(name).c_str(), 0755);
    return ended;
  }

 private:
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {
        CGPHASED_PROGRAM, "--once", "--config", path("cgroup.toml"), "--cgroup-root",
        path("cgroup"), "--state-dir", path("state"), "--runtime-dir", path("run"), "--model",
        CGPHASE_SOURCE_DIR "/model/default_model.json"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Ended spawn(const std::vector<std::string>& words, bool drop_rights = false) const {
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    // By descriptors: another user may not be let through the folders above. That of the program
    // stays open in it: where it is emulated the emulator opens it by that.
    const int program = ::open(arguments[0], O_RDONLY);
    const TemporaryDirectory output;
    const int out = ::open((output / "out").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const int err = ::open((output / "err").c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      ::dup2(out, STDOUT_FILENO);
      ::dup2(err, STDERR_FILENO);
      if (!drop_rights || become_nobody()) ::fexecve(program, arguments.data(), environ);
      ::_exit(127);
    }
    for (const int fd : {program, out, err}) ::close(fd);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    return {.exit = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = cgphase::read_file(output / "out", 1 << 20).value(),
            .err = cgphase::read_file(output / "err", 1 << 20).value()};
  }

  TemporaryDirectory directory_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a good start makes one tick and prints the status") {
  const Start start;
  const Ended ended = start.run({});
  CHECK(ended.err == "");
  CHECK(ended.exit == 0);
  CHECK(contains(ended.out, "\"schema\""));
}

TEST_CASE("an unknown key ends the start with file, line and the nearest key") {
  const Start start;
  start.write("cgroup.toml", "\nintervall = \"1s\"\n");
  const Ended ended = start.run({});
  CHECK(ended.exit == 6);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, start.path("cgroup.toml") + ":2:"));
  CHECK(contains(ended.err, "interval"));
}

TEST_CASE("a configuration file that was named and is not there ends the start") {
  const Start start;
  const Ended ended = start.run({"--config", start.path("none.toml")});
  CHECK(ended.exit == 6);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, "none.toml"));
}

TEST_CASE("a missing model ends the start and is named") {
  const Start start;
  const Ended ended = start.run({"--model", start.path("none.json")});
  CHECK(ended.exit == 6);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, "none.json"));
}

TEST_CASE("a model with one changed digit ends the start by its checksum") {
  const Start start;
  std::string text =
      cgphase::read_file(CGPHASE_SOURCE_DIR "/model/default_model.json", 1 << 20).value();
  const std::size_t digit = text.find_first_of("123456789", text.find("\"W\""));
  text[digit] = text[digit] == '1' ? '2' : '1';
  start.write("model.json", text);
  const Ended ended = start.run({"--model", start.path("model.json")});
  CHECK(ended.exit == 6);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, "model.json"));
}

TEST_CASE("a damaged history is kept under another name, and the daemon works on") {
  const Start start;
  const std::string garbage(8192, '\x5a');
  start.write("state/history.db", garbage);
  const Ended ended = start.run({});
  CHECK(ended.exit == 0);
  CHECK(contains(ended.err, "damaged"));
  int kept = 0;
  for (const auto& entry : std::filesystem::directory_iterator(start.path("state")))
    if (contains(entry.path().filename().string(), ".corrupt-"))
      kept += cgphase::read_file(entry.path(), 1 << 20).value() == garbage ? 1 : 0;
  CHECK(kept == 1);
}

TEST_CASE("damaged holds are kept under another name, and the daemon only observes") {
  const Start start;
  start.write("state/holds.json", "{\"schema\":1,");
  const Ended ended = start.run({});
  CHECK(ended.exit == 0);
  CHECK(contains(ended.err, "holds.json.damaged"));
  CHECK(contains(cgphase::read_file(start.path("state/holds.json"), 1000).value(),
                 "\"host\": \"observe\""));
  CHECK(cgphase::read_file(start.path("state/holds.json.damaged"), 100).value() ==
        "{\"schema\":1,");
  CHECK(start.run({}).err == "");
}

TEST_CASE("a root that is no cgroup directory ends the start with the way out") {
  const Start start;
  std::filesystem::create_directories(start.path("empty"));
  const Ended ended = start.run({"--cgroup-root", start.path("empty")});
  CHECK(ended.exit == 6);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, "--cgroup-root"));
}

TEST_CASE("enforce without the cpu controller ends the start, observe goes on and says so") {
  const Start start;
  const Ended refused = start.run({"--mode", "enforce"});
  CHECK(refused.exit == 6);
  CHECK(refused.one_line());
  CHECK(contains(refused.err, "cpu"));
  CHECK(start.run({"--mode", "observe"}).exit == 0);
}

TEST_CASE("without rights to the runtime directory the start ends with the way out") {
  const Start start;
  const Ended ended = start.run_without_rights({"--mode", "observe"});
  CHECK(ended.exit == 5);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, "root"));
  CHECK(contains(ended.err, "--runtime-dir"));
  CHECK_FALSE(std::filesystem::exists(start.path("run")));
}

TEST_CASE("without rights to the cgroups enforce ends the start, before anything is made") {
  const Start start;
  start.write("cgroup/cgroup.controllers", "cpu memory pids\n");
  const Ended ended = start.run_without_rights({"--mode", "enforce"});
  CHECK(ended.exit == 5);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, start.path("cgroup")));
  CHECK(contains(ended.err, "root"));
  CHECK_FALSE(std::filesystem::exists(start.path("run")));
}

TEST_CASE("an unknown policy ends the start and names the nearest") {
  const Start start;
  const Ended ended = start.run({"--policy", "phse"});
  CHECK(ended.exit == 6);
  CHECK(ended.one_line());
  CHECK(contains(ended.err, "phase"));
}

TEST_CASE("an unknown option is a usage error") {
  const Start start;
  CHECK(start.run({"--modee", "enforce"}).exit == 2);
  CHECK(start.run({"surplus"}).exit == 2);
}

TEST_CASE("a cgroup with a hostile name is observed like any other") {
  const Start start;
  start.write("cgroup.toml", "include = [\"/*\"]\n");
  const std::string name = "\x1b[2J<b>'\"\xff";
  start.write("cgroup/" + name + "/memory.current", "4096\n");
  const Ended ended = start.run({});
  CHECK(ended.exit == 0);
  CHECK(contains(ended.out, "\"observe\": 1"));
  CHECK_FALSE(contains(ended.out + ended.err, "\x1b"));
}
