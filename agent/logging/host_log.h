// What the daemon tells the log of itself and of the host: each thing once, when it changes. Of
// containers: agent/logging/change_log.h.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "agent/logging/log_entry.h"
#include "base/clock.h"
#include "base/result.h"
#include "control/limit_writer.h"
#include "policy/decision.h"
#include "protocol/report.h"

namespace cgphase {

// Sources that come or go, in a window that begins with the first; what comes or goes beyond it is
// told of when it is over.
inline constexpr int kMostSourceEntries = 10;
inline constexpr std::chrono::seconds kSourceWindow{60};

// Owned by the daemon; the agent's thread alone.
class HostLog {
 public:
  using Tell = std::function<void(const LogEntry&)>;
  explicit HostLog(Tell tell) : tell_(std::move(tell)) {}

  void left_behind(const LimitWriter::RestoreReport& report);  // nothing where there was nothing
  void started(const std::string& status, Mode mode);
  void stopped(const LimitWriter::RestoreReport& report);
  void refused(const std::string& why, int exit_code);
  void reloaded(const std::vector<std::string>& kept, Mode mode);
  void reload_refused(const std::string& why);
  void keys_ignored(const std::vector<std::string>& sentences);
  void companion_lost(const std::string& why);
  void history_off(const std::string& why);
  void damaged(const std::string& text);  // something that was stored
  void model_taken(const std::string& path, const std::string& origin);  // while running
  void asked(const std::string& request, unsigned uid);

  // Why nothing is written here at all; empty where that is not so.
  void standing_down(const std::string& reason, Mode mode);
  // Those that were there and are not, or the other way round, since they were last told of. The
  // first call only learns what there is.
  void sources(const StatusReport& status, MonotonicTime now);

 private:
  void source(const SourceReport& source, MonotonicTime now);
  void losses(const StatusReport& status);

  Tell tell_;
  std::string stood_down_;
  std::map<std::string, bool> sources_;  // as told
  std::optional<std::string> quarantined_;  // as told; absent: nothing was asked yet
  bool dropped_ = false;
  MonotonicTime window_;
  int source_entries_ = 0;  // in the window
};

}  // namespace cgphase
