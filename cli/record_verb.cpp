#include "cli/record_verb.h"

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/host_history.h"
#include "cli/offline.h"
#include "cli/print.h"
#include "cli/time_text.h"
#include "model/gzip_text.h"

namespace cgphase {
namespace {

struct RecordOptions {
  std::vector<std::string> containers;
  std::string output, since, until, state_dir;
};

// The time that `text` means; false, and a complaint, where it is none.
bool take_time(const std::string& text, bool utc, std::optional<WallTime>& time, int& exit_code) {
  if (text.empty()) return true;
  const Result<WallTime> parsed = parse_time(text, SystemClock().wall_now(), utc);
  if (parsed) time = *parsed;
  else exit_code = complain(Exit::usage, parsed.error().text);
  return parsed.has_value();
}

// A file that is written is there whole or, when anything fails, as it was before.
std::expected<HostTraceCounts, Complaint> record(const HostHistory& wanted,
                                                 const std::string& path) {
  const auto failed = [](const Status& status) { return complaint(status.error()); };
  Result<TextOutput> output = TextOutput::open(path);
  if (!output) return failed(std::unexpected(output.error()));
  std::optional<GzipText> gzip;
  if (path.ends_with(".gz")) gzip.emplace();
  std::string packed;
  const auto counts = write_host_trace(wanted, [&](std::string_view text) {
    if (!gzip) return output->write(text);
    packed.clear();
    gzip->add(text, packed);
    return output->write(packed);
  });
  if (!counts) return counts;
  packed.clear();
  if (gzip) gzip->finish(packed);
  if (const Status written = output->write(packed); !written) return failed(written);
  if (const Status done = output->finish(); !done) return failed(done);
  return counts;
}

int run(const RecordOptions& options, const CommonOptions& common) {
  HostHistory wanted{.socket = common.socket, .state_dir = options.state_dir,
                     .containers = options.containers, .since = {}, .until = {}};
  int exit_code = 0;
  if (!take_time(options.since, common.utc, wanted.since, exit_code) ||
      !take_time(options.until, common.utc, wanted.until, exit_code))
    return exit_code;
  const auto counts = record(wanted, options.output);
  if (!counts) return complain(counts.error());
  if (!common.quiet)
    fmt::print(stderr, "{}: {} rows of {} executions\n", printable(options.output), counts->rows,
               counts->executions);
  return 0;
}

}  // namespace

void add_record_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const verb =
      app.add_subcommand("record", "This host's history as a trace, for replay, predict and train");
  const auto words = std::make_shared<RecordOptions>();
  verb->add_option("container", words->containers,
                   "only these: name, id (4 characters or more) or cgroup path");
  verb->add_option("-o,--output", words->output, "trace to write: CSV, with gzip where it ends .gz")
      ->required();
  verb->add_option("--from,--since", words->since,
                   "begin (-10m, \"3m ago\", ISO, epoch) [all there is]");
  verb->add_option("--until", words->until, "end [now]");
  verb->add_option("--state-dir", words->state_dir,
                   "read the files of a daemon that does not run, instead of asking one that does");
  verb->callback([words, &options, &exit_code] { exit_code = run(*words, options); });
}

}  // namespace cgphase
