#include "cli/commands/top.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "protocol/report.h"
#include "tests/cli/command_run.h"
#include "tests/cli/reports.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

ContainerReport named(const char* name, double cores, double mib) {
  ContainerReport report = web();
  report.container.name = name;
  report.cpu_cores = cores;
  report.memory_need_bytes = static_cast<std::uint64_t>(mib * kMiBs);
  return report;
}

ListReply three() {
  return {{named("b", 0.5, 30), named("a", 0.2, 20), named("c", 0.9, 10)}};
}

std::string names(const ListReply& list) {
  std::string text;
  for (const ContainerReport& one : list.containers) text += one.container.name;
  return text;
}

std::string names_by(TopOrder order) {
  ListReply list = three();
  sort_containers(list, order);
  return names(list);
}

json three_and_status(const Request& request) {
  return verb_of(request) == Verb::status ? to_json(status()) : to_json(three());
}

}  // namespace

TEST_CASE("containers that use most come first") {
  CHECK(names_by(TopOrder::cpu) == "cba");
  CHECK(names_by(TopOrder::memory) == "bac");
  CHECK(names_by(TopOrder::name) == "abc");
  CHECK(names_by(TopOrder::saved) == "bac");  // all save the same
}

TEST_CASE("a container without measurements comes last") {
  ContainerReport unknown = fresh();
  unknown.container.name = "unknown";
  ListReply list{{unknown, named("idle", 0, 0)}};
  sort_containers(list, TopOrder::cpu);
  CHECK(names(list) == "idleunknown");
}

TEST_CASE("a frame has the lines that fit and clears each first") {
  const std::string head = "\x1b[H\x1b[?7l", below = "\x1b[J", end = "\x1b[?7h";
  CHECK(top_frame("one\ntwo\nthree\n", 2) == head + "\x1b[Kone\n\x1b[Ktwo" + end);
  CHECK(top_frame("one\ntwo\n", 3) == head + "\x1b[Kone\n\x1b[Ktwo\n" + below + end);
  CHECK(top_frame("one\n", 0) == head + "\x1b[Kone\n" + below + end);
  CHECK(top_frame("", 5) == head + below + end);
}

TEST_CASE("top into a pipe prints a sorted list, once or as often as requested") {
  CommandRun command;
  command.serve(three_and_status);
  const Ran once = command.run({"top", "--no-legend"});
  CHECK(once.exit == 0);
  CHECK(once.out.substr(0, 1) == "c");
  CHECK(once.out.find('\x1b') == std::string::npos);
  const Ran twice = command.run({"top", "-n", "2", "-d", "0.1", "--sort", "name", "-o", "jsonl"});
  CHECK(twice.exit == 0);
  std::string seen;
  for (std::size_t begin = 0; begin < twice.out.size();) {
    const std::size_t end = twice.out.find('\n', begin);
    seen += json::parse(twice.out.substr(begin, end - begin))["name"].get<std::string>();
    begin = end + 1;
  }
  CHECK(seen == "abcabc");
}

TEST_CASE("successive lists of top form one valid output") {
  CommandRun command;
  command.serve(three_and_status);
  const auto lines = [&](const char* form) {
    const Ran ran = command.run({"top", "-n", "2", "-d", "0.1", "-o", form});
    CHECK(ran.exit == 0);
    return std::ranges::count(ran.out, '\n');
  };
  CHECK(lines("json") == 2);
  CHECK(lines("csv") == 1 + 2 * 3);
  CHECK(json::parse(command.run({"top", "--json"}).out)["containers"].size() == 3);
  CHECK(command.run({"top", "-n", "2", "-o", "openmetrics"}).exit == 2);
  CHECK(command.run({"top", "-o", "openmetrics"}).exit == 0);
}

TEST_CASE("top on a terminal draws until q or a signal, and restores the terminal") {
  CommandRun command;
  command.serve(three_and_status);
  for (const auto& [end, exit] : {std::pair("q", 0), std::pair("\x03", 128 + SIGINT),
                                  std::pair("TERM", 128 + SIGTERM)}) {
    command.through({"python3", CGPHASE_SOURCE_DIR "/tests/cli/in_terminal.py", end});
    const Ran ran = command.run({"top", "-d", "600"});
    INFO(end, ": ", ran.out);
    CHECK(ran.exit == exit);
    CHECK(ran.err == "keys as they are pressed\nthe terminal is as it was\n");
    CHECK(ran.out.starts_with("\x1b[2J\x1b[H"));
    CHECK(ran.out.find("0.90") != std::string::npos);
  }
}

TEST_CASE("top on a terminal reports a stopped daemon below its last frame") {
  CommandRun command;
  int asked = 0;
  command.serve([&asked](const Request& request) {
    return ++asked <= 2 ? three_and_status(request)
                        : error_reply({ErrorKind::io, "gone"});
  });
  command.through({"python3", CGPHASE_SOURCE_DIR "/tests/cli/in_terminal.py", ""});
  const Ran ran = command.run({"top", "-d", "0.1"});
  INFO(ran.out);
  CHECK(ran.exit != 0);
  CHECK(ran.err == "keys as they are pressed\nthe terminal is as it was\n");
  CHECK(ran.out.find("\x1b[?7h\r\ncgphase: ") != std::string::npos);
}

TEST_CASE("top without a daemon fails like every verb") {
  CommandRun command;
  CHECK(command.run({"top"}).exit == 4);
  for (const char* number : {"0", "-1", "x"})
    CHECK(command.run({"top", "-n", number}).exit == 2);
  for (const char* seconds : {"0", "nan", "inf", "-1"})
    CHECK(command.run({"top", "-d", seconds}).exit == 2);
  CHECK(command.run({"top", "--sort", "luck"}).exit == 2);
}
