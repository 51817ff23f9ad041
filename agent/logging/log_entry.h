// What the daemon tells the log: a sentence for people, and the fields by which systemd's journal
// finds it. Each kind of message has an id of its own (`journalctl MESSAGE_ID=...`), and an entry
// in systemd/cgphase.catalog that says why it happened and what to do (`journalctl -x`).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cgphase {

enum class Message : std::uint8_t {
  started,
  stopped,               // with what was restored
  start_refused,
  left_behind,           // limits of an earlier run, restored at the start
  reloaded,
  reload_refused,        // the old configuration stays
  key_ignored,           // of the configuration, which earlier versions had
  kill_switch_on,
  kill_switch_off,
  host_stood_down,       // somebody else manages limits on this host
  host_resumed,
  source_lost,           // something that was there is not any more
  source_back,
  companion_lost,        // so nothing is written
  stored_damaged,
  model_taken,           // another model is in use
  restore_failed,
  asked,                 // by an administrator
  limit_lowered,
  limit_raised,
  limit_restored,        // the original, or what was there before a change
  trial_reverted,
  write_failed,
  container_stood_down,  // somebody else changed its limits
};

// As syslog(3) numbers them.
enum class Priority : std::uint8_t { error = 3, warning = 4, notice = 5, info = 6 };

struct MessageKind {
  Message message;
  std::string_view id;  // 128 bits in 32 hexadecimal digits; never used for anything else
  Priority priority;
  std::string_view fields;  // what an entry has beside kCommonFields, separated by blanks
};

// MESSAGE_ID and PRIORITY stand in the table.
inline constexpr std::string_view kCommonFields = "MESSAGE MESSAGE_ID PRIORITY SYSLOG_IDENTIFIER";

// One row for each Message, in their order.
std::span<const MessageKind> message_kinds();
const MessageKind& kind_of(Message message);

struct LogField {
  const char* name;
  std::string value;
};

struct LogEntry {
  Message message = Message::started;
  std::string text;
  std::vector<LogField> fields = {};
};

// Writes "cgphased: PRIORITY: TEXT" to standard error. The text is escaped. Any thread.
void log_line(Priority priority, std::string_view text);

}  // namespace cgphase
