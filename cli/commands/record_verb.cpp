// The verb record: writes this host's history as a trace file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "cli/commands/history_verbs.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/host_history.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/output/time_text.h"
#include "traces/gzip_text.h"

namespace cgphase {
namespace {

struct RecordOptions {
  std::vector<std::string> containers;
  std::string output, since, until, state_dir, duration;
};

constexpr std::chrono::nanoseconds kLongestRecord = std::chrono::hours(24 * 30);

// Blocks the signals that end the wait, except ignored ones (nohup), while this object lives or
// until unblock(). A signal after the wait then loses nothing of what was recorded.
class EndingSignals {
 public:
  EndingSignals() {
    ::sigemptyset(&ending_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
      struct sigaction now{};
      ::sigaction(signal, nullptr, &now);
      if (now.sa_handler != SIG_IGN) ::sigaddset(&ending_, signal);
    }
    ::pthread_sigmask(SIG_BLOCK, &ending_, &before_);
  }
  EndingSignals(const EndingSignals&) = delete;
  EndingSignals& operator=(const EndingSignals&) = delete;
  ~EndingSignals() {
    for (const int signal : {SIGTERM, SIGHUP}) ::signal(signal, SIG_IGN);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

  // Waits for such a signal, at most this long.
  void wait(std::chrono::nanoseconds duration) const {
    const auto end = std::chrono::steady_clock::now() + duration;
    for (;;) {
      const auto left = std::max(end - std::chrono::steady_clock::now(), duration.zero());
      const auto whole = std::chrono::floor<std::chrono::seconds>(left);
      const timespec time{whole.count(), (left - whole).count()};
      if (::sigtimedwait(&ending_, nullptr, &time) >= 0 || errno != EINTR) return;
    }
  }

  // Restores the signals: they end the command at once again.
  void unblock() const { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  // True if Ctrl-C came after the wait. The pending signal ends the command when this object is
  // destroyed.
  bool interrupted() const {
    sigset_t pending;
    ::sigpending(&pending);
    return ::sigismember(&ending_, SIGINT) == 1 && ::sigismember(&pending, SIGINT) == 1;
  }

 private:
  sigset_t ending_, before_;
};

// Parses a time. Returns false after a complaint if `text` is not a time.
bool take_time(const std::string& text, bool utc, std::optional<WallTime>& time, int& exit_code) {
  if (text.empty()) return true;
  const Result<WallTime> parsed = parse_time(text, SystemClock().wall_now(), utc);
  if (parsed) time = *parsed;
  else exit_code = complain(Exit::usage, parsed.error().text);
  return parsed.has_value();
}

// Reports before the wait if the file cannot be written. A pipe is opened now, because its reader
// waits, too. A regular file is opened later: a killed wait would leave its temporary file behind.
Status open_early(const std::string& path, std::optional<TextOutput>& output) {
  Result<TextOutput> opened = TextOutput::open(path);
  if (!opened) return std::unexpected(opened.error());
  if (opened->writes_through()) output.emplace(*std::move(opened));
  return {};
}

// Waits for the duration. Before the wait it reports a daemon that does not answer and containers
// that do not exist yet.
std::optional<Complaint> follow(const std::string& duration_text, HostHistory& wanted,
                                std::optional<EndingSignals>& signals) {
  if (wanted.since || wanted.until || !wanted.state_dir.empty())
    return Complaint{Exit::usage,
                     "--for records from now on: leave out --since, --until and --state-dir"};
  const auto ns = parse_duration_ns(duration_text);
  if (!ns || *ns == 0 || std::chrono::nanoseconds(*ns) > kLongestRecord)
    return Complaint{Exit::usage, "--for " + escape_name(duration_text) +
                                      " is not a duration up to 30 days (90s, 10m, 2h)"};
  const auto there = ask_daemon(wanted.socket, RecordsRequest{});
  if (!there) return there.error();
  for (const std::string& name : wanted.containers) {
    const auto known =
        ask_daemon(wanted.socket, ShowRequest{.container = name});
    if (!known && known.error().exit == Exit::no_container)
      complain(Exit::ok, "no container '" + escape_name(name) + "' yet; waiting for it");
  }
  wanted.from_now = true;
  wanted.since = SystemClock().wall_now();
  signals.emplace();
  signals->wait(std::chrono::nanoseconds(*ns));
  wanted.until = SystemClock().wall_now();
  return std::nullopt;
}

// A file is written completely or, if anything fails, left unchanged. A pipe may receive a part.
std::expected<HostTraceCounts, Complaint> record(HostHistory wanted,
                                                 const RecordOptions& options) {
  const auto failed = [](const Status& status) { return complaint(status.error()); };
  const std::string& path = options.output;
  std::optional<EndingSignals> signals;  // outlives the output, which cleans up
  const auto go_on = [&signals] {
    return signals && signals->interrupted() ? failure(ErrorKind::io, "interrupted") : Status{};
  };
  std::optional<TextOutput> output;
  if (!options.duration.empty()) {
    if (const Status place = open_early(path, output); !place) return failed(place);
    if (const auto wrong = follow(options.duration, wanted, signals))
      return std::unexpected(*wrong);
    // The reader of a pipe may block us for ever, and there is no temporary file to remove.
    if (output) signals->unblock();
  }
  if (!output) {
    Result<TextOutput> opened = TextOutput::open(path);
    if (!opened) return failed(std::unexpected(opened.error()));
    output.emplace(*std::move(opened));
  }
  std::optional<GzipText> gzip;
  if (path.ends_with(".gz")) gzip.emplace();
  std::string packed;
  const auto counts = write_host_trace(wanted, [&](std::string_view text) {
    if (const Status more = go_on(); !more) return more;
    if (!gzip) return output->write(text);
    packed.clear();
    gzip->add(text, packed);
    return output->write(packed);
  });
  if (!counts) return counts;
  packed.clear();
  if (gzip) gzip->finish(packed);
  if (const Status written = output->write(packed); !written) return failed(written);
  if (const Status more = go_on(); !more) return failed(more);
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
  wanted.incomplete = complain_incomplete;
  const auto counts = record(std::move(wanted), options);
  if (!counts) return complain(counts.error());
  if (!common.quiet)
    fmt::print(stderr, "{}: {} rows of {} executions\n", printable(options.output), counts->rows,
               counts->executions);
  return 0;
}

}  // namespace

void add_record_verb(CLI::App& app, const CommonOptions& options, int& exit_code) {
  CLI::App* const verb = app.add_subcommand(
      "record", "Write this host's history as a trace, for replay, predict and train");
  const auto words = std::make_shared<RecordOptions>();
  verb->add_option("container", words->containers,
                   "Only these containers: name, id (4 or more characters) or cgroup path")
      ->type_name("CONTAINER");
  verb->add_option("-o,--output", words->output,
                   "Trace to write: CSV, with gzip if the name ends in .gz")
      ->type_name("FILE")
      ->required();
  verb->add_option("--from,--since", words->since,
                   "Start time (-10m, \"3m ago\", ISO, epoch) [oldest]")
      ->type_name("TIME");
  verb->add_option("--until", words->until, "End time [now]")->type_name("TIME");
  verb->add_option("--for", words->duration,
                   "Record from now on for this time (90s, 10m, 2h); Ctrl-C ends it earlier")
      ->type_name("DURATION");
  verb->add_option("--state-dir", words->state_dir, "Read the files of a daemon that does not run")
      ->type_name("DIR");
  verb->callback([words, &options, &exit_code] { exit_code = run(*words, options); });
}

}  // namespace cgphase
