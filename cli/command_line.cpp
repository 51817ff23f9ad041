#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "cli/commands/verbs.h"
#include "cli/completion.h"
#include "cli/manual.h"
#include "cli/offline.h"
#include "cli/options.h"
#include "cli/output/print.h"

#ifndef CGPHASE_VERSION
#error "the build defines CGPHASE_VERSION"
#endif

namespace cgphase {
namespace {

const std::map<std::string, Output> kOutputs = {{"table", Output::table},
                                                {"wide", Output::wide},
                                                {"json", Output::json},
                                                {"jsonl", Output::jsonl},
                                                {"csv", Output::csv},
                                                {"openmetrics", Output::openmetrics}};

void add_common_options(CLI::App& app, CommonOptions& options) {
  app.add_option_function<std::string>(
         "-o,--output", [&options](const std::string& word) { options.output = kOutputs.at(word); },
         "Output format; JSON is stable, text is not [table]")
      ->check(CLI::IsMember({"table", "wide", "json", "jsonl", "csv", "openmetrics"}));
  app.add_flag_callback(
      "--json", [&options] { options.output = Output::json; }, "Same as -o json");
  app.add_flag_callback(
      "--no-legend", [&options] { options.legend = false; }, "Print no column titles and no hints");
  app.add_flag("-q,--quiet", options.quiet, "Print nothing if an acting verb succeeds");
  app.add_flag("--utc", options.utc, "Print times in UTC");
  app.add_option("--color", options.color, "When to use colour")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  app.add_option("--socket", options.socket, "The daemon's read.sock; admin.sock is beside it")
      ->type_name("PATH")
      ->capture_default_str();
}

// Message about the first word that is neither an option nor a verb, with "did you mean"; empty if
// there is none.
std::string unknown_verb(const CLI::App& app, int count, const char* const* words) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands(nullptr)) names.push_back(verb->get_name());
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "-o" || word == "--output" || word == "--socket" || word == "--color") ++i;
    if (word.starts_with('-')) continue;
    if (std::ranges::find(names, word) != names.end()) return "";
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    const std::string_view close = nearest(word, candidates);
    return "no verb '" + escape_name(word) + "'" +
           (close.empty() ? "; 'cgphase --help' lists them"
                          : "; did you mean '" + std::string(close) + "'?");
  }
  return "";
}

int usage_error(const CLI::App& app, const CLI::ParseError& error, int count,
                const char* const* words) {
  const std::string verb = unknown_verb(app, count, words);
  if (!verb.empty()) return complain(Exit::usage, verb);
  if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError) &&
      app.get_subcommands().empty())
    return complain(Exit::usage, "name a verb; 'cgphase --help' lists them");
  std::string text = error.what();
  text = text.substr(0, text.find('\n'));
  return complain(Exit::usage, text + "; see 'cgphase --help'");
}

int parse_and_run(int count, const char* const* words, std::span<AddVerbs* const> more) {
  CLI::App app("cgphase: show containers, their phases and limits; allow and undo changes",
               "cgphase");
  CommonOptions options;
  int exit_code = 0;
  app.set_version_flag("--version", "cgphase " CGPHASE_VERSION);
  app.fallthrough();
  app.require_subcommand(1);
  add_common_options(app, options);
  for (AddVerbs* const add : cli_verbs()) add(app, options, exit_code);
  for (AddVerbs* const add : more) add(app, options, exit_code);
  const std::string_view first = count > 1 ? words[1] : "";
  if (first == "__complete")
    return finish(emit(complete(app, {words + 2, words + count}, options), ""));
  if (first == "__manual") return finish(emit(manual(app), ""));
  try {
    app.parse(count, words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    return usage_error(app, error, count, words);
  }
  return exit_code;
}

}  // namespace

int run_command(int count, const char* const* words, std::span<AddVerbs* const> more) {
  try {
    return parse_and_run(count, words, more);
  } catch (const std::exception& error) {
    return complain(Exit::failure, error.what());
  }
}

}  // namespace cgphase
