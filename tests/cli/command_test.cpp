#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/fd.h"
#include "base/file.h"
#include "model/model.h"
#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"
#include "tests/cli/small_model.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

json done(const Request&) {
  return to_json(ActionReport{"web-1 is in mode enforce", "cgphase mode observe web-1", {}, {}});
}

constexpr std::size_t kOutputBuffer = 4096;  // buffer of the C library for a device

// A trace, a model, and files at the outputs of their verbs.
struct Places {
  CommandRun command;
  std::string trace = command.directory() / "t.csv", model = command.directory() / "m.json";
  std::string pipe = command.directory() / "pipe", link = command.directory() / "link";
  std::string file = command.directory() / "file";
  Fd reader;

  Places() {
    std::string text = "timestamp,pod.id,cpu.usage.cores,mem.working.set\n";
    for (int i = 0; i < 100; ++i)
      text += std::to_string(100 + i) + (i / 10 % 2 == 0 ? ",a,0.1,1000000\n" : ",a,0.9,1001000\n");
    REQUIRE(replace_file(trace, text));
    REQUIRE(save_model(small_model(), model));
    REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
    // Opening a pipe blocks until somebody reads.
    reader = open_path(pipe, O_RDONLY | O_NONBLOCK).value();
    std::filesystem::create_symlink("/dev/stdout", link);
  }

  Ran predict(const std::string& output) {
    return command.run({"predict", "--model", model, "--output", output, trace});
  }
  Ran plot(const std::string& output) {
    return command.run({"plot", "--model", model, "-o", output, trace});
  }
  // Returns what was written into the pipe.
  std::string piped() const {
    std::string text(1U << 16, '\0');
    const ssize_t count = ::read(reader.get(), text.data(), text.size());
    REQUIRE(count >= 0);
    text.resize(static_cast<std::size_t>(count));
    return text;
  }
};

}  // namespace

TEST_CASE("without a daemon every verb that needs one exits with 4 and one line") {
  CommandRun command;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"status"}, {"list"}, {"show", "x"}, {"explain", "x"},
        {"history", "x"}, {"events"}, {"mode", "observe"}, {"pause", "x"}, {"resume", "x"},
        {"pin", "x", "cpu=1"}, {"restore", "x"}, {"size", "x"}, {"size", "--image", "x"},
        {"config", "show"}, {"config", "diff"},
        {"fit", "--cpus", "1", "--memory", "1G", "--for", "1h"},
        {"record", "-o", command.directory() / "x.csv"},
        {"export", "-o", command.directory() / "x.db"}}) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 4, words[0]);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
    CHECK(ran.err.starts_with("cgphase: cannot reach the daemon at "));
  }
}

TEST_CASE("a usage error exits with 2 and one line") {
  CommandRun command;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"stauts"}, {"show"}, {"list", "--bogus"},
        {"list", "-o", "xml"}, {"mode", "enfroce"}, {"restore"}, {"restore", "--all", "x"},
        {"explain", "x", "--at", "?"},
        {"list", "extra"}, {"list", "--color", "pink"}, {"history", "x", "-n", "0"},
        {"config"}, {"config", "shwo"}, {"config", "show", "extra"}, {"completion"},
        {"completion", "tcsh"}}) {
    const Ran ran = command.run(words);
    CHECK_MESSAGE(ran.exit == 2, (words.empty() ? "(nothing)" : words[0]), ran.err);
    CHECK(ran.out.empty());
    CHECK(one_line(ran.err));
  }
}

TEST_CASE("an unknown verb names the nearest") {
  CommandRun command;
  CHECK(command.run({"stauts"}).err == "cgphase: no verb 'stauts'; did you mean 'status'?\n");
}

TEST_CASE("a container that does not exist exits with 3 and the daemon's message") {
  CommandRun command;
  command.serve([](const Request&) {
    return error_reply(Exit::no_container, "no container 'web-2'; did you mean 'web-1'?");
  });
  const Ran ran = command.run({"show", "web-2"});
  CHECK(ran.exit == 3);
  CHECK(ran.err == "cgphase: no container 'web-2'; did you mean 'web-1'?\n");
}

TEST_CASE("a denied request exits with 5 and an invalid one with 6") {
  CommandRun command;
  Exit exit = Exit::denied;
  command.serve([&](const Request&) { return error_reply(exit, "no"); });
  CHECK(command.run({"mode", "enforce"}).exit == 5);
  exit = Exit::invalid;
  CHECK(command.run({"mode", "enforce"}).exit == 6);
}

TEST_CASE("a hostile error text is printed as one line") {
  CommandRun command;
  command.serve([](const Request&) { return error_reply(Exit::failure, "a\nb\x1b[2J"); });
  CHECK(command.run({"status"}).err == "cgphase: a\\x0ab\\x1b[2J\n");
}

TEST_CASE("list prints a table in a pipe without colour, and the reply itself as JSON") {
  CommandRun command;
  const json reply = to_json(ListReply{{web()}});
  command.serve([&](const Request&) { return reply; });
  const Ran table = command.run({"list"});
  CHECK(table.exit == 0);
  CHECK(table.err.empty());
  CHECK(table.out.starts_with("NAME   MODE     PHASE"));
  CHECK(table.out.find('\x1b') == std::string::npos);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"list", "--json"}, {"--json", "list"}, {"list", "-o", "json"}})
    CHECK(json::parse(command.run(words).out) == reply);
}

TEST_CASE("--color forces colour and NO_COLOR disables it") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(ListReply{{web()}}); });
  CHECK(command.run({"list", "--color=always"}).out.find('\x1b') != std::string::npos);
  CHECK(command.run({"list"}, {{"FORCE_COLOR", "1"}}).out.find('\x1b') != std::string::npos);
  CHECK(command.run({"list"}, {{"FORCE_COLOR", "1"}, {"NO_COLOR", "1"}}).out.find('\x1b') ==
        std::string::npos);
}

TEST_CASE("a reply without a CSV form is a usage error") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(status()); });
  CHECK(command.run({"status", "-o", "csv"}).exit == 2);
  CHECK(command.run({"status"}).exit == 0);
}

TEST_CASE("mode goes to the admin socket with its container and prints the undo") {
  CommandRun command;
  command.serve(done);
  const Ran ran = command.run({"mode", "enforce", "web-1"});
  CHECK(ran.exit == 0);
  CHECK(ran.out == "web-1 is in mode enforce\nundo: cgphase mode observe web-1\n");
  REQUIRE(command.requests().size() == 1);
  CHECK(verb_of(command.requests()[0]) == Verb::mode);
  CHECK(arguments_of(command.requests()[0]) == json{{"mode", "enforce"}, {"container", "web-1"}});
}

TEST_CASE("a pin takes cores and sizes, and a wrong one is refused before it is sent") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"pin", "a", "cpu=0.5,memory=1.5GiB"}).exit == 0);
  CHECK(command.run({"pin", "a", "memory=auto"}).exit == 0);
  REQUIRE(command.requests().size() == 2);
  CHECK(verb_of(command.requests()[0]) == Verb::pin);
  CHECK(arguments_of(command.requests()[0]) ==
        json{{"container", "a"}, {"cpus", 0.5}, {"memory_mib", 1536.0}});
  CHECK(arguments_of(command.requests()[1]) == json{{"container", "a"}, {"memory_mib", 0}});
  for (const char* wrong : {"0.5", "cpus=1", "cpu=", "cpu=0", "cpu=-1", "cpu=x", "memory=0",
                            "memory=lots", "cpu=1,cpu=2", "cpu=1,,memory=1M"}) {
    CAPTURE(wrong);
    const Ran ran = command.run({"pin", "a", wrong});
    CHECK(ran.exit == 2);
    CHECK(ran.err.starts_with("cgphase: pin: "));
  }
  CHECK(command.run({"pin", "a"}).exit == 2);
  CHECK(command.requests().size() == 2);
}

TEST_CASE("mode sends one request per container, and can end with the daemon") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"mode", "observe", "a", "b", "--until-restart"}).exit == 0);
  REQUIRE(command.requests().size() == 2);
  CHECK(arguments_of(command.requests()[0]) ==
        json{{"mode", "observe"}, {"container", "a"}, {"until_restart", true}});
  CHECK(arguments_of(command.requests()[1])["container"] == "b");
  CHECK(command.run({"mode", "default", "a"}).exit == 0);
  CHECK(arguments_of(command.requests()[2]) == json{{"mode", "default"}, {"container", "a"}});
  CHECK(command.run({"mode", "default", "--until-restart"}).exit == 2);
}

TEST_CASE("pin auto returns both limits to the policy") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"pin", "a", "auto"}).exit == 0);
  CHECK(arguments_of(command.requests()[0]) ==
        json{{"container", "a"}, {"cpus", 0}, {"memory_mib", 0}});
  CHECK(command.run({"pin", "a", "auto,cpu=1"}).exit == 2);
}

TEST_CASE("pause, resume and restore send their container") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"pause", "a"}).exit == 0);
  CHECK(command.run({"resume", "b"}).exit == 0);
  CHECK(command.run({"restore", "c"}).exit == 0);
  CHECK(command.run({"restore", "--all"}).exit == 0);
  REQUIRE(command.requests().size() == 4);
  CHECK(verb_of(command.requests()[0]) == Verb::pause);
  CHECK(arguments_of(command.requests()[1])["container"] == "b");
  CHECK(verb_of(command.requests()[2]) == Verb::restore);
  CHECK(arguments_of(command.requests()[3]) == json{{"all", true}});
}

TEST_CASE("quiet silences the text of an acting verb but not its JSON") {
  CommandRun command;
  command.serve(done);
  CHECK(command.run({"-q", "pause", "a"}).out.empty());
  CHECK_FALSE(command.run({"-q", "pause", "a", "--json"}).out.empty());
}

TEST_CASE("an action that failed in part exits with 1 and names the failures") {
  CommandRun command;
  command.serve([](const Request&) {
    return to_json(ActionReport{"1 of 2 restored", "", {}, {"b: memory.max: EIO"}});
  });
  const Ran ran = command.run({"restore", "--all"});
  CHECK(ran.exit == 1);
  CHECK(ran.out.find("failed: b: memory.max: EIO") != std::string::npos);
  const Ran quiet = command.run({"-q", "restore", "--all"});
  CHECK(quiet.exit == 1);
  CHECK(quiet.out == ran.out);  // only success is silent
}

TEST_CASE("explain sends the requested time") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(explain()); });
  CHECK(command.run({"explain", "web-1", "--at", "@1773585000"}).exit == 0);
  CHECK(command.run({"explain", "web-1", "--at", "-10m"}).exit == 0);
  REQUIRE(command.requests().size() == 2);
  CHECK(arguments_of(command.requests()[0])["at_seconds"] == 1'773'585'000);
  CHECK(arguments_of(command.requests()[1]).contains("at_seconds"));
}

TEST_CASE("events and history send time span and limit") {
  CommandRun command;
  command.serve([](const Request&) { return events_reply({}); });
  CHECK(command.run({"events", "--since", "@1000000", "--until", "@2000000", "-n", "5"}).exit == 0);
  CHECK(command.run({"history", "web-1"}).exit == 0);
  CHECK(arguments_of(command.requests().at(0)) ==
        json{{"from_seconds", 1e6}, {"until_seconds", 2e6}, {"limit", 5}});
  CHECK(arguments_of(command.requests().at(1)).contains("from_seconds"));
  CHECK(command.run({"history", "web-1", "--until", "@2000000"}).exit == 0);
  CHECK(arguments_of(command.requests().at(2))["from_seconds"] == 2e6 - 3600);
  CHECK(command.run({"events", "-f", "--until", "@2000000"}).exit == 2);
}

TEST_CASE("doctor runs without a daemon and prints findings as JSON") {
  CommandRun command;
  const Ran ran = command.run({"doctor", "--json", "--cgroup-root", "/nonexistent"});
  CHECK(ran.exit == 1);
  const json body = json::parse(ran.out);
  CHECK(body["worst"] == "fail");
  bool daemon_seen = false;
  for (const json& finding : body["findings"]) daemon_seen |= finding["name"] == "daemon";
  CHECK(daemon_seen);
}

TEST_CASE("doctor reports a daemon that answers") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(StatusReport{.version = "9.8.7"}); });
  const json body = json::parse(command.run({"doctor", "--json"}).out);
  for (const json& finding : body["findings"])
    if (finding["name"] == "daemon") CHECK(finding["level"] == "ok");
  REQUIRE(command.requests().size() == 1);
  CHECK(verb_of(command.requests()[0]) == Verb::status);
}

TEST_CASE("help and version exit with 0") {
  CommandRun command;
  CHECK(command.run({"--version"}).out.starts_with("cgphase "));
  CHECK(command.run({"--help"}).exit == 0);
  CHECK(command.run({"list", "--help"}).exit == 0);
}

TEST_CASE("completion prints what the package installs") {
  CommandRun command;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Ran ran = command.run({"completion", shell});
    CHECK(ran.exit == 0);
    CHECK(ran.out == content(CGPHASE_SOURCE_DIR "/packaging/completions/cgphase." + shell));
  }
}

TEST_CASE("completion offers the daemon's containers, and nothing without a daemon") {
  CommandRun command;
  command.through({"sh", "-c", "exec \"$0\" __complete \"$@\" ''"});
  Ran ran = command.run({"size"});
  CHECK(ran.exit == 0);
  CHECK(ran.out == "\n");  // an empty line: names of files
  CHECK(ran.err == "");
  command.serve([](const Request&) { return to_json(ListReply{{web()}}); });
  ran = command.run({"size"});
  CHECK(ran.out == "web-1\n\n");
  CHECK(command.run({"show"}).out == "web-1\n");
  CHECK(command.run({"mode", "enforce"}).out == "web-1\n");
  CHECK(command.run({"mode"}).out == "observe\nadvise\nenforce\ndefault\n");
  CHECK(command.run({"no-verb", "--no-option", "="}).err == "");
}

TEST_CASE("lost output fails the command, even if it is longer than a buffer") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(ListReply{std::vector(20, web())}); });
  REQUIRE(command.run({"list", "--json"}).out.size() > kOutputBuffer);
  command.through({"sh", "-c", "exec \"$0\" \"$@\" > /dev/full"});
  const Ran ran = command.run({"list", "--json"});
  CHECK(ran.exit == 1);
  CHECK(ran.err == "cgphase: cannot write standard output\n");
}

// systemd ignores SIGPIPE: there the second of two writes would fail. All must fit into a pipe.
TEST_CASE("output is written in one write, for a reader that stops early") {
  CommandRun command;
  command.serve([](const Request&) { return to_json(ListReply{std::vector(12, web())}); });
  REQUIRE(command.run({"list", "--json"}).out.size() > kOutputBuffer);
  command.through({"sh", "-c", "trap '' PIPE; { \"$0\" \"$@\" || echo lost >&2; } | head -c 1"});
  const Ran ran = command.run({"list", "--json"});
  CHECK(ran.out == "{");
  CHECK(ran.err == "");
}

TEST_CASE("events -f ends with its output") {
  CommandRun command;
  command.serve([&](const Request&) {
    if (command.requests().size() > 1) return error_reply(Exit::no_container, "asked again");
    return events_reply(std::vector(
        200, EventReport{.name = "web-1", .time = {}, .decision = {}, .outcome = {}}));
  });
  command.through({"sh", "-c", "exec \"$0\" \"$@\" > /dev/full"});
  CHECK(command.run({"events", "-f", "-o", "jsonl"}).exit == 1);
}

TEST_CASE_FIXTURE(Places, "-o writes into an existing pipe and does not replace it") {
  REQUIRE(predict(file).exit == 0);
  const Ran ran = predict(pipe);
  CHECK_MESSAGE(ran.exit == 0, ran.err);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(piped() == content(file));
  CHECK(plot(pipe).exit == 0);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(has(piped(), "<svg"));
}

TEST_CASE_FIXTURE(Places, "-o writes through a link to /dev/stdout and does not replace it") {
  REQUIRE(predict(file).exit == 0);
  CHECK(predict(link).out == content(file));
  CHECK(has(plot(link).out, "<svg"));
  CHECK(std::filesystem::is_symlink(link));
  // Appends to a file with content.
  const std::string both = command.directory() / "both";
  REQUIRE(replace_file(both, "before\n"));
  command.through({"sh", "-c", "exec \"$0\" \"$@\" >> " + both});
  CHECK(predict(link).exit == 0);
  CHECK(content(both) == "before\n" + content(file));
}

TEST_CASE_FIXTURE(Places, "-o refuses a link to a file and leaves the file unchanged") {
  const std::string to_file = command.directory() / "to-file";
  REQUIRE(replace_file(file, "old"));
  std::filesystem::create_symlink("file", to_file);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"predict", "--model", model, "--output", to_file, trace},
        {"plot", "--model", model, "-o", to_file, trace},
        {"export", "-o", to_file},
        {"record", "-o", to_file},
        {"bundle", "-o", to_file},
        {"model", "merge", "-o", to_file, model, model}}) {
    CAPTURE(words.front());
    const Ran ran = command.run(words);
    CHECK(ran.exit == 6);
    CHECK(one_line(ran.err));
    CHECK(has(ran.err, to_file + ": is a symbolic link: name the file it points to"));
  }
  CHECK(std::filesystem::is_symlink(to_file));
  CHECK(content(file) == "old");
}

TEST_CASE_FIXTURE(Places, "- and /dev/fd/1 are standard output") {
  REQUIRE(predict(file).exit == 0);
  for (const char* output : {"-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"}) {
    CAPTURE(output);
    CHECK(predict(output).out == content(file));
    CHECK(has(plot(output).out, "<svg"));
  }
  CHECK(predict("/dev/fd/777").exit != 0);
  CHECK_FALSE(std::filesystem::exists("-"));
}

TEST_CASE_FIXTURE(
    Places, "a model can be written to standard output, its summary then goes to standard error") {
  const std::string merged = command.directory() / "merged.json";
  REQUIRE(command.run({"model", "merge", "-o", merged, model, model}).exit == 0);
  const Ran ran = command.run({"model", "merge", "-o", "-", model, model});
  REQUIRE(ran.exit == 0);
  CHECK(ran.out == content(merged));
  CHECK(has(ran.err, "phase"));
  CHECK(command.run({"model", "merge", "-o", pipe, model, model}).exit == 0);
  CHECK(piped() == content(merged));
}

TEST_CASE_FIXTURE(Places, "-o refuses a folder") {
  CHECK(predict(command.directory() / ".").exit == 6);
  CHECK(predict(command.directory().path()).exit == 6);
}

TEST_CASE_FIXTURE(
    Places, "root does not write into another user's folder, and the message says what to do" *
                doctest::skip(::geteuid() != 0)) {
  const std::string folder = command.directory() / "theirs", at = folder + "/out";
  ::unsetenv("SUDO_UID");
  REQUIRE(std::filesystem::create_directory(folder));
  REQUIRE(::chown(folder.c_str(), 1000, 1000) == 0);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"predict", "--model", model, "--output", at, trace},
        {"plot", "--model", model, "-o", at, trace},
        {"export", "-o", at},
        {"record", "-o", at},
        {"bundle", "-o", at},
        {"prototypes", "--output", at, trace, "--model", model},
        {"model", "merge", "-o", at, model, model}}) {
    CAPTURE(words.front());
    const Ran ran = command.run(words);
    CHECK(ran.exit == 5);
    CHECK(one_line(ran.err));
    CHECK(has(ran.err, "-o -"));
  }
  CHECK(std::filesystem::is_empty(folder));
}
