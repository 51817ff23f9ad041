// The verb export: writes this host's history into a database of plain tables.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_file.h"
#include "base/text.h"
#include "cli/commands/history_verbs.h"
#include "cli/commands/interruption.h"
#include "cli/commands/verbs.h"
#include "cli/host_history.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/output/time_text.h"
#include "protocol/history.h"
#include "storage/snapshot.h"

namespace cgphase {
namespace {

struct ExportOptions {
  std::string output, since, until, state_dir;
  bool samples = true;
};

constexpr const char* kTimeColumn = "time_ns";
const std::vector<TableColumn> kPhaseColumns = {
    {"container", "INTEGER"},   {"first_ns", "INTEGER"}, {"last_ns", "INTEGER"},
    {"phase_state", "TEXT"},    {"phase_index", "INTEGER"},
    {"sample_count", "INTEGER"}};
const std::vector<TableColumn> kAboutColumns = {
    {"program", "TEXT"}, {"written_ns", "INTEGER"}, {"since_ns", "INTEGER"},
    {"until_ns", "INTEGER"}};

// Writes the history that is read into the tables of a snapshot.
class Exporter {
 public:
  Exporter(Snapshot snapshot, std::optional<WallTime> since, WallTime until, bool with_samples)
      : snapshot_(std::move(snapshot)), since_(since), until_(until), with_samples_(with_samples) {}

  std::size_t journal_rows = 0, samples = 0;

  // Writes the table that describes the file, and the tables whose columns no page names.
  Status begin() {
    const auto ns = [](WallTime time) { return std::int64_t{time.time_since_epoch().count()}; };
    std::vector<SqlValue> about = {"cgphase " CGPHASE_VERSION, ns(SystemClock().wall_now()), {},
                                   ns(until_)};
    if (since_) about[2] = ns(*since_);
    if (Status made = snapshot_.add_table("snapshot", kAboutColumns, false); !made) return made;
    if (Status added = snapshot_.add_row("snapshot", about); !added) return added;
    if (Status made = snapshot_.add_table("phase", kPhaseColumns, false); !made) return made;
    if (!with_samples_) return {};
    std::vector<TableColumn> columns = plain_columns();
    columns.insert(columns.begin(), {"container", "INTEGER"});
    return snapshot_.add_table("sample", columns, false);
  }

  // Leaves out rows that have a time outside the wanted span.
  Status add_page(const std::string& table, const TablePage& page) {
    if (Status more = not_interrupted(); !more) return more;
    if (table_ != table) {
      table_ = table;
      made_ = false;
    }
    if (!made_ && !page.columns.empty()) {
      if (Status made = snapshot_.add_table(table, page.columns, true); !made) return made;
      made_ = true;
    }
    const auto time = std::ranges::find(page.columns, kTimeColumn, &TableColumn::name);
    const auto place = static_cast<std::size_t>(time - page.columns.begin());
    for (const auto& row : page.rows) {
      if (time != page.columns.end() && !wanted(row[place])) continue;
      if (Status added = snapshot_.add_row(table, row); !added) return added;
      if (time != page.columns.end()) journal_rows += 1;
    }
    return {};
  }

  Status add_point(std::int64_t container, const HistoryPoint& point) {
    if (Status more = not_interrupted(); !more) return more;
    samples += 1;
    if (!same_phase(container, point.phase)) {
      if (Status ended = end_phase(); !ended) return ended;
      phase_ = {container, point.phase, point.time, point.time, 0};
    }
    phase_->last = point.time;
    phase_->count += 1;
    if (!with_samples_) return {};
    std::vector<SqlValue> values = plain_values(point);
    values.insert(values.begin(), container);
    return snapshot_.add_row("sample", values);
  }

  Status finish() {
    if (Status ended = end_phase(); !ended) return ended;
    if (with_samples_)
      if (Status made = snapshot_.add_index("sample", "container, time_ns"); !made) return made;
    if (Status made = snapshot_.add_index("phase", "container, first_ns"); !made) return made;
    if (Status more = not_interrupted(); !more) return more;
    return snapshot_.finish();
  }

 private:
  // Successive samples of one container in one phase.
  struct PhaseRun {
    std::int64_t container = 0;
    Phase phase;
    WallTime first, last;
    std::int64_t count = 0;
  };

  bool wanted(const SqlValue& time) const {
    const auto* const ns = std::get_if<std::int64_t>(&time);
    return ns == nullptr || ((!since_ || *ns >= since_->time_since_epoch().count()) &&
                             *ns <= until_.time_since_epoch().count());
  }

  bool same_phase(std::int64_t container, const Phase& phase) const {
    return phase_ && phase_->container == container && phase_->phase.state == phase.state &&
           phase_->phase.index == phase.index;
  }

  Status end_phase() {
    if (!phase_) return {};
    const PhaseRun run = *std::exchange(phase_, std::nullopt);
    SqlValue index;
    if (run.phase.known()) index = std::int64_t{run.phase.index};
    return snapshot_.add_row(
        "phase", std::vector<SqlValue>{run.container, run.first.time_since_epoch().count(),
                                       run.last.time_since_epoch().count(),
                                       std::string(to_string(run.phase.state)), index, run.count});
  }

  Snapshot snapshot_;
  std::optional<WallTime> since_;
  WallTime until_;
  bool with_samples_;
  std::string table_;  // the table being read
  bool made_ = false;  // its columns were created
  std::optional<PhaseRun> phase_;
};

// The file is written completely or, if anything fails, left unchanged.
int write_export(HostHistory wanted, const ExportOptions& options, bool quiet) {
  const auto failed = [](const Error& error) { return complain(complaint(error).error()); };
  catch_interruptions();
  Result<TextOutput> output = TextOutput::open(options.output, 0640);
  if (!output) return failed(output.error());
  // SQLite opens its file by path, so it writes in a folder that nobody else can change.
  const Result<PrivateFolder> folder = PrivateFolder::make();
  if (!folder) return failed(folder.error());
  const std::string database = folder->path() + "/export.db";
  Result<Snapshot> snapshot = Snapshot::create(database);
  if (!snapshot) return failed(snapshot.error());
  wanted.until = wanted.until.value_or(SystemClock().wall_now());
  Exporter exporter(*std::move(snapshot), wanted.since, *wanted.until, options.samples);
  if (const Status begun = exporter.begin(); !begun) return failed(begun.error());
  const auto read = read_host_history(
      wanted, {.table = [&](const std::string& table,
                            const TablePage& page) { return exporter.add_page(table, page); },
               .point = [&](std::int64_t container, const HistoryPoint& point) {
                 return exporter.add_point(container, point);
               }});
  if (!read) return complain(read.error());
  if (const Status done = exporter.finish(); !done) return failed(done.error());
  if (const Status copied = output->copy(database); !copied) return failed(copied.error());
  if (const Status done = output->finish(); !done) return failed(done.error());
  if (!quiet)
    fmt::print(stderr, "{}: {} rows of the journal, {}{} samples\n", printable(options.output),
               exporter.journal_rows, options.samples ? "" : "phases of ", exporter.samples);
  return 0;
}

int run_export(const ExportOptions& options, const CommonOptions& common) {
  HostHistory wanted{.socket = common.socket, .state_dir = options.state_dir, .containers = {},
                     .since = {}, .until = {}};
  for (const auto& [text, time] : {std::pair(&options.since, &wanted.since),
                                   std::pair(&options.until, &wanted.until)}) {
    if (text->empty()) continue;
    const Result<WallTime> parsed = parse_time(*text, SystemClock().wall_now(), common.utc);
    if (!parsed) return complain(Exit::usage, parsed.error().text);
    *time = *parsed;
  }
  wanted.incomplete = complain_incomplete;
  return write_export(std::move(wanted), options, common.quiet);
}

}  // namespace

void add_export_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "export", "Write journal, phases and samples into a SQLite database of plain tables");
  const auto words = std::make_shared<ExportOptions>();
  verb->add_option("-o,--output", words->output,
                   "Database to write; an existing file is replaced; - is standard output")
      ->type_name("FILE")
      ->required();
  verb->add_option("--from,--since", words->since,
                   "Start time (-10m, \"3m ago\", ISO, epoch) [oldest]")
      ->type_name("TIME");
  verb->add_option("--until", words->until, "End time [now]")->type_name("TIME");
  verb->add_flag_callback(
      "--no-samples", [words] { words->samples = false; }, "Leave out the samples");
  verb->add_option("--state-dir", words->state_dir, "Read the files of a daemon that does not run")
      ->type_name("DIR");
  verb->callback([words, &options, &exit_code] { exit_code = run_export(*words, options); });
}

}  // namespace cgphase
