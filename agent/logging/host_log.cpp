#include "agent/logging/host_log.h"

#include <fmt/format.h>

#include <utility>

namespace cgphase {
namespace {

std::string text_of(const LimitWriter::RestoreReport& report) {
  return fmt::format("{} limits restored, {} left as somebody else set them, {} cgroups gone",
                     report.restored, report.foreign, report.gone);
}

}  // namespace

void HostLog::left_behind(const LimitWriter::RestoreReport& report) {
  if (report.restored + report.foreign > 0)
    tell_({Message::left_behind, "left behind by an earlier run: " + text_of(report)});
}

void HostLog::started(const std::string& status, Mode mode) {
  tell_({Message::started, fmt::format("cgphased {} started: {}", CGPHASE_VERSION, status),
         {{"MODE", to_string(mode)}}});
}

void HostLog::stopped(const LimitWriter::RestoreReport& report) {
  tell_({Message::stopped, "stopped: " + text_of(report)});
}

void HostLog::refused(const std::string& why, int exit_code) {
  tell_({Message::start_refused, why, {{"EXIT_CODE", std::to_string(exit_code)}}});
}

void HostLog::reloaded(const std::vector<std::string>& kept, Mode mode) {
  std::string text = "configuration reloaded";
  for (const std::string& sentence : kept) text += "; " + sentence;
  tell_({Message::reloaded, text, {{"MODE", to_string(mode)}}});
}

void HostLog::reload_refused(const std::string& why) {
  tell_({Message::reload_refused, "reload: the old configuration stays in force: " + why});
}

void HostLog::keys_ignored(const std::vector<std::string>& sentences) {
  for (const std::string& sentence : sentences) tell_({Message::key_ignored, sentence});
}

void HostLog::companion_lost(const std::string& why) {
  tell_({Message::companion_lost, "no dead-man companion, so nothing is written: " + why,
         {{"CAUSE", why}}});
}

void HostLog::history_off(const std::string& why) {
  tell_({Message::source_lost, "history is off: " + why,
         {{"SOURCE", "history"}, {"CAUSE", why}}});
}

void HostLog::damaged(const std::string& text) { tell_({Message::stored_damaged, text}); }

void HostLog::model_taken(const std::string& path, const std::string& origin) {
  tell_({Message::model_taken,
         fmt::format("model in use: {} ({}); limits stay until its phases are known", path, origin),
         {{"MODEL", path}, {"ORIGIN", origin}}});
}

void HostLog::asked(const std::string& request, unsigned uid) {
  const std::string who = std::to_string(uid);
  tell_({Message::asked, fmt::format("uid {} asked: {}", who, request),
         {{"REQUEST", request}, {"REQUEST_UID", who}}});
}

void HostLog::standing_down(const std::string& reason, Mode mode) {
  if (reason == std::exchange(stood_down_, reason)) return;
  if (reason.empty())
    tell_({Message::host_resumed,
           fmt::format("nobody else manages limits here any more: mode {} again", to_string(mode)),
           {{"MODE", to_string(mode)}}});
  else
    tell_({Message::host_stood_down, "only observing, with the original limits: " + reason,
           {{"CAUSE", reason}}});
}

void HostLog::sources(const StatusReport& status, MonotonicTime now) {
  if (source_entries_ > 0 && now - window_ >= kSourceWindow) source_entries_ = 0;
  for (const SourceReport& one : status.sources) source(one, now);
  // Its state is known to the thread that keeps it, not to whoever lists the sources.
  if (status.store.state != "off")
    source({"history", status.store.state == "ok", status.store.state}, now);
  losses(status);
}

// The caller that opened the history reports losses from before the first call.
void HostLog::losses(const StatusReport& status) {
  const std::string& kept = status.store.quarantined;
  if (quarantined_ && *quarantined_ != kept && !kept.empty())
    damaged("the history file was replaced; the earlier one was kept as " + kept);
  quarantined_ = kept;
  if (const bool dropped = status.store.dropped_samples + status.store.dropped_entries > 0;
      dropped && !std::exchange(dropped_, dropped))
    damaged("samples or journal entries of the history are dropped, because they cannot be written "
            "(cgphase status)");
}

void HostLog::source(const SourceReport& source, MonotonicTime now) {
  const auto [known, is_new] = sources_.try_emplace(source.name, source.present);
  if (is_new || known->second == source.present || source_entries_ >= kMostSourceEntries) return;
  if (source_entries_++ == 0) window_ = now;
  known->second = source.present;
  if (source.present)
    tell_({Message::source_back, source.name + " is there again", {{"SOURCE", source.name}}});
  else
    tell_({Message::source_lost, fmt::format("{} is not there any more: {}", source.name,
                                             source.detail),
           {{"SOURCE", source.name}, {"CAUSE", source.detail}}});
}

}  // namespace cgphase
