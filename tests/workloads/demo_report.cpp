// demo_report [--progress] DIR [OTHER...]: judges DIR/round-*/{managed,twin}/run.json. Prints one
// row per job and one sentence, and writes DIR/report.txt and DIR/summary.json. OTHER are
// summary.json files of runs with other policies, compared in the report. With --progress it prints
// one sentence on the last round and writes nothing. Exit: 0 all held, 1 not, 2 usage.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "base/file.h"
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

Result<std::vector<Round>> read_rounds(const std::string& directory) {
  std::vector<Round> rounds;
  while (true) {
    const std::string round = fmt::format("{}/round-{}", directory, rounds.size() + 1);
    if (!std::filesystem::exists(round)) return rounds;
    auto managed = read_json(round + "/managed/run.json");
    if (!managed) return std::unexpected(managed.error());
    auto twin = read_json(round + "/twin/run.json");
    if (!twin) return std::unexpected(twin.error());
    rounds.push_back({std::move(*managed), std::move(*twin)});
  }
}

double largest_ratio(const nlohmann::json& summary, const char* key) {
  double largest = 0;
  for (const nlohmann::json& one : summary.at("containers"))
    largest = std::max(largest, one.at(key).get<double>());
  return largest;
}

// Which policy gave back more on the same mix and seed.
std::string comparison(const nlohmann::json& mine, std::span<char*> others) {
  std::string text = "\npolicies on this mix and seed   core-hours  GiB-hours  CPU/unit  wall\n";
  const auto append_row = [&text](const nlohmann::json& row) {
    text += fmt::format(
        "  {:<28}  {:8.0f} %  {:7.0f} %  {:8.3f}  {:.3f}\n", row.at("policy").get<std::string>(),
        100 * row.at("cpu_share").get<double>(), 100 * row.at("memory_share").get<double>(),
        largest_ratio(row, "cpu_ratio"), largest_ratio(row, "wall_ratio"));
  };
  append_row(mine);
  for (const char* path : others) {
    const auto other = read_json(path);
    if (other && other->value("policy", "") != mine.at("policy") &&
        other->value("seed", std::uint64_t{0}) == mine.at("seed"))
      append_row(*other);
  }
  return text;
}

Result<bool> print_progress(const std::string& directory) {
  const auto rounds = read_rounds(directory);
  if (!rounds) return std::unexpected(rounds.error());
  const auto summary = summarise(*rounds);
  if (!summary) return std::unexpected(summary.error());
  std::fputs(to_progress(*summary).c_str(), stdout);
  return true;
}

Result<bool> report(const std::string& directory, std::span<char*> others) {
  const auto rounds = read_rounds(directory);
  if (!rounds) return std::unexpected(rounds.error());
  const auto summary = summarise(*rounds);
  if (!summary) return std::unexpected(summary.error());
  const nlohmann::json json = to_json(*summary);
  std::string details = to_details(*summary, *rounds);
  if (!others.empty()) details += comparison(json, others);
  for (const auto& [name, text] :
       {std::pair{"/report.txt", details}, std::pair{"/summary.json", json.dump(1) + "\n"}})
    if (auto status = replace_file(directory + name, text); !status)
      return std::unexpected(status.error());
  fmt::print("{}\nAll numbers are in {}/report.txt.\n\n{}", to_table(*summary), directory,
             to_sentence(*summary));
  return summary->held();
}

}  // namespace

int main(int argc, char** argv) {
  const bool progress = argc == 3 && std::string_view(argv[1]) == "--progress";
  if (argc < 2 || (argv[1][0] == '-' && !progress)) {
    std::fputs("usage: demo_report [--progress] DIR [SUMMARY...]\n", stderr);
    return 2;
  }
  const auto held = progress
                        ? print_progress(argv[2])
                        : report(argv[1], std::span(argv + 2, static_cast<std::size_t>(argc - 2)));
  if (!held) std::fprintf(stderr, "demo_report: %s\n", held.error().text.c_str());
  return held && *held ? 0 : 1;
}
