// Verbs that send a request to the daemon: status, list, show, explain, history, events, mode,
// pause, resume, pin, restore.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/parse.h"
#include "base/result.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/commands/history_source.h"
#include "cli/commands/history_verbs.h"
#include "cli/commands/restore_alone.h"
#include "cli/commands/verbs.h"
#include "cli/daemon_client.h"
#include "cli/options.h"
#include "cli/output/print.h"
#include "cli/output/time_text.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

constexpr double kHistoryDefaultSeconds = 3600;

// Arguments of the verbs beyond the common options. Each verb has its own object, which lives as
// long as its callback.
struct Words {
  std::string container, mode, pin, at, from, until, cgroup_root = "/sys/fs/cgroup", state_dir;
  std::vector<std::string> containers;
  int limit = 0;
  bool all = false, follow = false, until_restart = false;
};

// Parses `text` into `seconds`. Empty text is no error. Returns false and sets the exit code if
// `text` is not a time.
bool take_time(const std::string& text, const CommonOptions& options,
               std::optional<double>& seconds, int& exit_code) {
  if (text.empty()) return true;
  const Result<WallTime> time = parse_time(text, SystemClock().wall_now(), options.utc);
  if (!time) {
    exit_code = complain(Exit::usage, time.error().text);
    return false;
  }
  seconds = seconds_since_epoch(*time);
  return true;
}

int ask_and_print(const Request& request, const Form& form, const CommonOptions& options,
                  const std::string& state_dir = "") {
  const auto ask = history_source(options, state_dir);
  if (!ask) return complain(ask.error());
  const auto body = (*ask)(request);
  if (!body) return complain(body.error());
  return print(form, *body, options);
}

int print_action(const ActionReport& report, const CommonOptions& options) {
  const bool failed = !report.failures.empty();
  const int printed =
      options.silent() && !failed ? 0 : print(kActionForm, to_json(report), options);
  return failed ? static_cast<int>(Exit::failure) : printed;
}

int act(const Request& request, const CommonOptions& options) {
  const auto report = ask_for<ActionReport>(options.admin_socket(), request);
  return report ? print_action(*report, options) : complain(report.error());
}

// Sends the request for each container. Returns the exit code of the first that fails.
template <class R>
int act_on_each(R request, const std::vector<std::string>& containers,
                const CommonOptions& options) {
  int exit_code = 0;
  for (const std::string& container : containers) {
    request.container = container;
    const int code = act(request, options);
    if (exit_code == 0) exit_code = code;
  }
  return exit_code;
}

int restore(const Words& words, const CommonOptions& options) {
  if (words.all == !words.containers.empty())
    return complain(Exit::usage, "restore: name a container or use --all");
  if (!words.all) return act_on_each(RestoreRequest{}, words.containers, options);
  const auto report = ask_for<ActionReport>(options.admin_socket(), RestoreRequest{.all = true});
  if (report) return print_action(*report, options);
  if (report.error().exit != Exit::unreachable) return complain(report.error());
  const std::string program = find_restore_program();
  if (program.empty())
    return complain(Exit::unreachable,
                    report.error().text +
                        "; cgphase-restore, which works without it, was not found");
  const auto alone = restore_alone(program, options.runtime_directory(), words.cgroup_root);
  return alone ? print_action(*alone, options) : complain(alone.error());
}

int explain(const Words& words, const CommonOptions& options) {
  ExplainRequest request{.container = words.container};
  int code = 0;
  if (!take_time(words.at, options, request.at_seconds, code)) return code;
  return ask_and_print(request, kExplainForm, options, words.state_dir);
}

// For history and events.
template <class R>
bool take_span(const Words& words, const CommonOptions& options, R& request, int& code) {
  if (words.limit > 0) request.limit = words.limit;
  if (!words.container.empty()) request.container = words.container;
  return take_time(words.from, options, request.from_seconds, code) &&
         take_time(words.until, options, request.until_seconds, code);
}

int history(const Words& words, const CommonOptions& options) {
  HistoryRequest request;
  int code = 0;
  if (!take_span(words, options, request, code)) return code;
  if (words.from.empty()) {
    const double now = seconds_since_epoch(SystemClock().wall_now());
    request.from_seconds =
        std::max(0.0, request.until_seconds.value_or(now) - kHistoryDefaultSeconds);
  }
  return run_history(std::move(request), words.state_dir, options);
}

int events(const Words& words, const CommonOptions& options) {
  EventsRequest request;
  int code = 0;
  if (!take_span(words, options, request, code)) return code;
  if (words.follow && !words.state_dir.empty())
    return complain(Exit::usage, "events: -f needs a running daemon: leave out --state-dir");
  if (words.follow && !words.until.empty())
    return complain(Exit::usage, "events: -f has no end: leave out --until");
  if (words.follow) return follow_events(std::move(request), options);
  return run_events(std::move(request), words.state_dir, options);
}

int mode(const Words& words, const CommonOptions& options) {
  if (words.until_restart && words.mode == "default")
    return complain(Exit::usage, "mode: default takes no --until-restart");
  const SetModeRequest request{.mode = words.mode, .until_restart = words.until_restart};
  return words.containers.empty() ? act(request, options)
                                  : act_on_each(request, words.containers, options);
}

// Parses "cpu=CORES" or "memory=SIZE" into its argument; `auto` becomes 0. Errors: invalid.
Status take_pin(std::string_view word, PinRequest& request) {
  const std::size_t equals = word.find('=');
  const std::string_view name = word.substr(0, equals);
  const std::string value(equals == word.npos ? "" : word.substr(equals + 1));
  std::optional<double>& argument = name == "cpu" ? request.cpus : request.memory_mib;
  if (equals == word.npos || (name != "cpu" && name != "memory"))
    return failure(ErrorKind::invalid,
                   escape_name(word) + " is not cpu=CORES, memory=SIZE or auto");
  if (argument) return failure(ErrorKind::invalid, std::string(name) + " is given twice");
  if (value == "auto") {
    argument = 0;
  } else if (name == "cpu") {
    const auto cores = parse_double(value);
    if (!cores || !(*cores > 0 && *cores <= 1e6))
      return failure(ErrorKind::invalid,
                     "cpu=" + escape_name(value) + " is neither a number of cores (0.5) nor auto");
    argument = *cores;
  } else {
    const auto bytes = parse_bytes(value);
    if (!bytes || *bytes == 0)
      return failure(ErrorKind::invalid,
                     "memory=" + escape_name(value) + " is neither a size (512M, 1.5GiB) nor auto");
    argument = static_cast<double>(*bytes) / static_cast<double>(kMiB);
  }
  return {};
}

int pin(const Words& words, const CommonOptions& options) {
  PinRequest request{.container = words.container};
  if (words.pin == "auto") {
    request.cpus = request.memory_mib = 0;
    return act(request, options);
  }
  for (std::string_view rest = words.pin; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    if (const Status taken = take_pin(word, request); !taken)
      return complain(Exit::usage, "pin: " + taken.error().text);
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  }
  return act(request, options);
}

constexpr const char* kContainerHelp = "Name, id (4 or more characters) or cgroup path";
constexpr const char* kContainersHelp =
    "One or more names, ids (4 or more characters) or cgroup paths";

class Verbs {
 public:
  Verbs(CLI::App& app, const CommonOptions& options, int& exit_code)
      : app_(app), options_(options), exit_code_(exit_code) {}

  // Adds a verb. Its callback runs `body` with the verb's arguments and the common options.
  CLI::App* add(const char* name, const char* help, std::shared_ptr<Words> words,
                std::function<int(const Words&, const CommonOptions&)> body) {
    CLI::App* const verb = app_.add_subcommand(name, help);
    verb->callback([this_options = &options_, code = &exit_code_, words, body] {
      *code = body(*words, *this_options);
    });
    return verb;
  }

  void add_reading() {
    add("status", "Show mode, changes, savings, overhead and sources", std::make_shared<Words>(),
        [](const Words&, const CommonOptions& options) {
          return ask_and_print(StatusRequest{}, kStatusForm, options);
        });
    add("list", "List containers: phase, use, limits, recommendation, saving",
        std::make_shared<Words>(), [](const Words&, const CommonOptions& options) {
          return ask_and_print(ListRequest{}, kListForm, options);
        });
    add_one("show", "Show one container in full",
            [](const Words& words, const CommonOptions& options) {
              return ask_and_print(ShowRequest{.container = words.container}, kShowForm,
                                   options);
            });
    auto words = std::make_shared<Words>();
    CLI::App* const verb =
        add("explain", "Explain why a limit was changed, or not", words, explain);
    add_container(*verb, *words)->required();
    verb->add_option("--at", words->at,
                     "Explain the decision in force then (-10m, \"3m ago\", ISO, epoch) [now]")
        ->type_name("TIME");
    add_state_dir(*verb, *words);
  }

  void add_spans() {
    auto words = std::make_shared<Words>();
    CLI::App* verb =
        add("history", "Show samples, phases and limits of a container [the last hour]", words,
            history);
    verb->footer("It also covers earlier containers of the name, 256 at most.");
    add_container(*verb, *words)->required();
    add_span(*verb, *words);
    add_state_dir(*verb, *words);
    words = std::make_shared<Words>();
    verb = add("events", "Show the journal: decisions and their outcomes [the newest 1000]", words,
               events);
    verb->footer("It also covers what earlier daemons did.");
    add_container(*verb, *words);
    verb->add_flag("-f,--follow", words->follow, "Print new entries as they come");
    add_span(*verb, *words);
    add_state_dir(*verb, *words);
  }

  void add_acting() {
    auto words = std::make_shared<Words>();
    CLI::App* verb = add("mode", "Set the mode of containers, or of the host (admin)", words, mode);
    verb->footer(
        "It prints the command that undoes it. The mode lasts until you change it. While the mode "
        "of the host is observe, every container is observed.");
    verb->add_option("mode", words->mode, "The mode; default: use the configuration")
        ->required()
        ->check(CLI::IsMember({"observe", "advise", "enforce", "default"}));
    add_containers(*verb, *words);
    verb->add_flag("--until-restart", words->until_restart, "End the mode with the daemon");
    add_each<PauseRequest>("pause", "Restore original limits and leave containers alone (admin)");
    add_each<ResumeRequest>("resume", "Manage paused or restored containers again (admin)");
    words = std::make_shared<Words>();
    verb = add("pin", "Replace the policy's recommendation (admin)", words, pin);
    verb->footer("All safety rules apply. A pin ends with the container or the daemon.");
    add_container(*verb, *words)->required();
    verb->add_option("limits", words->pin,
                     "cpu=CORES,memory=SIZE, or one of both; auto: use the policy again")
        ->type_name("LIMITS")
        ->required();
    words = std::make_shared<Words>();
    verb = add(
        "restore",
        "Restore original limits and leave containers alone (admin; --all works without a daemon)",
        words, restore);
    add_containers(*verb, *words);
    verb->add_flag("--all", words->all, "Every container; the host is then in mode observe");
    verb->add_option("--cgroup-root", words->cgroup_root,
                     "Cgroup v2 mount if no daemon runs [/sys/fs/cgroup]")
        ->type_name("DIR");
  }

 private:
  void add_one(const char* name, const char* help,
               std::function<int(const Words&, const CommonOptions&)> body) {
    auto words = std::make_shared<Words>();
    add_container(*add(name, help, words, std::move(body)), *words)->required();
  }

  template <class R>
  void add_each(const char* name, const char* help) {
    auto words = std::make_shared<Words>();
    add_containers(*add(name, help, words,
                        [](const Words& all, const CommonOptions& options) {
                          return act_on_each(R{}, all.containers, options);
                        }),
                   *words)->required();
  }

  // JSON cannot contain bytes that are not UTF-8: such a name is sent in its printed form.
  static std::string sent(std::string name) {
    return printable(name) == name ? name : escape_name(name);
  }

  static CLI::Option* add_container(CLI::App& verb, Words& words) {
    return verb.add_option("container", words.container, kContainerHelp)
        ->type_name("CONTAINER")
        ->transform(sent);
  }

  static CLI::Option* add_containers(CLI::App& verb, Words& words) {
    return verb.add_option("container", words.containers, kContainersHelp)
        ->type_name("CONTAINER")
        ->transform(sent);
  }

  static void add_span(CLI::App& verb, Words& words) {
    verb.add_option("--from,--since", words.from, "Start time (-10m, \"3m ago\", ISO, epoch)")
        ->type_name("TIME");
    verb.add_option("--until", words.until, "End time [now]")->type_name("TIME");
    verb.add_option("-n,--limit", words.limit, "Keep only the newest entries, at most this many")
        ->check(CLI::Range(1, 1'000'000));
  }

  static void add_state_dir(CLI::App& verb, Words& words) {
    verb.add_option("--state-dir", words.state_dir, "Read the files of a daemon that does not run")
        ->type_name("DIR");
  }

  CLI::App& app_;
  const CommonOptions& options_;
  int& exit_code_;
};

}  // namespace

void add_daemon_verbs(CLI::App& app, const CommonOptions& options, int& exit_code) {
  Verbs verbs(app, options, exit_code);
  verbs.add_reading();
  verbs.add_spans();
  verbs.add_acting();
}

}  // namespace cgphase
