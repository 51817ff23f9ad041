#include "agent/logging/systemd_journal.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace cgphase {
namespace {

bool names(const char* stream, int fd) {
  struct stat status{};
  if (stream == nullptr || ::fstat(fd, &status) != 0) return false;
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino) == stream;
}

// A value without a newline needs no length; printable() leaves none.
std::string datagram(std::span<const LogField> fields) {
  std::string bytes;
  for (const LogField& field : fields) {
    bytes += field.name;
    bytes += '=';
    bytes += printable(std::string_view(field.value).substr(0, kMaxFieldBytes));
    bytes += '\n';
  }
  return bytes;
}

}  // namespace

std::optional<SystemdJournal> SystemdJournal::behind(int fd, const char* stream,
                                                     std::string socket) {
  if (!names(stream, fd) || socket.size() >= sizeof(sockaddr_un::sun_path)) return std::nullopt;
  Fd own(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!own.valid()) return std::nullopt;
  return SystemdJournal(std::move(own), std::move(socket));
}

// To its name each time: another journal may listen there since.
SystemdJournal::Sent SystemdJournal::send(std::span<const LogField> fields) {
  const std::string bytes = datagram(fields);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path_.data(), path_.size());
  const ssize_t sent =
      ::sendto(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL,
               reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (sent >= 0) return Sent::yes;
  return errno == EAGAIN || errno == ENOBUFS ? Sent::busy : Sent::no;
}

}  // namespace cgphase
