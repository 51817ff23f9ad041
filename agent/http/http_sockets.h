// The listening sockets of HTTP: bound here, or passed by the service manager (sd_listen_fds(3)),
// which lets a unit without network serve a port.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "agent/config/http_address.h"
#include "base/fd.h"
#include "base/result.h"

namespace cgphase {

// Listening and non-blocking. One that was bound here to a path is unlinked at its end.
class HttpSocket {
 public:
  HttpSocket(Fd fd, HttpAddress address, Fd directory = {});
  HttpSocket(HttpSocket&&) noexcept = default;
  HttpSocket& operator=(HttpSocket&&) noexcept = default;
  ~HttpSocket();
  // The same as its end.
  void close();

  int fd() const { return fd_.get(); }
  // Of a passed one: without path it is a port.
  const HttpAddress& address() const { return address_; }
  bool is_unix() const { return unix_; }

 private:
  Fd fd_;
  HttpAddress address_;
  Fd directory_;  // of a path that is ours to unlink
  bool unix_ = false;
};

// A Unix socket gets mode 0660 and, where there is one, `group`; what a dead daemon left there is
// replaced. Its directory must be writable by its owner alone, who is root or this process's user.
// Sets the umask while it binds: call before other threads make files. Errors: invalid, denied, io,
// unsupported.
Result<HttpSocket> open_http_socket(const HttpAddress& address, std::optional<gid_t> group);

// What the service manager passed to this process, CLOEXEC from now on: call once, before any fork.
std::vector<Fd> take_passed_sockets();

// Refuses what is no listening stream socket, and what others than this machine could reach.
// Errors: invalid, io.
Result<HttpSocket> take_passed_socket(Fd fd);

}  // namespace cgphase
