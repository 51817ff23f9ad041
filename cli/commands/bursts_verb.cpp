// The verb bursts: idle and burst times of network and GPU, and how well earlier runs predict them.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands/verbs.h"
#include "cli/options.h"
#include "cli/output/bursts.h"
#include "cli/output/print.h"

namespace cgphase {
namespace {

struct BurstsOptions {
  std::vector<std::string> files;
  bool network_per_interval = false;
};

constexpr CsvColumn kBurstColumns[] = {
    {"service", "/service"}, {"execution", "/execution"}, {"series", "/series"},
    {"number", "/number"}, {"count", "/count"}, {"mean", "/mean"}, {"sd", "/sd"},
    {"predicted", "/predicted"}, {"relative_error", "/relative_error"}};
const Form kBurstsForm{.text = render_bursts, .rows = "/rows", .columns = kBurstColumns};

int report_bursts(const BurstsOptions& options, const CommonOptions& common) {
  const auto runs = read_burst_runs(options.files, options.network_per_interval);
  if (!runs) return complain(complaint(runs.error()).error());
  return print(kBurstsForm, bursts_report(*runs), common);
}

}  // namespace

void add_bursts_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "bursts",
      "Show idle and burst times of network and GPU, and how well earlier runs predict them");
  const auto words = std::make_shared<BurstsOptions>();
  verb->add_option("files", words->files, "Traces, CSV or CSV.gz")->type_name("TRACE")->required();
  verb->add_flag("--network-per-interval", words->network_per_interval,
                 "net.rx.bytes and net.tx.bytes are bytes per interval, not counters");
  verb->callback([words, &options, &exit_code] { exit_code = report_bursts(*words, options); });
}

}  // namespace cgphase
