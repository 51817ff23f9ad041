// systemd's journal, to which entries go with their fields, by its native protocol
// (https://systemd.io/JOURNAL_NATIVE_PROTOCOL). Not by sd_journal_sendv(3), which waits while the
// journal is busy: this is called in the loop whose silence means that every limit is restored.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "agent/logging/log_entry.h"
#include "base/fd.h"

namespace cgphase {

inline constexpr const char* kJournalSocket = "/run/systemd/journal/socket";
// A longer value is cut, so that every entry fits into one datagram.
inline constexpr std::size_t kMaxFieldBytes = 2048;

// Used by one thread at a time.
class SystemdJournal {
 public:
  // Absent where the journal does not read `fd`. `stream` is the value of JOURNAL_STREAM, which
  // names device and inode of what it reads (systemd.exec(5)); it may be null.
  static std::optional<SystemdJournal> behind(int fd, const char* stream,
                                              std::string socket = kJournalSocket);

  enum class Sent : std::uint8_t {
    yes,
    busy,  // it has more to read than it takes
    no,    // there is none any more
  };
  // One entry. Values are escaped here: none can begin another field.
  Sent send(std::span<const LogField> fields);

 private:
  SystemdJournal(Fd socket, std::string path)
      : socket_(std::move(socket)), path_(std::move(path)) {}

  Fd socket_;
  std::string path_;  // of the journal's socket
};

}  // namespace cgphase
