#include "cli/completion.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <vector>

#include "base/parse.h"
#include "base/text.h"
#include "cli/daemon_client.h"
#include "cli/table_words.h"
#include "policy/policy.h"
#include "protocol/report.h"

namespace cgphase {
namespace {

constexpr std::chrono::milliseconds kNamesLimit{1000};

// Options of the verb and of those around it, which it accepts, too.
std::vector<const CLI::Option*> options_of(const CLI::App* verb) {
  std::vector<const CLI::Option*> options;
  for (; verb != nullptr; verb = verb->get_parent())
    for (const CLI::Option* option : verb->get_options()) options.push_back(option);
  return options;
}

const CLI::Option* find_option(const CLI::App* verb, const std::string& name) {
  for (const CLI::Option* option : options_of(verb))
    if (std::ranges::count(names_of(*option), name) > 0) return option;
  return nullptr;
}

// What the words before the cursor lead to.
struct Place {
  const CLI::App* verb = nullptr;
  const CLI::Option* option = nullptr;  // the option or argument whose value comes next
  std::string socket;
};

Place place_after(const CLI::App& app, std::span<const char* const> before,
                  const CommonOptions& common) {
  Place place{.verb = &app, .option = nullptr, .socket = common.socket};
  int needed = 0, allowed = 0;  // values of place.option
  std::size_t arguments = 0;
  for (const std::string word : before) {
    if (word == "=") continue;  // bash splits --color=never into three words
    const bool dash = word.size() > 1 && word.starts_with('-');
    if (needed > 0 || (allowed > 0 && !dash)) {  // a needed value may begin with a dash: -10m
      if (place.option == find_option(&app, "--socket")) place.socket = word;
      --needed;
      if (--allowed == 0) place.option = nullptr;
    } else if (dash) {
      place.option = find_option(place.verb, word);
      needed = place.option == nullptr ? 0 : place.option->get_items_expected_min();
      allowed = needed == 0 || !place.option->get_allow_extra_args()
                    ? needed
                    : place.option->get_items_expected_max();
      if (allowed == 0) place.option = nullptr;
    } else if (const auto below = verbs_of(*place.verb); !below.empty()) {
      const auto named = std::ranges::find(below, word, &CLI::App::get_name);
      if (named != below.end()) place.verb = *named;
    } else {
      ++arguments;
    }
  }
  if (place.option != nullptr) return place;
  for (const CLI::Option* option : place.verb->get_options()) {
    if (!option->get_positional()) continue;
    if (arguments == 0 || option->get_items_expected_max() > 1) {
      place.option = option;
      return place;
    }
    --arguments;
  }
  return place;
}

std::string containers(const std::string& socket) {
  const auto body = ask_daemon(socket, ListRequest{}, kNamesLimit);
  if (!body) return "";
  const Result<ListReply> reply = read_reply<ListReply>(*body);
  std::string found;
  if (reply)
    for (const ContainerReport& each : reply->containers)
      found += escape_name(each.container.name) + "\n";
  return found;
}

std::string values_of(const CLI::Option& option, const std::string& socket) {
  std::string found;
  for (const std::string& word : accepted_words(option)) found += word + "\n";
  const auto kinds = CLI::detail::split(option.get_type_name(), '|');
  const auto is = [&kinds](const char* kind) { return std::ranges::count(kinds, kind) > 0; };
  if (is("POLICY"))
    for (const std::string_view name : policy_names()) found += std::string(name) + "\n";
  if (is("LIMITS")) found += "cpu=\nmemory=\nauto\n";
  if (is("CONTAINER")) found += containers(socket);
  if (is("FILE") || is("TRACE") || is("DIR") || is("PATH")) found += "\n";
  return found;
}

// Adds `prefix` to each value. The empty line, which means names of files, stays empty.
std::string with_prefix(const std::string& prefix, std::string_view values) {
  std::string found;
  std::string_view value;
  while (next_line(values, value)) {
    if (!value.empty()) found += prefix;
    found += value;
    found += '\n';
  }
  return found;
}

}  // namespace

std::string complete(const CLI::App& app, std::span<const char* const> words,
                     const CommonOptions& common) {
  if (words.empty()) return "";
  const std::string word = words.back();
  const Place place = place_after(app, words.first(words.size() - 1), common);
  std::string found;
  const std::size_t equals = word.find('=');
  if (word.starts_with("--") && equals != word.npos) {
    const CLI::Option* const option = find_option(place.verb, word.substr(0, equals));
    if (option != nullptr && has_value(*option))
      found = with_prefix(word.substr(0, equals + 1), values_of(*option, place.socket));
  } else if (word.starts_with('-')) {
    std::set<std::string> offered;  // a verb may have a --output of its own
    for (const CLI::Option* option : options_of(place.verb))
      for (const std::string& name : names_of(*option))
        if (offered.insert(name).second) found += name + "\t" + option->get_description() + "\n";
  } else if (place.option != nullptr) {
    found = values_of(*place.option, place.socket);
  } else {
    for (const CLI::App* verb : verbs_of(*place.verb))
      found += verb->get_name() + "\t" + verb->get_description() + "\n";
  }
  return found;
}

}  // namespace cgphase
