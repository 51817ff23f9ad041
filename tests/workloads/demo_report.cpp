// demo_report DIR [OTHER...]: evaluates DIR/round-*/{managed,twin}/run.json, prints the summary and
// writes DIR/summary.json. OTHER are summary.json files of runs with other policies, printed for
// comparison. Exit status: 0 if every requirement is met, 1 if not, 2 for wrong arguments.
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <span>

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

// Which policy saved more on the same mix and seed.
void print_comparison(const nlohmann::json& mine, std::span<char*> others) {
  std::puts("\npolicies on this mix and seed   core-hours  GiB-hours  CPU/unit  wall");
  const auto print_row = [](const nlohmann::json& row) {
    fmt::print("  {:<28}  {:8.0f} %  {:7.0f} %  {:8.3f}  {:.3f}\n",
               row.at("policy").get<std::string>(), 100 * row.at("cpu_share").get<double>(),
               100 * row.at("memory_share").get<double>(), largest_ratio(row, "cpu_ratio"),
               largest_ratio(row, "wall_ratio"));
  };
  print_row(mine);
  for (const char* path : others) {
    const auto other = read_json(path);
    if (!other || other->value("policy", "") == mine.at("policy") ||
        other->value("seed", std::uint64_t{0}) != mine.at("seed"))
      continue;
    print_row(*other);
    for (const char* key : {"cpu_share", "memory_share"})
      if (other->at(key).get<double>() > mine.at(key).get<double>())
        fmt::print("  here {} gave back more {} than {}\n", other->at("policy").get<std::string>(),
                   std::string_view(key) == "cpu_share" ? "core-hours" : "GiB-hours",
                   mine.at("policy").get<std::string>());
  }
}

Result<bool> report(const std::string& directory, std::span<char*> others) {
  const auto rounds = read_rounds(directory);
  if (!rounds) return std::unexpected(rounds.error());
  const auto summary = summarise(*rounds);
  if (!summary) return std::unexpected(summary.error());
  std::fputs(to_text(*summary, *rounds).c_str(), stdout);
  const nlohmann::json json = to_json(*summary);
  if (!others.empty()) print_comparison(json, others);
  if (auto status = replace_file(directory + "/summary.json", json.dump(1) + "\n"); !status)
    return std::unexpected(status.error());
  return summary->held();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fputs("usage: demo_report DIR [SUMMARY...]\n", stderr);
    return 2;
  }
  const auto held = report(argv[1], std::span(argv + 2, static_cast<std::size_t>(argc - 2)));
  if (!held) std::fprintf(stderr, "demo_report: %s\n", held.error().text.c_str());
  return held && *held ? 0 : 1;
}
