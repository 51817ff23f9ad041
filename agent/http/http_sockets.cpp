#include "agent/http/http_sockets.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

namespace cgphase {
namespace {

constexpr int kBacklog = 16;
constexpr int kStream = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

struct Place {
  std::string directory;
  std::string name;
};

Place split(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Where others may write they could put something else under the name.
Result<Fd> open_directory(const std::string& path) {
  Result<Fd> directory = open_path(path, O_PATH | O_DIRECTORY);
  if (!directory) return directory;
  struct stat status {};
  if (::fstat(directory->get(), &status) != 0) return errno_failure("stat " + path, errno);
  const bool owned = status.st_uid == 0 || status.st_uid == ::geteuid();
  if (!owned || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return failure(ErrorKind::denied, path + ": others may write there, so no socket is put there");
  return directory;
}

sockaddr_un unix_address(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), std::min(path.size(), kMaxSocketPathBytes));
  return address;
}

bool somebody_listens(const std::string& path) {
  const Fd probe(::socket(AF_UNIX, kStream, 0));
  const sockaddr_un address = unix_address(path);
  return ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ||
         errno == EAGAIN;
}

Status remove_dead(const Fd& directory, const std::string& path, const std::string& name) {
  struct stat status {};
  if (::fstatat(directory.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0)
    return errno == ENOENT ? Status() : errno_failure("stat " + path, errno);
  if (!S_ISSOCK(status.st_mode))
    return failure(ErrorKind::invalid, path + " is in the way and is no socket");
  if (somebody_listens(path))
    return failure(ErrorKind::invalid, path + " is in the way: somebody listens there");
  if (::unlinkat(directory.get(), name.c_str(), 0) != 0)
    return errno_failure("remove the old " + path, errno);
  return {};
}

Status bind_and_listen(const Fd& fd, const sockaddr* address, socklen_t size,
                       const std::string& what) {
  if (::bind(fd.get(), address, size) != 0) return errno_failure("bind " + what, errno);
  if (::listen(fd.get(), kBacklog) != 0) return errno_failure("listen on " + what, errno);
  return {};
}

Result<HttpSocket> open_unix(const HttpAddress& address, std::optional<gid_t> group) {
  const auto [parent, name] = split(address.path);
  Result<Fd> directory = open_directory(parent);
  if (!directory) return std::unexpected(directory.error());
  if (Status removed = remove_dead(*directory, address.path, name); !removed)
    return std::unexpected(removed.error());
  Fd fd(::socket(AF_UNIX, kStream, 0));
  if (!fd.valid()) return errno_failure("make " + address.path, errno);
  const sockaddr_un bound = unix_address(address.path);
  const mode_t mask = ::umask(0117);
  const Status listening =
      bind_and_listen(fd, reinterpret_cast<const sockaddr*>(&bound), sizeof bound, address.path);
  ::umask(mask);
  if (!listening) return std::unexpected(listening.error());
  // Who is not root may give to own groups only: then the mode keeps the others out.
  if (group)
    (void)::fchownat(directory->get(), name.c_str(), static_cast<uid_t>(-1), *group,
                     AT_SYMLINK_NOFOLLOW);
  return HttpSocket(std::move(fd), address, *std::move(directory));
}

Result<HttpSocket> open_port(const HttpAddress& address) {
  const std::string what = to_string(address);
  Fd fd(::socket(address.ip6 ? AF_INET6 : AF_INET, kStream, 0));
  if (!fd.valid() && errno == EAFNOSUPPORT)
    return failure(ErrorKind::unsupported,
                   what + ": this service may use no network; let systemd listen for it, with "
                          "cgphased-http.socket (docs/operations.md)");
  if (!fd.valid()) return errno_failure("make a socket for " + what, errno);
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in6 six{};
  sockaddr_in four{};
  six.sin6_family = AF_INET6;
  six.sin6_addr = in6addr_loopback;
  four.sin_family = AF_INET;
  four.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  six.sin6_port = four.sin_port = htons(address.port);
  const Status listening =
      address.ip6
          ? bind_and_listen(fd, reinterpret_cast<const sockaddr*>(&six), sizeof six, what)
          : bind_and_listen(fd, reinterpret_cast<const sockaddr*>(&four), sizeof four, what);
  if (!listening) return std::unexpected(listening.error());
  return HttpSocket(std::move(fd), address);
}

std::optional<int> option_of(int fd, int option) {
  int value = 0;
  socklen_t size = sizeof value;
  if (::getsockopt(fd, SOL_SOCKET, option, &value, &size) != 0) return std::nullopt;
  return value;
}

// Absent where it is neither a Unix socket nor of the loopback.
std::optional<HttpAddress> own_address(const sockaddr_storage& address, socklen_t size) {
  if (address.ss_family == AF_UNIX) {
    sockaddr_un bound{};
    const std::size_t length = std::min<std::size_t>(size, sizeof bound);
    std::memcpy(&bound, &address, length);
    const std::size_t head = offsetof(sockaddr_un, sun_path);
    const std::string_view name(bound.sun_path, length > head ? length - head : 0);
    // One in the abstract namespace, or without any name, has no path.
    return HttpAddress{.path = std::string(name.substr(0, name.find('\0')))};
  }
  if (address.ss_family == AF_INET) {
    sockaddr_in bound{};
    std::memcpy(&bound, &address, sizeof bound);
    if (bound.sin_addr.s_addr != htonl(INADDR_LOOPBACK)) return std::nullopt;
    return HttpAddress{.port = ntohs(bound.sin_port)};
  }
  sockaddr_in6 bound{};
  std::memcpy(&bound, &address, sizeof bound);
  if (address.ss_family != AF_INET6 || !IN6_IS_ADDR_LOOPBACK(&bound.sin6_addr))
    return std::nullopt;
  return HttpAddress{.ip6 = true, .port = ntohs(bound.sin6_port)};
}

bool is_unix_socket(int fd) { return option_of(fd, SO_DOMAIN) == AF_UNIX; }

}  // namespace

HttpSocket::HttpSocket(Fd fd, HttpAddress address, Fd directory)
    : fd_(std::move(fd)), address_(std::move(address)), directory_(std::move(directory)),
      unix_(is_unix_socket(fd_.get())) {}

HttpSocket::~HttpSocket() { close(); }

void HttpSocket::close() {
  if (directory_.valid()) ::unlinkat(directory_.get(), split(address_.path).name.c_str(), 0);
  directory_.reset();
  fd_.reset();
}

Result<HttpSocket> open_http_socket(const HttpAddress& address, std::optional<gid_t> group) {
  return address.path.empty() ? open_port(address) : open_unix(address, group);
}

std::vector<Fd> take_passed_sockets() {
  std::vector<Fd> passed;
  const int count = ::sd_listen_fds(1);
  for (int i = 0; i < count; ++i) passed.emplace_back(SD_LISTEN_FDS_START + i);
  return passed;
}

Result<HttpSocket> take_passed_socket(Fd fd) {
  if (option_of(fd.get(), SO_ACCEPTCONN) != 1 || option_of(fd.get(), SO_TYPE) != SOCK_STREAM)
    return failure(ErrorKind::invalid, "what systemd passed is no listening stream socket");
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0)
    return errno_failure("the address of the socket that systemd passed", errno);
  auto address = own_address(bound, size);
  if (!address)
    return failure(ErrorKind::invalid,
                   "the socket that systemd passed is neither a Unix socket nor of 127.0.0.1 or "
                   "[::1], so it is not served: anybody could ask there");
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0)
    return errno_failure("the socket that systemd passed", errno);
  return HttpSocket(std::move(fd), *std::move(address));
}

}  // namespace cgphase
