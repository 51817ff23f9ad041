// Answers of pin.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "agent/answers.h"
#include "base/text.h"
#include "base/units.h"

namespace cgphase {
namespace {

// 0 removes a pin.
Pin asked_of(const std::optional<double>& cpus, const std::optional<double>& mib, Pin pin) {
  if (cpus) pin.cpu = *cpus > 0 ? std::optional(Cores{*cpus}) : std::nullopt;
  if (!mib) return pin;
  const auto bytes = std::max(1LL, std::llround(*mib * static_cast<double>(kMiB)));
  pin.memory = *mib > 0 ? std::optional(Bytes{static_cast<std::uint64_t>(bytes)}) : std::nullopt;
  return pin;
}

// Returns why the pin is refused, else empty. A pin never exceeds the original limits.
std::string pin_refusal(const Pin& asked, const Limits& original) {
  const auto cores = original.cpu_cores();
  const auto bytes = original.memory_bytes();
  if (asked.cpu && !cores) return "it has no CPU limit of its own, and a pin gives none";
  if (asked.memory && !bytes) return "it has no memory limit of its own, and a pin gives none";
  if (asked.cpu && asked.cpu->value > cores->value)
    return fmt::format("{} cores are more than its own limit, {}", asked.cpu->value, cores->value);
  if (asked.memory && asked.memory->value > bytes->value)
    return fmt::format("{} bytes are more than its own limit, {}", asked.memory->value,
                       bytes->value);
  return "";
}

}  // namespace

nlohmann::json Answers::pin(const PinRequest& request) {
  const auto view = container(request.container);
  if (!view) return error_reply(view.error());
  const ContainerInfo& info = (*view)->info;
  const std::string name = escape_name(info.name), by = found_by(**view);
  const auto &cpus = request.cpus, &mib = request.memory_mib;
  if (!cpus && !mib)
    return error_reply(Exit::usage, "pin: name a CPU limit or a memory limit");
  const Pin asked = asked_of(cpus, mib, {});
  if (const std::string& owner = agent_.hands_off(info); asked.any() && !owner.empty())
    return error_reply(Exit::failure, "pin: " + name + " is never written to: " + owner);
  if (const std::string why = pin_refusal(asked, (*view)->original); !why.empty())
    return error_reply(Exit::invalid, "pin: " + name + ": " + why);
  const Pin before = (*view)->pin, after = asked_of(cpus, mib, before);
  agent_.set_pin(info.id, after);
  ActionReport action{.done = "limits of " + name + " are as the policy has them", .undo = {},
                      .changes = {}, .failures = {}};
  if (before != after)
    action.undo = shell_command({"cgphase", "pin", by, pin_words(before, true)});
  if (!after.any()) return to_json(action);
  action.done = name + " is pinned to " + pin_words(after, false) +
                " until this container or cgphased ends";
  action.changes.push_back("its limits follow by steps, as far as the safety rules allow: " +
                           shell_command({"cgphase", "explain", by}));
  if (const Mode mode = agent_.overrides().asked_mode(info); mode != Mode::enforce)
    action.changes.push_back(std::string("nothing is written in mode ") + to_string(mode) + ": " +
                             shell_command({"cgphase", "mode", "enforce", by}));
  if (agent_.overrides().paused(info))
    action.changes.push_back("nothing is written while it is paused: " +
                             shell_command({"cgphase", "resume", by}));
  if (agent_.kill_switch())
    action.changes.emplace_back("nothing is written while the kill switch is there");
  return to_json(action);
}

}  // namespace cgphase
