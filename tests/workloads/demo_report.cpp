// demo_report --lines: prints one sentence for each line of bench/host/run on standard input.
// demo_report DIR: judges what scripts/demo left in DIR: share.jsonl and pack.jsonl of
// bench/host/run, and round-*/{managed,twin}. Prints the rounds and one sentence, and writes
// DIR/report.txt. Exit: 0 all held, 1 not, 2 usage.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "tests/workloads/demo_host.h"
#include "tests/workloads/demo_raise.h"
#include "tests/workloads/demo_summary.h"

namespace {

using namespace cgphase;
using namespace cgphase::workloads;

constexpr std::size_t kMaxReportBytes = std::size_t{16} << 20;

Result<nlohmann::json> read_json(const std::string& path) {
  const auto text = read_file(path, kMaxReportBytes);
  if (!text) return std::unexpected(text.error());
  auto json = nlohmann::json::parse(*text, nullptr, false);
  if (json.is_discarded()) return failure(ErrorKind::invalid, path + ": not JSON");
  return json;
}

Result<std::vector<nlohmann::json>> read_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line, nullptr, false));
    if (lines.back().is_discarded()) return failure(ErrorKind::invalid, path + ": not JSON");
  }
  if (lines.empty()) return failure(ErrorKind::invalid, path + ": missing or empty");
  return lines;
}

// What the daemon recorded of one managed run.
Status read_raises(const std::string& run, Round& round) {
  const auto events = read_lines(run + "/events.jsonl");
  if (!events) return std::unexpected(events.error());
  try {
    for (const nlohmann::json& container : round.managed.at("containers")) {
      const auto name = container.at("name").get<std::string>();
      const auto points = read_lines(fmt::format("{}/history-{}.jsonl", run, name));
      if (!points) return std::unexpected(points.error());
      const double begin =
          container.at("ended_at").get<double>() - container.at("seconds").get<double>();
      for (Raise& raise : raises_before_phases(name, begin, *events, *points))
        round.raises.push_back(std::move(raise));
    }
  } catch (const nlohmann::json::exception& error) {
    return failure(ErrorKind::invalid, fmt::format("{}: {}", run, error.what()));
  }
  return {};
}

Result<std::vector<Round>> read_rounds(const std::string& directory) {
  std::vector<Round> rounds;
  while (true) {
    const std::string path = fmt::format("{}/round-{}", directory, rounds.size() + 1);
    if (!std::filesystem::exists(path)) return rounds;
    auto managed = read_json(path + "/managed/run.json");
    if (!managed) return std::unexpected(managed.error());
    auto twin = read_json(path + "/twin/run.json");
    if (!twin) return std::unexpected(twin.error());
    Round round{std::move(*managed), std::move(*twin)};
    if (const Status read = read_raises(path + "/managed", round); !read)
      return std::unexpected(read.error());
    rounds.push_back(std::move(round));
  }
}

Status take_lines(const std::string& path, DemoHost& host) {
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line);)
    if (const auto sentence = host.add(line); !sentence) return std::unexpected(sentence.error());
  return {};
}

// Prints each sentence as soon as its line is there.
Result<bool> print_lines() {
  DemoHost host;
  for (std::string line; std::getline(std::cin, line);) {
    const auto sentence = host.add(line);
    if (!sentence) return std::unexpected(sentence.error());
    std::fputs(sentence->c_str(), stdout);
    std::fflush(stdout);
  }
  return true;
}

Result<bool> report(const std::string& directory) {
  DemoHost host;
  for (const char* name : {"/share.jsonl", "/pack.jsonl"})
    if (const Status taken = take_lines(directory + name, host); !taken)
      return std::unexpected(taken.error());
  const auto rounds = read_rounds(directory);
  if (!rounds) return std::unexpected(rounds.error());
  const auto summary = summarise(*rounds);
  if (!summary) return std::unexpected(summary.error());
  std::vector<Requirement> all = host.requirements();
  all.insert(all.end(), summary->requirements.begin(), summary->requirements.end());
  std::string details = to_details(*summary, *rounds) + "\nmust hold\n";
  for (const Requirement& one : all)
    details += fmt::format("  {}  {}\n", one.held ? "yes" : "NO ", one.text);
  if (auto status = replace_file(directory + "/report.txt", details); !status)
    return std::unexpected(status.error());
  fmt::print("{}{}", to_raises(*summary), to_table(*summary));
  if (!summary->raises.empty())
    fmt::print("The picture of {} is {}/round-{}/managed/{}.svg.\n",
               summary->raises[0].container, directory, rounds->size(),
               summary->raises[0].container);
  fmt::print("All numbers are in {}/report.txt.\n\n{}", directory,
             to_sentence(all, host.numbers() + "; " + to_numbers(*summary)));
  return all_held(all);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || (argv[1][0] == '-' && std::string_view(argv[1]) != "--lines")) {
    std::fputs("usage: demo_report --lines | DIR\n", stderr);
    return 2;
  }
  const auto held = argv[1][0] == '-' ? print_lines() : report(argv[1]);
  if (!held) std::fprintf(stderr, "demo_report: %s\n", held.error().text.c_str());
  return held && *held ? 0 : 1;
}
