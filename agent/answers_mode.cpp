// Answers of mode, pause, resume, restore and model, and the origin of each mode.
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "agent/answers.h"
#include "base/text.h"
#include "protocol/replies.h"

namespace cgphase {
namespace {

constexpr const char* kDefaultWord = "default";  // argument of `mode`: use the configuration
constexpr const char* kUntilRestart = "--until-restart";
constexpr std::size_t kMostCapped = 8;  // containers in an answer

std::string knobs_text(const LimitWriter::RestoreReport& restored) {
  return std::to_string(restored.restored) + " knobs written back, " +
         std::to_string(restored.foreign) + " left as somebody else set them, " +
         std::to_string(restored.gone) + " gone with their cgroups";
}

// Empty if no limit was changed.
std::vector<std::string> changes_of(const LimitWriter::RestoreReport& restored) {
  if (restored.restored + restored.foreign + restored.gone == 0) return {};
  return {knobs_text(restored)};
}

std::string origin_text(const TimedMode& asked, bool until_restart) {
  std::string text = "set by `cgphase mode`";
  if (until_restart) text += std::string(" ") + kUntilRestart;
  if (asked.since <= WallTime()) return text;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(asked.since));
  std::tm parts{};
  std::array<char, 32> date{};
  if (::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S UTC", &parts) == 0)
    return text;
  return text + ", since " + date.data();
}

const char* word_of(const std::optional<TimedMode>& asked) {
  return asked ? to_string(asked->mode) : kDefaultWord;
}

// Returns the command that sets a mode again, for a container if one is named.
std::string mode_command(const char* mode, bool until_restart, const std::string& container) {
  std::vector<std::string_view> words = {"cgphase", "mode", mode};
  if (!container.empty()) words.push_back(container);
  if (until_restart) words.emplace_back(kUntilRestart);
  return shell_command(words);
}

// Returns the limits that a container lacks. cgphase does not set those.
std::string lacks(const Limits& original) {
  const bool cpu = original.cpu_cores().has_value();
  const bool memory = original.memory_bytes().has_value();
  if (cpu && memory) return "";
  return cpu ? "memory" : memory ? "CPU" : "CPU and no memory";
}

}  // namespace

void Answers::respond_saved(nlohmann::json reply, const Respond& respond) {
  if (reply.contains("error")) return respond(std::move(reply));
  agent_.after_save([reply = std::move(reply), respond](const std::string& error) mutable {
    if (!error.empty())
      reply["changes"].push_back(printable("not saved yet, so it may end with cgphased: " + error));
    respond(std::move(reply));
  });
}

void Answers::answer(const SetModeRequest& request, const Peer&, const Respond& respond) {
  respond_saved(set_mode(request), respond);
}

void Answers::answer(const PauseRequest& request, const Peer&, const Respond& respond) {
  respond_saved(set_paused(request.container, true), respond);
}

void Answers::answer(const ResumeRequest& request, const Peer&, const Respond& respond) {
  respond_saved(set_paused(request.container, false), respond);
}

void Answers::answer(const RestoreRequest& request, const Peer&, const Respond& respond) {
  respond_saved(request.all ? restore_all() : restore(*request.container), respond);
}

void Answers::answer(const PinRequest& request, const Peer&, const Respond& respond) {
  respond(pin(request));
}

void Answers::answer(const ModelRequest&, const Peer&, const Respond& respond) {
  const Result<std::string> taken = facts_.take_model();
  if (!taken) return respond(error_reply(taken.error()));
  respond(to_json(ActionReport{.done = *taken, .undo = {}, .changes = {}, .failures = {}}));
}

nlohmann::json Answers::set_paused(const std::string& container_name, bool pause) {
  const auto view = container(container_name);
  if (!view) return error_reply(view.error());
  const std::string name = escape_name((*view)->info.name);
  const bool before = agent_.overrides().paused((*view)->info);
  auto restored = agent_.set_paused((*view)->info.id, pause);
  std::vector<std::string> changes = changes_of(restored);
  if (!pause && (*view)->pin.any()) changes.push_back(still_pinned(**view));
  return to_json(ActionReport{
      .done = (pause ? name + " is left alone until it is resumed"
                     : name + " is managed again as the configuration says") +
              others_of_name((*view)->info),
      .undo = before == pause ? ""
                              : shell_command({"cgphase", pause ? "resume" : "pause",
                                               found_by(**view)}),
      .changes = std::move(changes),
      .failures = std::move(restored.failures)});
}

std::string Answers::still_pinned(const ContainerView& view) const {
  return escape_name(view.info.name) + " is still pinned to " + pin_words(view.pin, false) +
         "; end that: " + shell_command({"cgphase", "pin", found_by(view), "auto"});
}

std::vector<std::string> Answers::obstacles(const ContainerView& view, Mode mode) const {
  std::vector<std::string> found;
  if (mode == Mode::observe) return found;
  const std::string by = found_by(view);
  if (agent_.kill_switch())
    found.push_back("the kill switch is on: cgphase changes nothing while " +
                    escape_name(agent_.config().kill_switch) + " exists");
  if (agent_.overrides().paused(view.info))
    found.push_back("the container is paused; resume it: " +
                    shell_command({"cgphase", "resume", by}));
  if (agent_.overrides().ceiling() < mode)
    found.push_back("`cgphase mode observe` applies to every container of this host; end that: " +
                    shell_command({"cgphase", "mode", kDefaultWord}));
  if (const std::string& owner = agent_.hands_off(view.info); !owner.empty())
    found.push_back("cgphase never changes this container: " + owner);
  const std::string lacking = lacks(view.original);
  if (!lacking.empty() && !agent_.config().manage_unlimited)
    found.push_back("it has no " + lacking + " limit and manage_unlimited is off, so cgphase " +
                    (lacking.starts_with("CPU and") ? "changes nothing" : "leaves that alone"));
  if (view.original.cpu_cores() && agent_.keeps_cpu_quota(view.info.id))
    found.emplace_back("it has a GPU, or that cannot be ruled out: cgphase leaves its CPU quota "
                       "alone (lower_gpu_quota)");
  return found;
}

std::vector<std::string> Answers::capped_text() const {
  std::vector<std::string> lines;
  for (const ContainerView* view : agent_.capped()) {
    if (lines.size() == kMostCapped) {
      lines.emplace_back("and more: cgphase config show --origin");
      break;
    }
    lines.push_back(escape_name(view->info.name) + ": observe while the host is; its own mode, " +
                    to_string(agent_.overrides().own_mode(view->info)->mode) +
                    ", comes back after that");
  }
  return lines;
}

nlohmann::json Answers::set_mode(const SetModeRequest& request) {
  const std::string& word = request.mode;
  const std::optional<Mode> mode = parse_mode(word);
  const bool until_restart = request.until_restart;
  if (!mode && word != kDefaultWord)
    return error_reply(Exit::usage, "mode: '" + escape_name(word.substr(0, 64)) +
                                        "' is not observe, advise, enforce or default");
  if (!mode && until_restart)
    return error_reply(Exit::usage, "mode: default takes no --until-restart");
  const bool above = mode && *mode != Mode::observe;
  if (const std::string why = agent_.unwritable(); above && !why.empty())
    return error_reply(Exit::failure, "mode: nothing is written now, for " + why +
                                          "; ask again in some seconds");
  if (above && !agent_.may_write())
    return error_reply(Exit::invalid, "mode: cgphase cannot write limits on this host; run "
                                      "`cgphase doctor` to see what is missing");
  return request.container ? set_own_mode(*request.container, mode, until_restart)
                           : set_host_mode(mode, until_restart);
}

nlohmann::json Answers::set_host_mode(std::optional<Mode> mode, bool until_restart) {
  const ModeRequest before = agent_.overrides().table().host();
  const bool lost = agent_.overrides().table().lost();
  auto restored = agent_.set_mode(mode, until_restart);
  const ModeRequest after = agent_.overrides().table().host();
  const Mode now = agent_.config().mode;
  ActionReport action{.done = std::string("host: ") + to_string(now), .undo = {},
                      .changes = capped_text(), .failures = std::move(restored.failures)};
  if (!mode) action.done += ", as the configuration says";
  if (until_restart) action.done += " until cgphased ends";
  if (now != Mode::observe && agent_.kill_switch())
    action.changes.push_back("the kill switch is on: cgphase changes nothing while " +
                             escape_name(agent_.config().kill_switch) + " exists");
  const auto views = agent_.core().containers();
  const auto enforced = [this](const ContainerView* view) {
    return agent_.overrides().asked_mode(view->info) == Mode::enforce;
  };
  if (now == Mode::enforce && std::ranges::none_of(views, enforced))
    action.changes.emplace_back("no container is enforced: neither the configuration nor a label "
                                "names one; name one: cgphase mode enforce NAME");
  std::ranges::move(changes_of(restored), std::back_inserter(action.changes));
  const auto word = [](const ModeRequest& request) { return std::string(word_of(
      request.in_force())); };
  const bool same = word(before) == word(after) && !lost &&
                    before.until_restart.has_value() == after.until_restart.has_value();
  // If the default is enforce, the undo names the mode that is then in force.
  const bool enforces = !before.in_force() && agent_.configured_mode() == Mode::enforce;
  if (!same)
    action.undo = mode_command(enforces ? to_string(Mode::enforce) : word_of(before.in_force()),
                               before.until_restart.has_value(), "");
  return to_json(action);
}

nlohmann::json Answers::set_own_mode(const std::string& container_name,
                                     std::optional<Mode> mode, bool until_restart) {
  const auto view = container(container_name);
  if (!view) {
    // A mode is also kept for a container that does not run now.
    const std::string name = escape_name(unescape_name(container_name));
    if (mode || view.error().kind != ErrorKind::not_found || agent_.forget_modes(name) == 0)
      return error_reply(view.error());
    return to_json(ActionReport{
        .done = name + ": as the configuration says, once it runs again", .undo = {},
        .changes = {}, .failures = {}});
  }
  const ContainerInfo info = (*view)->info;
  if (const std::string& owner = agent_.hands_off(info); mode == Mode::enforce && !owner.empty())
    return error_reply(Exit::failure, "mode: " + escape_name(info.name) +
                                          " cannot be enforced, cgphase never changes it: " +
                                          owner);
  const std::optional<TimedMode> before = agent_.overrides().own_mode(info);
  const bool by_name = !mode || agent_.overrides().kept_by_name(info, *mode);
  const bool was_until_restart = agent_.overrides().table().of(info).mode.until_restart.has_value();
  const std::string by = found_by(**view);
  auto restored = agent_.set_mode(info.id, mode, until_restart);
  const Mode now = mode.value_or(agent_.overrides().asked_mode(info));
  ActionReport action{.done = escape_name(info.name) + ": " + to_string(now), .undo = {},
                      .changes = obstacles(**view, now), .failures = std::move(restored.failures)};
  if (!mode) action.done += ", as the configuration says";
  if (until_restart || !by_name)
    action.done += by_name ? " until cgphased ends" : " until this container or cgphased ends";
  if (by_name) action.done += others_of_name(info);
  else if (!until_restart)
    action.changes.emplace_back("it does not last: the cgroup is in a user's own subtree, and the "
                                "user can give its name to any other container");
  std::ranges::move(changes_of(restored), std::back_inserter(action.changes));
  const bool is_until_restart = agent_.overrides().table().of(info).mode.until_restart.has_value();
  if (std::string_view(word_of(before)) != word_of(agent_.overrides().own_mode(info)) ||
      was_until_restart != is_until_restart)
    action.undo = mode_command(word_of(before), was_until_restart, by);
  return to_json(action);
}

// Only failures of the second attempt are final.
nlohmann::json Answers::restore_all() {
  nlohmann::json reply = set_host_mode(Mode::observe, false);
  const LimitWriter::RestoreReport rest = agent_.restore_all();
  reply["done"] = rest.failures.empty()
                      ? "every limit is as it was; host: observe"
                      : "host: observe, but not every limit could be restored";
  if (rest.restored + rest.foreign + rest.gone > 0) reply["changes"].push_back(knobs_text(rest));
  for (const ContainerView* view : agent_.core().containers())
    if (view->pin.any()) reply["changes"].push_back(still_pinned(*view));
  reply["failures"] = nlohmann::json::array();
  for (const std::string& failure : rest.failures)
    reply["failures"].push_back(printable(failure));
  return reply;
}

nlohmann::json Answers::restore(const std::string& container_name) {
  const auto view = container(container_name);
  if (!view) return error_reply(view.error());
  const std::string name = escape_name((*view)->info.name);
  const CgroupId id = (*view)->info.id;
  const bool before = agent_.overrides().paused((*view)->info);
  LimitWriter::RestoreReport restored = agent_.set_paused(id, true);
  const auto rest = agent_.restore(id);
  restored.restored += rest.restored;
  ActionReport action{.done = rest.failures.empty()
                                  ? name + " has its original limits and is left alone"
                                  : name + " is left alone, but could not be restored",
                      .undo = {}, .changes = {knobs_text(restored)}, .failures = rest.failures};
  action.done += others_of_name((*view)->info);
  if (!before) action.undo = shell_command({"cgphase", "resume", found_by(**view)});
  return to_json(action);
}

void Answers::answer(const ConfigRequest&, const Peer&, const Respond& respond) {
  ConfigReply reply;
  const ModeRequest& host = agent_.overrides().table().host();
  for (const ConfigValue& row : config_rows(agent_.config())) {
    const bool by_command = row.key == "mode" && host.in_force();
    reply.config.push_back({row.key, row.value,
                            by_command ? origin_text(*host.in_force(),
                                                     host.until_restart.has_value())
                                       : row.origin});
  }
  for (const auto& [name, hold] : agent_.overrides().table().containers())
    if (const auto& asked = hold.mode.in_force())
      reply.modes.push_back({"mode of " + name, to_string(asked->mode),
                             origin_text(*asked, hold.mode.until_restart.has_value())});
  respond(to_json(reply));
}

}  // namespace cgphase
