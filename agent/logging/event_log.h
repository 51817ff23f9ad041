// Where the daemon's entries go: with their fields to systemd's journal where that reads standard
// error, else as lines to standard error.
#pragma once

#include <cstdint>
#include <optional>

#include "agent/logging/log_entry.h"
#include "agent/logging/systemd_journal.h"

namespace cgphase {

// Owned by the daemon; the agent's thread alone.
class EventLog {
 public:
  explicit EventLog(std::optional<SystemdJournal> journal) : journal_(std::move(journal)) {}

  // Never waits for the journal. What it is too busy for is lost, and the next entry says how many
  // were (field LOST_ENTRIES).
  void tell(const LogEntry& entry);

 private:
  std::optional<SystemdJournal> journal_;
  std::uint64_t lost_ = 0;
};

}  // namespace cgphase
