#include "agent/logging/event_log.h"

#include <utility>

namespace cgphase {
namespace {

std::vector<LogField> all_fields(const LogEntry& entry, std::uint64_t lost) {
  const MessageKind& kind = kind_of(entry.message);
  std::string text = entry.text;
  if (lost > 0)
    text += " (the journal was busy: " + std::to_string(lost) + " entries before it are lost)";
  std::vector<LogField> fields = {
      {"MESSAGE", std::move(text)},
      {"MESSAGE_ID", std::string(kind.id)},
      {"PRIORITY", std::to_string(static_cast<int>(kind.priority))},
      {"SYSLOG_IDENTIFIER", "cgphased"}};
  fields.insert(fields.end(), entry.fields.begin(), entry.fields.end());
  if (lost > 0) fields.push_back({"LOST_ENTRIES", std::to_string(lost)});
  return fields;
}

}  // namespace

void EventLog::tell(const LogEntry& entry) {
  if (journal_) {
    const SystemdJournal::Sent sent = journal_->send(all_fields(entry, lost_));
    if (sent == SystemdJournal::Sent::yes) lost_ = 0;
    if (sent == SystemdJournal::Sent::busy) lost_ += 1;
    if (sent != SystemdJournal::Sent::no) return;
  }
  log_line(kind_of(entry.message).priority, entry.text);
}

}  // namespace cgphase
